//! The end of a server, and why a request to it has no answer.

use crate::wire::MAX_LINE_BYTES;
use std::fmt;
use std::sync::Arc;

/// The end of a server's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerExit {
    /// Its exit status, 128 and the signal where one ended it.
    pub status: Option<i32>,
    /// Why the conversation with a remote server is over.
    pub remote: Option<String>,
    /// The last that it wrote to standard error, as people and agents may be shown it.
    pub stderr_tail: String,
}

impl fmt::Display for ServerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(remote) = &self.remote {
            return f.write_str(remote);
        }
        match self.status {
            None => f.write_str("it ended")?,
            Some(status @ 129..=192) => write!(f, "it ended by signal {} (status {status})", status - 128)?,
            Some(status) => write!(f, "it ended with status {status}")?,
        }
        if self.stderr_tail.is_empty() {
            return Ok(());
        }
        write!(f, "; the last it wrote to standard error: `{}`", self.stderr_tail)
    }
}

/// Why a request that a server has been sent has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It ended.
    #[error("the server ended before it answered{}", how(.0))]
    Ended(Option<Arc<ServerExit>>),
    /// It sent what is not read.
    #[error("the server's answer is larger than {n} MB; IronCurtain takes at most {most} MB", n = .0 >> 20, most = MAX_LINE_BYTES >> 20)]
    TooLong(u64),
    /// It sent more than there is memory for.
    #[error(
        "no memory was left for a long message of the server, because of what other sessions hold; try again, or give more with `memoryMib` in `config.json`"
    )]
    NoRoom,
    /// Its answer is no message.
    #[error("the server's answer is not understood: {0}")]
    NotUnderstood(String),
    /// It asked for input that there is none of.
    #[error("the server asked for input in a way that is not taken: {0}")]
    Input(String),
    /// Its answer has another id.
    #[error("the server answered with the id {0}, which no request has")]
    WrongId(String),
}

fn how(ending: &Option<Arc<ServerExit>>) -> String {
    ending.as_ref().map(|ending| format!(": {ending}")).unwrap_or_default()
}
