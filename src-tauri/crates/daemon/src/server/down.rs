//! Why a server is not running, and why a request to it has no answer.

use super::start_error::ServerStartError;
use crate::wire::MAX_LINE_BYTES;
use std::sync::Arc;
use std::time::Duration;

/// The time that a restarted server may take to answer its greeting.
pub(super) const GREETING_BOUND: Duration = Duration::from_secs(30);

/// Why a server is not running.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DownReason {
    /// It was not started.
    #[error(transparent)]
    NotStarted(Arc<ServerStartError>),
    /// It is not tried at the moment.
    #[error("it ended {0} times right after its start; it is tried again later")]
    EndsTooSoon(u32),
    /// It ended by itself.
    #[error("it ended")]
    Ended,
    /// It ended by itself, with this status.
    #[error("it ended with status {0}")]
    EndedWith(i32),
    /// Started again, it did not take the client's greeting.
    #[error("it refused the greeting: {0}")]
    GreetingRefused(String),
    /// Started again, it was silent.
    #[error("it did not answer the greeting within {n} s", n = GREETING_BOUND.as_secs())]
    GreetingUnanswered,
    /// Started again, it could not answer the greeting.
    #[error(transparent)]
    GreetingFailed(#[from] NoAnswer),
}

impl From<ServerStartError> for DownReason {
    fn from(problem: ServerStartError) -> Self {
        Self::NotStarted(Arc::new(problem))
    }
}

/// Why a request that a server has been sent has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It ended.
    #[error("the server ended before it answered")]
    Ended,
    /// It sent what is not read.
    #[error("the server sent a message of {0} bytes; at most {MAX_LINE_BYTES} are taken")]
    TooLong(u64),
}
