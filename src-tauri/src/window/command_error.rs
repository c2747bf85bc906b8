//! Command errors that are sent to the page.

use ironcurtain_protocol::{ErrorCode, Reply};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Maximum length of a message, in characters.
const MAX_LEN: usize = 2000;

/// Reason a command failed. The page uses `code` and shows `message`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommandError {
    code: ErrorCode,
    message: String,
}

impl CommandError {
    /// Creates the error for a request that failed. The message may contain untrusted text.
    pub(super) fn refused(problem: impl Display) -> Self {
        let message = visible::lines(&visible::head(&problem.to_string(), MAX_LEN));
        Self { code: ErrorCode::Storage, message }
    }

    /// Creates the error for an invalid request.
    pub(super) fn malformed(problem: impl Display) -> Self {
        Self { code: ErrorCode::Malformed, message: problem.to_string() }
    }

    /// Converts a reply from the trusted process. An error reply becomes its error, and any other reply becomes an
    /// "unexpected reply" error.
    pub(super) fn of(reply: Reply) -> Self {
        if let Reply::Failed { code, message } = reply {
            return Self { code, message };
        }
        Self::malformed("unexpected reply from the trusted process; try again")
    }

    /// Returns the message for the user.
    pub(super) fn into_message(self) -> String {
        self.message
    }
}

/// Runs file operations on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static, E: Display + Send + 'static>(
    act: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, CommandError> {
    match tauri::async_runtime::spawn_blocking(act).await {
        Ok(done) => done.map_err(CommandError::refused),
        Err(problem) => Err(CommandError::refused(problem)),
    }
}
