//! Results of trials and launches, on every platform.

use serde::{Deserialize, Serialize};

/// Ability of this machine to create sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// True if a sandbox was just launched successfully.
    pub usable: bool,
    /// Missing requirements, one sentence each.
    pub missing: Vec<String>,
    /// Command that installs or enables what is missing, if known.
    pub fix_command: Option<String>,
    /// Degraded features, one sentence each.
    pub warnings: Vec<String>,
}

/// Exit status for a failure before the program could be started.
pub(crate) const FAILED: u8 = 125;

/// Exit of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxExit {
    /// The server's exit status (or 128 + the signal number), if the supervisor exited.
    pub status: Option<i32>,
    /// The signal that killed the supervisor.
    pub signal: Option<i32>,
}
