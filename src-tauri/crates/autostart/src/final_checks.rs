//! Tracks the final checks of folders that sandboxes could write to. Shutdown waits for these checks.

use std::collections::BTreeMap;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Registry of the final checks in progress, each with a description of its sandbox.
#[derive(Debug, Clone)]
pub struct FinalChecks {
    in_progress: watch::Sender<BTreeMap<u64, CheckLabel>>,
    sandboxes: TaskTracker,
}

#[derive(Debug, Clone)]
struct CheckLabel {
    session: String,
    description: String,
}

/// Final check of one sandbox. Shutdown waits until this value is dropped.
#[derive(Debug)]
pub(crate) struct FinalCheck {
    registry: FinalChecks,
    sandbox: CheckLabel,
    id: Option<u64>,
    _waited_for: TaskTrackerToken,
}

impl FinalChecks {
    pub(super) fn new(sandboxes: &TaskTracker) -> Self {
        Self { in_progress: watch::Sender::default(), sandboxes: sandboxes.clone() }
    }

    /// Registers a final check before it starts. From then on, shutdown waits for the check.
    pub(super) fn register(&self, session: &str, description: String) -> FinalCheck {
        let sandbox = CheckLabel { session: session.to_owned(), description };
        FinalCheck { registry: self.clone(), sandbox, id: None, _waited_for: self.sandboxes.token() }
    }

    /// Returns descriptions of the checks in progress.
    pub fn descriptions(&self) -> Vec<String> {
        self.in_progress.borrow().values().map(|sandbox| sandbox.description.clone()).collect()
    }

    /// Returns `true` if a final check for this session is in progress.
    pub(crate) fn is_checking(&self, session: &str) -> bool {
        self.in_progress.borrow().values().any(|sandbox| sandbox.session == session)
    }
}

impl FinalCheck {
    /// Marks the check as in progress.
    pub(super) fn mark_started(&mut self) {
        if self.id.is_some() {
            return;
        }
        let (id, sandbox) = (&mut self.id, &self.sandbox);
        self.registry.in_progress.send_modify(|all| {
            let next = all.last_key_value().map_or(0, |(last, _)| last + 1);
            all.insert(*id.insert(next), sandbox.clone());
        });
    }
}

impl Drop for FinalCheck {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.registry.in_progress.send_modify(|all| drop(all.remove(&id)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_final_check_is_listed_while_in_progress_and_delays_shutdown_from_the_start() {
        let sandboxes = TaskTracker::new();
        let registry = FinalChecks::new(&sandboxes);
        let (mut one, other) =
            (registry.register("a", "session a".into()), registry.register("b", "session b".into()));
        assert_eq!(registry.descriptions(), [""; 0]);
        one.mark_started();
        one.mark_started();
        assert_eq!(registry.descriptions(), ["session a"]);
        assert_eq!((registry.is_checking("a"), registry.is_checking("b")), (true, false));
        drop(other);
        sandboxes.close();
        let shutdown = tokio::spawn(async move { sandboxes.wait().await });
        tokio::task::yield_now().await;
        assert!(!shutdown.is_finished());
        drop(one);
        shutdown.await.unwrap();
        assert_eq!(registry.descriptions(), [""; 0]);
    }
}
