//! Messages between the window's process and the trusted process: commands from the page, and their results.
//!
//! - They use an unnamed socket pair. The window's process inherits one end, and no other process can connect.

use super::command_error::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Message from the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum FromWindow {
    /// The page calls a command.
    Call { id: u64, command: String, arguments: Value },
    /// The window is on the screen as requested, with this id if the display server has window ids.
    Shown { number: Option<u64> },
}

/// Message to the window's process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ToWindow {
    /// Result of the call with this id.
    Answer { id: u64, outcome: Result<Box<RawValue>, CommandError> },
    /// Something changed: the page queries again.
    Changed,
    /// Show the window in front of all others.
    Show,
}
