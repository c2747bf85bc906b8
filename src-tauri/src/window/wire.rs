//! Messages between the process of the window and the trusted process: commands of the page, and their results.
//!
//! - They travel over an unnamed socket pair. The window's process inherits one end, and no other process can
//!   connect.

use super::command_error::CommandError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Message from the process of the window.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum FromWindow {
    /// The page runs a command.
    Call { id: u64, command: String, arguments: Value },
    /// The window is on the screen as requested. `number` is its X11 id, if it has one.
    Shown { number: Option<u64> },
}

/// Message to the process of the window.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ToWindow {
    /// Result of the command call with this id.
    Answer { id: u64, outcome: Result<Box<RawValue>, CommandError> },
    /// The state has changed, and the page should query it again.
    Changed,
    /// Requests that the window is shown in front of all others.
    Show,
}
