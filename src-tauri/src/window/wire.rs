//! The lines between the window's process and the trusted one: commands of the page one way, their answers the other.
//!
//! - They go over a pair of sockets that has no name: the one end was handed to the window's process as it began, and nothing
//!   else can reach the other.

use super::command_error::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A line of the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum FromWindow {
    /// The page calls a command.
    Call { id: u64, command: String, arguments: Value },
    /// The window is on the screen, as it was told, under this number; where screens have no numbers for windows, under none.
    Shown { number: Option<u64> },
}

/// A line to the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ToWindow {
    /// The answer to the call of that number.
    Answer { id: u64, outcome: Result<Box<RawValue>, CommandError> },
    /// Something changed; the page asks again.
    Changed,
    /// The window is to be on the screen, before others.
    Show,
}
