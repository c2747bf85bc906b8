//! The trusted process as the shell sees it.
//!
//! - The shell only asks what the control protocol has: it can show and take away, never allow.

mod trusted;

pub(crate) use trusted::{TrustedProcess, TrustedProcessError};

use ironcurtain_protocol::{Reply, Request};
use std::pin::Pin;
use tokio::sync::watch;

/// Something that comes later.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Whoever answers the shell's requests.
pub trait Backend: Send + Sync + 'static {
    /// Sends one request.
    fn request(&self, request: Request) -> BoxFuture<Reply>;

    /// A number that moves whenever sessions, questions, grants or activity change.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Waits until every session has ended and nothing is served any more.
    fn ended(&self) -> BoxFuture<()>;
}
