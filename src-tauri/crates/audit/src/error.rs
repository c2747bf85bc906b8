//! The reasons for which something is not on record.

use std::io;
use std::path::PathBuf;

/// The reason why something is not on record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// The log cannot be written.
    #[error("the audit log cannot be written: {0}")]
    Write(String),
    /// The log cannot be read, or does not hold.
    #[error("failed to continue the audit log: {problem}; move the folder `{dir}` away to begin a new log")]
    Broken {
        /// The folder of the log.
        dir: PathBuf,
        /// The reason.
        problem: String,
    },
    /// The log is not the one that was written.
    #[error(
        "the audit log `{path}` {what} while IronCurtain ran: put it back, or start IronCurtain again to begin a new one"
    )]
    Lost {
        /// The log.
        path: PathBuf,
        /// The fate of the log, in words.
        what: &'static str,
    },
    /// The trusted process is ending.
    #[error("the audit log is closed: the trusted process is ending")]
    Ended,
}

impl AuditError {
    pub(super) fn write(error: &io::Error) -> Self {
        Self::Write(error.to_string())
    }
}
