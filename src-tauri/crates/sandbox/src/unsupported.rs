//! The facade of platforms without a sandbox: the same names, and every launch refused.

use std::{convert::Infallible, path::Path, process::ExitCode};

use serde::{Deserialize, Serialize};

use crate::{error::SandboxLaunchError, spec::Spec};

/// A running supervisor: there is none on this platform.
#[derive(Debug)]
pub struct LaunchedSandbox {
    /// Write end of the server's standard input.
    #[cfg(unix)]
    pub stdin: std::os::fd::OwnedFd,
    /// Read end of the server's standard output.
    #[cfg(unix)]
    pub stdout: std::os::fd::OwnedFd,
    /// Read end of the server's standard error.
    #[cfg(unix)]
    pub stderr: std::os::fd::OwnedFd,
    /// The control conversation.
    #[cfg(unix)]
    pub control: std::os::unix::net::UnixStream,
    /// The supervisor's process id, for display.
    pub pid: u32,
    /// Kills the sandbox.
    pub kill: KillHandle,
    /// The source of the proxy's listener.
    pub egress: Option<Egress>,
}

/// Hands out the listener that is the sandbox's only way to the network: there is none on this platform.
#[derive(Debug)]
pub struct Egress(Infallible);

impl Egress {
    /// The listener.
    pub fn listener(self) -> std::io::Result<std::net::TcpListener> {
        match self.0 {}
    }
}

/// Kills one sandbox: there is none on this platform.
#[derive(Clone, Debug)]
pub struct KillHandle(Infallible);

impl KillHandle {
    /// Kills the supervisor, and with it everything in the sandbox.
    pub fn kill(&self) {
        match self.0 {}
    }
}

impl KillHandle {
    /// Lets the supervisor clean up and end, and kills it if that takes longer than `patience`.
    pub fn kill_after(self, _patience: std::time::Duration) {
        match self.0 {}
    }
}

/// The end of a supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxExit {
    /// The server's exit status (128 + signal), when the supervisor ended by itself.
    pub status: Option<i32>,
    /// The signal that ended the supervisor.
    pub signal: Option<i32>,
}

/// The ability of this machine to make sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// True when a sandbox was launched just now.
    pub usable: bool,
    /// The things that are missing, one sentence each.
    pub missing: Vec<String>,
    /// The command a person can run to get what is missing, where there is one.
    pub fix_command: Option<String>,
    /// The things that work, but not as well as they should.
    pub warnings: Vec<String>,
}

/// Refuses.
pub fn launch(
    _spec: &Spec,
    _supervisor_program: &Path,
    _on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedSandbox, SandboxLaunchError> {
    Err(SandboxLaunchError::Unsupported)
}

/// Says that there is no sandbox here.
pub fn check(_supervisor_program: &Path, _state_dir: &str, _allow_root: bool) -> Availability {
    let missing = vec![SandboxLaunchError::Unsupported.to_string()];
    Availability { usable: false, missing, fix_command: None, warnings: vec![] }
}

/// Refuses.
pub fn program(_args: impl Iterator<Item = String>) -> ExitCode {
    use std::io::Write;
    // If standard error is closed, the exit status still says it.
    let _ = writeln!(std::io::stderr(), "{}", SandboxLaunchError::Unsupported);
    ExitCode::FAILURE
}

/// Makes sure that limits hold for all processes of a sandbox together: there is none on this platform.
pub fn prepare_control_groups() {}

/// The allocator of this system gives large blocks back by itself.
pub fn give_large_blocks_back() {}
