//! The end of the trusted process: it is asked to end, waits for the last word of every sandbox, and has ended.
//!
//! - INVARIANT: whoever owns a sandbox, or still listens to one, holds a token of `sandboxes` for as long as that is so.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The steps of the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Cancelled when the trusted process is to end.
    pub(crate) requested: CancellationToken,
    /// Cancelled before that when another one is to take its place: its servers run on until their sessions are moved.
    pub(crate) gives_way: CancellationToken,
    /// Cancelled then as soon as nobody is listened to any more: sessions are moved.
    pub(crate) taken_over: CancellationToken,
    /// The sandboxes that are waited for.
    pub(crate) sandboxes: TaskTracker,
    /// Cancelled when it has ended.
    pub(crate) ended: CancellationToken,
}

impl Shutdown {
    /// Returns `true` once no session begins here any more.
    pub(crate) fn is_under_way(&self) -> bool {
        self.requested.is_cancelled() || self.gives_way.is_cancelled()
    }

    /// Waits until no sandbox is left that could have something to say.
    pub(crate) async fn sandboxes_gone(&self) {
        self.sandboxes.close();
        self.sandboxes.wait().await;
    }
}
