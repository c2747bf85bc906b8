//! Tracks whether the server refuses requests because the user must log in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// State of the server's requirement, shared by all requests of a connection.
pub(super) struct RequiredLogin {
    is_required: Arc<AtomicBool>,
    has_accepted: AtomicBool,
    /// Called with the new state when it changes, and with `false` when the server first accepts a request.
    changed: Box<dyn Fn(bool) + Send + Sync>,
    accepted: Notify,
}

impl RequiredLogin {
    pub(super) fn new(is_required: Arc<AtomicBool>, changed: Box<dyn Fn(bool) + Send + Sync>) -> Self {
        Self { is_required, has_accepted: AtomicBool::new(false), changed, accepted: Notify::new() }
    }

    /// Records that the server refused a request because the user must log in.
    pub(super) fn refuse(&self) {
        if !self.is_required.swap(true, Ordering::Relaxed) {
            (self.changed)(true);
        }
    }

    /// Records that the server accepted a request.
    pub(super) fn accept(&self) {
        let was_required = self.is_required.swap(false, Ordering::Relaxed);
        if !self.has_accepted.swap(true, Ordering::Relaxed) || was_required {
            (self.changed)(false);
            self.accepted.notify_one();
        }
    }

    /// Waits until the server accepts a request again.
    pub(super) async fn until_accepted(&self) {
        while self.is_required.load(Ordering::Relaxed) {
            self.accepted.notified().await;
        }
    }
}
