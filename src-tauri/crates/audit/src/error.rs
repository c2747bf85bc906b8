//! Errors of the audit log.

use std::io;
use std::path::PathBuf;

/// Reason why something could not be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Writing the log failed.
    #[error("the audit log cannot be written: {0}")]
    Write(String),
    /// The log is unreadable, or its chain is broken.
    #[error("failed to continue the audit log: {problem}; move the folder `{dir}` away to start a new log")]
    Broken {
        /// Directory of the log.
        dir: PathBuf,
        /// Reason.
        problem: String,
    },
    /// The log on disk was removed or changed by another process.
    #[error(
        "the audit log `{path}` {what} while IronCurtain ran: put it back, or restart IronCurtain to start a new one"
    )]
    Lost {
        /// Path of the log file.
        path: PathBuf,
        /// Verb phrase that describes the problem.
        what: &'static str,
    },
    /// The trusted process is shutting down.
    #[error("the audit log is closed: the trusted process is shutting down")]
    Ended,
}

impl AuditError {
    pub(super) fn write(error: &io::Error) -> Self {
        Self::Write(error.to_string())
    }
}
