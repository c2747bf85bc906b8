//! Why a server is not running.

use super::start_error::ServerStartError;
pub use ironcurtain_mcp::server::ServerExit;
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
    #[error("{0}")]
    Ended(Arc<ServerExit>),
    /// Started again, it did not take the client's greeting.
    #[error("it refused the greeting: {0}")]
    GreetingRefused(String),
    /// It made files that run later again and again.
    #[error("it was stopped, and is not started again in this session, because {0}")]
    Recreates(String),
    /// Started again, it was silent.
    #[error("it did not answer the greeting within {n} s", n = GREETING_BOUND.as_secs())]
    GreetingUnanswered,
}

impl From<ServerStartError> for DownReason {
    fn from(problem: ServerStartError) -> Self {
        Self::NotStarted(Arc::new(problem))
    }
}
