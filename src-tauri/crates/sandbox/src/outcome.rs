//! Results that exist on every platform: the support check and a supervisor's exit.

use serde::{Deserialize, Serialize};

/// Result of checking whether this machine supports sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// `true` if a trial sandbox was launched successfully.
    pub usable: bool,
    /// Missing requirements, one sentence each.
    pub missing: Vec<String>,
    /// Command that fixes the first missing requirement, if one is known.
    pub fix_command: Option<String>,
    /// Unavailable or degraded features, one sentence each.
    pub warnings: Vec<String>,
}

/// Exit status of `ironcurtain-sandbox` if the command was never started.
pub(crate) const FAILED: u8 = 125;

/// Exit status of a supervisor and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxExit {
    /// Exit status of the server, or 128 plus the signal number; `None` if the supervisor was killed.
    pub status: Option<i32>,
    /// Signal that killed the supervisor, if any.
    pub signal: Option<i32>,
}
