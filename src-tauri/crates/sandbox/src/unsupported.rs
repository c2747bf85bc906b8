//! Stub for platforms without sandboxes, on which every launch fails.

use std::{convert::Infallible, path::Path, process::ExitCode};

use crate::{
    error::SandboxLaunchError,
    outcome::{Availability, SandboxExit},
    spec::Spec,
};

/// Running supervisor. Never created on this platform.
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
    /// Control stream; see [`control`](crate::control).
    #[cfg(unix)]
    pub control: std::os::unix::net::UnixStream,
    /// The supervisor's process id, for display.
    pub pid: u32,
    /// Handle that kills the sandbox.
    pub kill: KillHandle,
    /// Receiver of the proxy's listener.
    pub egress: Option<Egress>,
    /// Connection to the view.
    #[cfg(unix)]
    pub view: Option<std::os::unix::net::UnixStream>,
    /// Link for services on this computer.
    pub services: Option<ServiceLink>,
}

/// Running supervisor of a run. Never created on this platform.
#[derive(Debug)]
pub struct LaunchedRun {
    /// Control stream; see [`control`](crate::control).
    #[cfg(unix)]
    pub control: std::os::unix::net::UnixStream,
    /// Connection to the view; see [`file_access`](crate::file_access).
    #[cfg(unix)]
    pub view: std::os::unix::net::UnixStream,
    /// The supervisor's process id, for display.
    pub pid: u32,
    /// Handle that kills the sandbox.
    pub kill: KillHandle,
    /// Receiver of the proxy's listener.
    pub egress: Option<Egress>,
    /// Link for services on this computer.
    pub services: Option<ServiceLink>,
}

/// Launcher's end of the service link of one run. Never created on this platform.
#[derive(Debug)]
pub struct ServiceLink(Infallible);

impl ServiceLink {
    /// Clones the handle to the link.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        match self.0 {}
    }

    /// Waits for the next request.
    pub fn next(&self) -> std::io::Result<ServiceRequest> {
        match self.0 {}
    }

    /// Connects to a port on which a program in the run listens.
    pub fn connect(&self, _port: u16) -> std::io::Result<std::net::TcpStream> {
        match self.0 {}
    }
}

/// A run's pending request to connect to a service. Never created on this platform.
#[derive(Debug)]
pub struct ServiceRequest {
    /// Port to which the run wants to connect.
    pub port: u16,
    /// Stream of the request. It becomes readable when the program gives up waiting.
    #[cfg(unix)]
    pub stream: std::os::unix::net::UnixStream,
}

impl ServiceRequest {
    /// Allows the connection and returns the listener on the port inside the sandbox.
    pub fn allow(self) -> std::io::Result<Option<std::net::TcpListener>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// Returns `false`, because no run exists on this platform.
#[must_use]
pub fn is_host_port_listening(_port: u16) -> bool {
    false
}

/// Receiver of a sandbox's listeners. Never created on this platform.
#[derive(Debug)]
pub struct Egress(Infallible);

impl Egress {
    /// Waits for the listener on the proxy's port.
    pub fn listener(&self) -> std::io::Result<std::net::TcpListener> {
        match self.0 {}
    }

    /// Waits for the listener of the next socket.
    #[cfg(unix)]
    pub fn socket(&self) -> std::io::Result<std::os::unix::net::UnixListener> {
        match self.0 {}
    }
}

/// Handle that kills one sandbox. Never created on this platform.
#[derive(Clone, Debug)]
pub struct KillHandle(Infallible);

impl KillHandle {
    /// Kills the supervisor and thereby the whole sandbox.
    pub fn kill(&self) {
        match self.0 {}
    }
}

impl KillHandle {
    /// Waits up to `patience` for the supervisor to exit, then kills it.
    pub fn kill_after(self, _timeout: std::time::Duration) {
        match self.0 {}
    }
}

/// Returns [`SandboxLaunchError::Unsupported`].
pub fn launch(
    _spec: &Spec,
    _supervisor_program: &Path,
    _on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedSandbox, SandboxLaunchError> {
    Err(SandboxLaunchError::Unsupported)
}

/// Returns [`SandboxLaunchError::Unsupported`].
#[cfg(unix)]
pub fn launch_run(
    _spec: &Spec,
    _supervisor_program: &Path,
    _streams: [std::os::fd::OwnedFd; 3],
    _link: std::os::fd::OwnedFd,
    _on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedRun, SandboxLaunchError> {
    Err(SandboxLaunchError::Unsupported)
}

/// Reports that sandboxes are not supported on this platform.
pub fn check(_supervisor_program: &Path, _state_dir: &str, _allow_root: bool) -> Availability {
    let missing = vec![SandboxLaunchError::Unsupported.to_string()];
    Availability { usable: false, missing, fix_command: None, warnings: vec![] }
}

/// Returns an error, because this platform has no sandboxes.
pub fn check_tun() -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Returns the reason.
#[must_use]
pub fn describe_missing_tun(reason: &str) -> String {
    reason.to_owned()
}

/// Prints that this platform does not support sandboxes.
pub fn program(_args: impl Iterator<Item = String>) -> ExitCode {
    use std::io::Write;
    // Ignores a closed standard error: the exit status still reports the failure.
    let _ = writeln!(std::io::stderr(), "{}", SandboxLaunchError::Unsupported);
    ExitCode::FAILURE
}

/// Does nothing, because this platform has no control groups.
pub fn prepare_control_groups() {}

/// Does nothing, because this platform's allocator returns large blocks by itself.
pub fn return_large_blocks() {}
