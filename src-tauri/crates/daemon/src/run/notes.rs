//! Notes to the starter of a run, for its terminal, and what the run used.
//!
//! - A starter that does not read loses notes, and delays nothing.

use ironcurtain_protocol::{RunNote, RunUse};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of notes that wait to be written.
const MOST: usize = 256;

/// Maximum number of files that are counted for each access.
const MOST_FILES: usize = 100_000;

/// Notes of one run.
#[derive(Debug)]
pub(super) struct RunNotes {
    notes: mpsc::Sender<RunNote>,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    read: HashSet<String>,
    written: HashSet<String>,
    denied: HashSet<String>,
    /// Number of open questions.
    open: usize,
}

/// An open question. Dropping it reports that it is over.
pub(super) struct OpenNote<'a>(&'a RunNotes);

impl RunNotes {
    pub(super) fn new() -> (Self, mpsc::Receiver<RunNote>) {
        let (notes, written) = mpsc::channel(MOST);
        (Self { notes, used: Mutex::default() }, written)
    }

    /// Reports that a question waits for the user.
    pub(super) fn waiting(&self, path: &str) -> OpenNote<'_> {
        self.used().open += 1;
        self.send(RunNote::Waiting { path: path.to_owned() });
        OpenNote(self)
    }

    pub(super) fn allowed(&self, access: &PermittedAccess) {
        let mut used = self.used();
        let Used { read, written, .. } = &mut *used;
        let counted: &mut [&mut HashSet<String>] = match access.access {
            FileAccess::Read => &mut [read],
            FileAccess::Write | FileAccess::Delete => &mut [written],
            FileAccess::ReadWrite => &mut [read, written],
        };
        counted.iter_mut().for_each(|files| count(files, &access.path));
    }

    /// Reports a denied access, unless the same path was denied before.
    pub(super) fn denied(&self, path: &str, why: Option<String>) {
        let mut used = self.used();
        let before = used.denied.len();
        count(&mut used.denied, path);
        if used.denied.len() > before {
            drop(used);
            self.send(RunNote::Denied { path: path.to_owned(), why });
        }
    }

    pub(super) fn used_so_far(&self) -> RunUse {
        let used = self.used();
        RunUse { read: used.read.len(), written: used.written.len(), denied: used.denied.len() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, note: RunNote) {
        // Fails if the starter reads too slowly or has exited.
        let _ = self.notes.try_send(note);
    }
}

impl Drop for OpenNote<'_> {
    fn drop(&mut self) {
        let mut used = self.0.used();
        used.open = used.open.saturating_sub(1);
        if used.open == 0 {
            self.0.send(RunNote::Answered);
        }
    }
}

fn count(files: &mut HashSet<String>, path: &str) {
    if files.len() < MOST_FILES {
        files.insert(path.to_owned());
    }
}
