//! Tracks the final checks of folders that sandboxes could write to. Shutdown waits for these checks.

use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Registry of the final checks in progress, each with a description of its sandbox.
#[derive(Debug, Clone)]
pub struct LastLooks {
    in_progress: watch::Sender<BTreeMap<u64, CheckLabel>>,
    sandboxes: TaskTracker,
}

#[derive(Debug, Clone)]
struct CheckLabel {
    session: String,
    words: String,
}

/// Final check of one sandbox. Shutdown waits until this value is dropped.
#[derive(Debug)]
pub(crate) struct LastLook {
    looks: LastLooks,
    sandbox: CheckLabel,
    number: Option<u64>,
    _waited_for: TaskTrackerToken,
}

impl LastLooks {
    pub(super) fn new(sandboxes: &TaskTracker) -> Self {
        Self { in_progress: watch::Sender::default(), sandboxes: sandboxes.clone() }
    }

    /// Registers a final check before it starts. From then on, shutdown waits for the check.
    pub(super) fn of(&self, session: &str, words: String) -> LastLook {
        let sandbox = CheckLabel { session: session.to_owned(), words };
        LastLook { looks: self.clone(), sandbox, number: None, _waited_for: self.sandboxes.token() }
    }

    /// Returns descriptions of the checks in progress.
    pub fn words(&self) -> Vec<String> {
        self.in_progress.borrow().values().map(|sandbox| sandbox.words.clone()).collect()
    }

    /// Returns `true` if a final check for this session is in progress.
    pub(crate) fn is_of(&self, session: &str) -> bool {
        self.in_progress.borrow().values().any(|sandbox| sandbox.session == session)
    }
}

impl LastLook {
    /// Marks the check as in progress.
    pub(super) fn begins(&mut self) {
        if self.number.is_some() {
            return;
        }
        let (number, sandbox) = (&mut self.number, &self.sandbox);
        self.looks.in_progress.send_modify(|all| {
            let next = all.last_key_value().map_or(0, |(last, _)| last + 1);
            all.insert(*number.insert(next), sandbox.clone());
        });
    }
}

impl Drop for LastLook {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.looks.in_progress.send_modify(|all| drop(all.remove(&number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_final_check_is_listed_while_in_progress_and_delays_shutdown_from_the_start() {
        let sandboxes = TaskTracker::new();
        let looks = LastLooks::new(&sandboxes);
        let (mut one, other) = (looks.of("a", "session a".into()), looks.of("b", "session b".into()));
        assert_eq!(looks.words(), [""; 0]);
        one.begins();
        one.begins();
        assert_eq!(looks.words(), ["session a"]);
        assert_eq!((looks.is_of("a"), looks.is_of("b")), (true, false));
        drop(other);
        sandboxes.close();
        let heard = tokio::spawn(async move { sandboxes.wait().await });
        tokio::task::yield_now().await;
        assert!(!heard.is_finished());
        drop(one);
        heard.await.unwrap();
        assert_eq!(looks.words(), [""; 0]);
    }
}
