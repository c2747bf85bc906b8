//! Shutdown of the trusted process: requested, waiting for sandboxes, complete.
//!
//! - INVARIANT: each owner or reader of a sandbox holds a token of `sandboxes` while it uses the sandbox.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Steps of the shutdown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Cancelled when shutdown is requested.
    pub(crate) requested: CancellationToken,
    /// Cancelled earlier, on a handover: the servers keep running until their sessions have moved to the new process.
    pub(crate) takeover_requested: CancellationToken,
    /// Cancelled during a handover once no connection is read any more and sessions can move.
    pub(crate) taken_over: CancellationToken,
    /// Tracks the sandboxes to wait for.
    pub(crate) sandboxes: TaskTracker,
    /// Cancelled when shutdown is complete.
    pub(crate) ended: CancellationToken,
}

impl Shutdown {
    /// Returns whether new sessions are no longer accepted.
    pub(crate) fn is_under_way(&self) -> bool {
        self.requested.is_cancelled() || self.takeover_requested.is_cancelled()
    }

    /// Waits until every sandbox has exited and was read to its end.
    pub(crate) async fn sandboxes_exited(&self) {
        self.sandboxes.close();
        self.sandboxes.wait().await;
    }
}
