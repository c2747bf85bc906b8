//! Notes for the terminal that started a run, and counts of the files and hosts that the run used.
//!
//! - Notes are dropped if the process that started the run does not read them, so they never delay the run.

use ironcurtain_consent::{Broker, Lifetime};
use ironcurtain_protocol::{RunAsk, RunNote, RunUse};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use ironcurtain_visible as visible;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of notes that are waiting to be written.
const MAX_COUNT: usize = 256;

/// Maximum number of distinct files to count for each kind of access.
const MAX_FILES: usize = 100_000;

/// Notes and counts of one run.
#[derive(Debug)]
pub struct RunNotes {
    ask: RunAsk,
    notes: mpsc::Sender<RunNote>,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    read: HashSet<String>,
    written: HashSet<String>,
    denied: HashSet<String>,
    /// Number of pending questions.
    open: usize,
}

/// Returns an agent's reason for a request, in the form that a question shows.
pub(crate) fn claimed_reason(why: &str) -> (String, String) {
    ("reason given by the agent".to_owned(), visible::line(why))
}

/// Returns the tools whose calls a server is handling, as a question shows them. The access may belong to any of them.
pub(crate) fn calls_in_progress(tools: &[String]) -> Option<(String, String)> {
    let tools: Vec<String> = tools.iter().map(|tool| visible::line(tool)).collect();
    let name = if tools.len() == 1 { "call in progress" } else { "calls in progress" };
    (!tools.is_empty()).then(|| (name.to_owned(), tools.join(", ")))
}

/// Guard for a pending question. Dropping the last one notifies the process that started the run.
pub struct OpenNote<'a>(&'a RunNotes);

impl RunNotes {
    /// Creates the notes of a run. `ask` says whether its questions are answered in the app or on the run's terminal.
    pub fn new(ask: RunAsk) -> (Arc<Self>, mpsc::Receiver<RunNote>) {
        let (notes, written) = mpsc::channel(MAX_COUNT);
        (Arc::new(Self { ask, notes, used: Mutex::default() }), written)
    }

    /// Returns where the run's questions are answered: in the app or on its terminal.
    pub fn ask(&self) -> RunAsk {
        self.ask
    }

    /// Returns `true` if the user may be offered this lifetime. An answer on the run's own terminal lasts until the
    /// run ends at the latest.
    pub(crate) fn may_offer(&self, lifetime: &Lifetime) -> bool {
        self.ask != RunAsk::Terminal || matches!(lifetime, Lifetime::Once | Lifetime::Session)
    }

    /// Reports a pending question about this path or host. Returns `None` if the user cannot be asked.
    pub fn waiting(&self, what: &str, broker: &Broker) -> Option<OpenNote<'_>> {
        if self.ask != RunAsk::Terminal && !broker.can_ask() {
            return None;
        }
        self.used().open += 1;
        self.send(RunNote::Waiting { path: what.to_owned() });
        Some(OpenNote(self))
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

    /// Reports a denied path or host, once each.
    pub fn denied(&self, what: &str, why: Option<String>) {
        let mut used = self.used();
        let before = used.denied.len();
        count(&mut used.denied, what);
        if used.denied.len() > before {
            drop(used);
            self.send(RunNote::Denied { path: what.to_owned(), why });
        }
    }

    /// Returns the numbers of files that the run has read and written, and of denied paths and hosts.
    pub fn used_so_far(&self) -> RunUse {
        let used = self.used();
        RunUse { read: used.read.len(), written: used.written.len(), denied: used.denied.len() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, note: RunNote) {
        // Sending fails if the process that started the run reads too slowly or has exited.
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
    if files.len() < MAX_FILES {
        files.insert(path.to_owned());
    }
}
