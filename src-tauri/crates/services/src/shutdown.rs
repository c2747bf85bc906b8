//! Progress of the daemon's shutdown: requested, waiting for sandboxes, complete.
//!
//! - INVARIANT: every task holds a token of `sandboxes` for as long as it owns or reads from a sandbox.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Stages of the shutdown, as tokens that are cancelled in order.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Cancelled when shutdown is requested.
    pub requested: CancellationToken,
    /// Cancelled when another daemon takes over. Servers keep running until their sessions are handed over.
    pub takeover_requested: CancellationToken,
    /// Cancelled during a takeover, once no new connections are accepted and sessions can be handed over.
    pub taken_over: CancellationToken,
    /// Tracks tasks that use a sandbox. Shutdown waits for them.
    pub sandboxes: TaskTracker,
    /// Cancelled when the shutdown is complete.
    pub ended: CancellationToken,
}

impl Shutdown {
    /// Returns `true` if a shutdown or takeover was requested, so no new sessions are accepted.
    pub fn is_requested(&self) -> bool {
        self.requested.is_cancelled() || self.takeover_requested.is_cancelled()
    }

    /// Waits until all sandboxes have exited and their output has been read.
    pub async fn sandboxes_exited(&self) {
        self.sandboxes.close();
        self.sandboxes.wait().await;
    }
}
