//! Notes for the terminal that started a run, and counts of the files and hosts that the run used.
//!
//! - Denials are dropped if the process that started the run does not read them, so they never delay the run. The state
//!   of the run's questions is always reported.
//! - Only hashes of the used paths are kept, because a program chooses their number and length.

use ironcurtain_consent::{Broker, Lifetime};
use ironcurtain_protocol::{RunAsk, RunNote, RunUse};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use ironcurtain_visible as visible;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// Maximum number of queued denials.
const MAX_COUNT: usize = 256;

/// Maximum number of distinct files to count for each kind of access.
const MAX_FILES: usize = 100_000;

/// Maximum length of the program or tool names in a question, in characters. A question on a terminal accepts an
/// approval only if it shows all names, and names of this length fit.
const MAX_CLAIM_LEN: usize = 100;

/// Notes and counts of one run.
#[derive(Debug)]
pub struct RunNotes {
    ask: RunAsk,
    denials: mpsc::Sender<RunNote>,
    questions: watch::Sender<PendingQuestions>,
    used: Mutex<Used>,
    hasher: RandomState,
}

/// Hashes of the files and hosts that a run used.
#[derive(Debug, Default)]
struct Used {
    read: HashSet<u64>,
    written: HashSet<u64>,
    denied: HashSet<u64>,
}

/// Pending questions of a run.
#[derive(Debug, Default)]
struct PendingQuestions {
    open: usize,
    /// Number of questions so far.
    total: u64,
    /// Path or host of the latest question.
    latest: String,
}

/// Receiver for the notes of a run.
#[derive(Debug)]
pub struct NotesInbox {
    denials: mpsc::Receiver<RunNote>,
    questions: watch::Receiver<PendingQuestions>,
    /// Number of questions when the last note about them was returned, or `None` if that note was `Answered`.
    reported: Option<u64>,
}

impl NotesInbox {
    /// Returns the next note. Can be cancelled without losing a note.
    pub async fn next(&mut self) -> RunNote {
        loop {
            tokio::select! {
                biased;
                Ok(()) = self.questions.changed() => {}
                Some(denial) = self.denials.recv() => return denial,
                // The run has ended.
                else => std::future::pending().await,
            }
            let questions = self.questions.borrow_and_update();
            match self.reported {
                Some(_) if questions.open == 0 => {
                    self.reported = None;
                    return RunNote::Answered;
                }
                reported if questions.open > 0 && reported != Some(questions.total) => {
                    self.reported = Some(questions.total);
                    return RunNote::Waiting { path: questions.latest.clone() };
                }
                Some(_) | None => {}
            }
        }
    }
}

/// Returns an agent's reason for a request, formatted for a question.
pub(crate) fn claimed_reason(why: &str) -> (String, String) {
    ("reason given by the agent".to_owned(), visible::line(why))
}

/// Returns the tools whose calls a server is handling, formatted for a question. Any of these calls may have caused the
/// access.
pub(crate) fn calls_in_progress(tools: &[String]) -> Option<(String, String)> {
    let name = if tools.len() == 1 { "call in progress" } else { "calls in progress" };
    let tools = (!tools.is_empty()).then(|| visible::line(&tools.join(", ")))?;
    Some((name.to_owned(), visible::head(&tools, MAX_CLAIM_LEN)))
}

/// Returns the names of a waiting program and its ancestors, formatted for a question. Programs can change their own
/// names.
pub(crate) fn waiting_programs(programs: &[String]) -> Option<(String, String)> {
    let name = "program, by its own name".to_owned();
    // The waiting program comes last.
    let names = visible::line(&programs.join(" → "));
    (!programs.is_empty()).then(|| (name, visible::head_and_tail(&names, MAX_CLAIM_LEN)))
}

/// Guard for a pending question. Dropping the last guard notifies the process that started the run.
pub struct OpenNote<'a>(&'a RunNotes);

impl RunNotes {
    /// Creates the notes of a run. `ask` selects how the run's questions are answered.
    pub fn new(ask: RunAsk) -> (Arc<Self>, NotesInbox) {
        let (denials, written) = mpsc::channel(MAX_COUNT);
        let (questions, asked) = watch::channel(PendingQuestions::default());
        let notes = Self { ask, denials, questions, used: Mutex::default(), hasher: RandomState::new() };
        (Arc::new(notes), NotesInbox { denials: written, questions: asked, reported: None })
    }

