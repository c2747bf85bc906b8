//! Why a command failed, for the page.

use ironcurtain_protocol::{ErrorCode, Reply};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// The most characters of a reason that are shown.
const LONGEST: usize = 2000;

/// Why a command failed. The page matches `code` and shows `message`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommandError {
    code: ErrorCode,
    message: String,
}

impl CommandError {
    /// The answer to a request that cannot be done, and why, which may be in part in somebody else's words.
    pub(super) fn refused(problem: impl Display) -> Self {
        let message = visible::lines(&visible::head(&problem.to_string(), LONGEST));
        Self { code: ErrorCode::Storage, message }
    }

    /// The answer to a request that makes no sense.
    pub(super) fn malformed(problem: impl Display) -> Self {
        Self { code: ErrorCode::Malformed, message: problem.to_string() }
    }

    /// A reply that is not the one that was asked for proves nothing, so it is a failure.
    pub(super) fn of(reply: Reply) -> Self {
        if let Reply::Failed { code, message } = reply {
            return Self { code, message };
        }
        Self::malformed("the answer was not understood; try again")
    }

    /// The words for the person.
    pub(super) fn into_message(self) -> String {
        self.message
    }
}

/// Does what reads or writes files, away from the thread that draws.
pub(super) async fn aside<T: Send + 'static, E: Display + Send + 'static>(
    act: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, CommandError> {
    match tauri::async_runtime::spawn_blocking(act).await {
        Ok(done) => done.map_err(CommandError::refused),
        Err(problem) => Err(CommandError::refused(problem)),
    }
}
