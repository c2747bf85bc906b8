//! Messages between the window's process and the trusted process: page commands and their results.
//!
//! - The messages are sent over an unnamed socket pair. The window's process inherits one end, and no other process can
//!   connect.

use super::command_error::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Message from the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum FromWindow {
    /// The page runs a command.
    Call { id: u64, command: String, arguments: Value },
    /// The requested window is on the screen. `number` is its X11 id, if it has one.
    Shown { number: Option<u64> },
}

/// Message to the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ToWindow {
    /// Result of the command with this id.
    Answer { id: u64, outcome: Result<Box<RawValue>, CommandError> },
    /// The state has changed, so the page should query it again.
    Changed,
    /// Show the window in front of all others.
    Show,
}
