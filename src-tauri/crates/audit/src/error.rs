//! Errors of the audit log.

use std::io;
use std::path::PathBuf;

/// Reason an entry could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Writing the log failed.
    #[error("the audit log cannot be written: {0}")]
    Write(String),
    /// The log is unreadable, or its hash chain is invalid.
    #[error("failed to continue the audit log: {problem}; move the folder `{dir}` away to start a new log")]
    Broken {
        /// Directory of the log.
        dir: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// Another process removed or changed the log while it was open.
    #[error(
        "the audit log `{path}` {what} while IronCurtain was running; restore it, or restart IronCurtain to start a new log"
    )]
    Lost {
        /// Path of the log file.
        path: PathBuf,
        /// Problem as a verb phrase, such as "was removed".
        what: &'static str,
    },
    /// The trusted process is shutting down.
    #[error("the audit log is closed: the trusted process is shutting down")]
    Closed,
}

impl AuditError {
    pub(super) fn write(error: &io::Error) -> Self {
        Self::Write(error.to_string())
    }
}
