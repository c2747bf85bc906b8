//! Exit of a server, and reasons a request has no response.

use crate::wire::MAX_LINE_BYTES;
use std::fmt;
use std::sync::Arc;

/// Exit of a server process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerExit {
    /// Exit status, or 128 plus the signal number. `None` if the status is unknown.
    pub status: Option<i32>,
    /// Reason the connection to a remote server closed, or `None` for a local server.
    pub remote: Option<String>,
    /// Last lines of standard error, joined and sanitized for display. Empty if there are none.
    pub stderr_tail: String,
}

impl fmt::Display for ServerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(remote) = &self.remote {
            return f.write_str(remote);
        }
        match self.status {
            None => f.write_str("no exit status")?,
            Some(status @ 129..=192) => write!(f, "signal {} (exit status {status})", status - 128)?,
            Some(status) => write!(f, "exit status {status}")?,
        }
        if self.stderr_tail.is_empty() {
            return Ok(());
        }
        write!(f, "; its last line on standard error: `{}`", self.stderr_tail)
    }
}

/// Reason a request to a server has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoResponse {
    /// The server exited, with the details if they are known.
    #[error("the server stopped before it answered{}", exit_suffix(.0))]
    ServerExited(Option<Arc<ServerExit>>),
    /// The response exceeds the size limit.
    #[error("the server's answer exceeds {n} MB; the limit is {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// No memory was available for the response.
    #[error(
        "not enough memory for a long message from the server, because other sessions are using it; try again, or increase `memoryMib` in `config.json`"
    )]
    NoMemory,
    /// The response is not a valid message.
    #[error("the server's answer is invalid: {0}")]
    InvalidResponse(String),
    /// The server's request for input is invalid.
    #[error("the server's request for input is invalid: {0}")]
    InvalidInputRequest(String),
    /// The server responded with an unknown id.
    #[error("the server answered with the unknown id {0}")]
    UnknownId(String),
}

fn exit_suffix(exit: &Option<Arc<ServerExit>>) -> String {
    exit.as_ref().map(|exit| format!(": {exit}")).unwrap_or_default()
}
