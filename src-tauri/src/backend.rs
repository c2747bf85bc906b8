//! The trusted process as the shell sees it.
//!
//! - The shell only asks what the control protocol has: it can show and take away, never allow.

use ironcurtain_protocol::{Reply, Request};
use std::pin::Pin;
use tokio::sync::watch;

/// A reply that comes later.
pub type Pending = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Whoever answers the shell's requests.
pub trait Backend: Send + Sync + 'static {
    /// Sends one request.
    fn request(&self, request: Request) -> Pending;

    /// A number that moves whenever sessions, questions, grants or activity change.
    fn changes(&self) -> watch::Receiver<u64>;
}
