//! Reasons why a server is not running.

use super::start_error::ServerStartError;
pub use ironcurtain_mcp::server::ServerExit;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a restarted server to answer `initialize`.
pub(super) const INITIALIZE_BOUND: Duration = Duration::from_secs(30);

/// Reason why a server is not running.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DownReason {
    /// Starting it failed.
    #[error(transparent)]
    NotStarted(Arc<ServerStartError>),
    /// It is not retried at the moment.
    #[error("it ended {0} times right after its start; it will be restarted later")]
    EndsTooSoon(u32),
    /// It exited on its own.
    #[error("{0}")]
    Ended(Arc<ServerExit>),
    /// After a restart, it rejected the client's `initialize`.
    #[error("it rejected `initialize`: {0}")]
    InitializeRejected(String),
    /// It kept creating autostart files.
    #[error("it was stopped and will not be restarted in this session, because {0}")]
    Recreates(String),
    /// After a restart, it did not answer `initialize`.
    #[error("it did not answer `initialize` within {n} s", n = INITIALIZE_BOUND.as_secs())]
    InitializeUnanswered,
}

impl From<ServerStartError> for DownReason {
    fn from(problem: ServerStartError) -> Self {
        Self::NotStarted(Arc::new(problem))
    }
}
