//! The exit of a server, and the reasons why a request has no response.

use crate::wire::MAX_LINE_BYTES;
use std::fmt;
use std::sync::Arc;

/// Exit of a server process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerExit {
    /// Exit status, or 128 plus the signal number.
    pub status: Option<i32>,
    /// Why the conversation with a remote server ended.
    pub remote: Option<String>,
    /// Last lines of standard error, sanitized for display.
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
        write!(f, "; its last message: `{}`", self.stderr_tail)
    }
}

/// Why a request to a server has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The server exited.
    #[error("the server ended before it answered{}", how(.0))]
    Ended(Option<Arc<ServerExit>>),
    /// The response exceeds the size limit.
    #[error("the server's answer is larger than {n} MB; IronCurtain takes at most {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// No memory was available for the response.
    #[error(
        "no memory was left for a long message of the server, because of what other sessions hold; try again, or give more with `memoryMib` in `config.json`"
    )]
    NoRoom,
    /// The response is invalid.
    #[error("the server's answer is not understood: {0}")]
    NotUnderstood(String),
    /// The server's request for input is invalid.
    #[error("the server asked for input in a way that is not taken: {0}")]
    Input(String),
    /// The response has an unknown id.
    #[error("the server answered with the id {0}, which no request has")]
    WrongId(String),
}

fn how(ending: &Option<Arc<ServerExit>>) -> String {
    ending.as_ref().map(|ending| format!(": {ending}")).unwrap_or_default()
}
