//! Reasons a server is not running.

use super::start_error::ServerStartError;
pub use ironcurtain_mcp::server::ServerExit;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for a restarted server to answer `initialize`.
pub(super) const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(30);

/// Reason a server is not running. The messages continue "the server `x` is not running: …".
#[derive(Debug, Clone, thiserror::Error)]
pub enum DownReason {
    /// The server's process could not be started.
    #[error(transparent)]
    NotStarted(Arc<ServerStartError>),
    /// The server exited this many times immediately after its start, so the next start is delayed.
    #[error("it exited {0} times immediately after starting; the next restart is delayed")]
    ExitsTooSoon(u32),
    /// The server's process exited.
    #[error("{0}")]
    Exited(Arc<ServerExit>),
    /// After a restart, the server rejected the client's `initialize` with this error.
    #[error("it rejected `initialize`: {0}")]
    InitializeRejected(String),
    /// The server kept recreating quarantined files, so it is not restarted in this session.
    #[error("it was stopped and will not be restarted in this session, because {0}")]
    RecreatesFiles(String),
    /// After a restart, the server did not answer `initialize` in time.
    #[error("it did not answer `initialize` within {n} s", n = INITIALIZE_TIMEOUT.as_secs())]
    InitializeUnanswered,
}

impl From<ServerStartError> for DownReason {
    fn from(problem: ServerStartError) -> Self {
        Self::NotStarted(Arc::new(problem))
    }
}