    /// Returns how the run's questions are answered.
    pub fn ask(&self) -> RunAsk {
        self.ask
    }

    /// Returns `true` if a question can offer this lifetime. An answer on the run's own terminal lasts at most until
    /// the run ends.
    pub(crate) fn may_offer(&self, lifetime: &Lifetime) -> bool {
        self.ask != RunAsk::Terminal || matches!(lifetime, Lifetime::Once | Lifetime::Session)
    }

    /// Reports a pending question about this path or host. Returns `None` if the user cannot be asked.
    pub fn note_pending(&self, what: &str, broker: &Broker) -> Option<OpenNote<'_>> {
        if self.ask != RunAsk::Terminal && !broker.can_ask() {
            return None;
        }
        self.questions.send_modify(|questions| {
            questions.open += 1;
            questions.total += 1;
            what.clone_into(&mut questions.latest);
        });
        Some(OpenNote(self))
    }

    pub(super) fn allowed(&self, access: &PermittedAccess) {
        let mut used = self.lock_used();
        let Used { read, written, .. } = &mut *used;
        let counted: &mut [&mut HashSet<u64>] = match access.access {
            FileAccess::Read => &mut [read],
            FileAccess::Write | FileAccess::Delete => &mut [written],
            FileAccess::ReadWrite => &mut [read, written],
        };
        let file = self.hasher.hash_one(&access.path);
        counted.iter_mut().for_each(|files| _ = count_new(files, file));
    }

    /// Reports a denied path or host, unless it was already reported.
    pub fn denied(&self, what: &str, why: Option<String>) {
        if count_new(&mut self.lock_used().denied, self.hasher.hash_one(what)) {
            // Sending fails if the process that started the run reads too slowly or has exited.
            let _ = self.denials.try_send(RunNote::Denied { path: what.to_owned(), why });
        }
    }

    /// Returns the number of files that the run has read, the number that it has written, and the number of denied
    /// paths and hosts.
    pub fn usage(&self) -> RunUse {
        let used = self.lock_used();
        RunUse { read: used.read.len(), written: used.written.len(), denied: used.denied.len() }
    }

    fn lock_used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenNote<'_> {
    fn drop(&mut self) {
        self.0.questions.send_modify(|questions| questions.open = questions.open.saturating_sub(1));
    }
}

/// Counts a file. Returns `true` if it was not counted before.
fn count_new(files: &mut HashSet<u64>, file: u64) -> bool {
    files.len() < MAX_FILES && files.insert(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use ironcurtain_consent::{NoFrontEnd, Stops};

    fn notes(inbox: &mut NotesInbox) -> Vec<RunNote> {
        std::iter::from_fn(|| inbox.next().now_or_never()).collect()
    }

    #[test]
    fn a_flood_of_denials_hides_no_question_and_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let stops = Stops::open(dir.path().join("lockdown"));
        let broker = Broker::new(Arc::new(NoFrontEnd), stops, None);
        let (run, mut inbox) = RunNotes::new(RunAsk::Terminal);
        let deny = |from: usize| (from..from + 2 * MAX_COUNT).for_each(|n| run.denied(&n.to_string(), None));
        deny(0);
        let open = run.note_pending("/a", &broker).unwrap();
        let written = notes(&mut inbox);
        assert_eq!((written.len(), &written[0]), (MAX_COUNT + 1, &RunNote::Waiting { path: "/a".into() }));
        let second = run.note_pending("/b", &broker).unwrap();
        drop(open);
        assert_eq!(notes(&mut inbox), [RunNote::Waiting { path: "/b".into() }]);
        deny(2 * MAX_COUNT);
        drop(second);
        assert_eq!(notes(&mut inbox)[0], RunNote::Answered);
        // This question is answered before its note is written.
        drop(run.note_pending("/c", &broker));
        assert_eq!(notes(&mut inbox), []);
    }

    #[test]
    fn used_files_are_counted_once() {
        let (run, _inbox) = RunNotes::new(RunAsk::Default);
        let access = |path: &str, access| PermittedAccess { path: path.into(), access };
        run.allowed(&access("/a", FileAccess::ReadWrite));
        run.allowed(&access("/a", FileAccess::Read));
        run.allowed(&access("/b", FileAccess::Delete));
        run.denied("/c", None);
        run.denied("/c", None);
        assert_eq!(run.usage(), RunUse { read: 1, written: 2, denied: 1 });
    }
}
