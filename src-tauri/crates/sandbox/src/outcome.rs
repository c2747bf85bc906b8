//! Results of trial launches, and exits of supervisors, on every platform.

use serde::{Deserialize, Serialize};

/// Result of checking whether this machine can create sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// `true` if a trial sandbox was launched successfully.
    pub usable: bool,
    /// Missing requirements, as one sentence each.
    pub missing: Vec<String>,
    /// Command that installs or enables the missing requirements, if one is known.
    pub fix_command: Option<String>,
    /// Features that are unavailable or degraded, as one sentence each.
    pub warnings: Vec<String>,
}

/// Exit status of `ironcurtain-sandbox` if the program was never started.
pub(crate) const FAILED: u8 = 125;

/// Exit of a supervisor, with the status of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxExit {
    /// Exit status of the server, or 128 plus the signal number; `None` if the supervisor was killed.
    pub status: Option<i32>,
    /// Signal that killed the supervisor, if any.
    pub signal: Option<i32>,
}
