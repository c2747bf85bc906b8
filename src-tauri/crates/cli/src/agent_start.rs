//! Starts the trusted process for an agent client's shim: the app in the user's desktop session or, without one, this
//! program as a headless daemon.

use crate::daemon_arguments::DaemonArguments;
use crate::session_environment::SessionEnvironment;
use ironcurtain_paths::OwnProgram;
use ironcurtain_protocol::{SocketPathError, Sockets};
use std::convert::Infallible;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time to wait for the app to listen on its socket. Shorter than the shim's own timeout.
const START_TIMEOUT: Duration = Duration::from_secs(6);

/// Delay between attempts to connect to the app.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reason the app could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AppStartError {
    #[error("found no desktop session of this user")]
    NoDesktop,
    #[error(transparent)]
    NoSocket(#[from] SocketPathError),
    #[error("failed to start `{0}`: {1}")]
    NotStarted(PathBuf, io::Error),
    /// The app exited or did not listen in time.
    #[error("`{0}` {1}")]
    NotListening(PathBuf, String),
}

/// Starts the app and returns once it is listening. If that fails, for example because there is no desktop session,
/// replaces this process with a headless daemon in a clean environment.
///
/// # Errors
/// Returns an error if replacing this process fails.
pub async fn perform(programs: &Path, options: &DaemonArguments) -> io::Result<()> {
    let environment = SessionEnvironment::find().await;
    match start_app(programs, &environment, options.allow_root).await {
        Ok(()) => Ok(()),
        Err(why) => {
            tracing::warn!("denying every call that requires approval: {why}");
            match exec_headless(&environment, options)? {}
        }
    }
}

async fn start_app(
    programs: &Path,
    environment: &SessionEnvironment,
    allow_root: bool,
) -> Result<(), AppStartError> {
    if !environment.has_display() {
        return Err(AppStartError::NoDesktop);
    }
    let sockets = Sockets::from_environment(|name| environment.get(name))?;
    let path = programs.join("ironcurtain-desktop");
    let start_error = |error| AppStartError::NotStarted(path.clone(), error);
    let mut command = OwnProgram::open(&path).map_err(start_error)?.into_command();
    set_environment(&mut command, environment);
    command.arg("--background").args(allow_root.then_some("--allow-root"));
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(start_error)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if matches!(sockets.connect(), Ok(Some(_))) {
            return Ok(());
        }
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => tokio::time::sleep(POLL_INTERVAL).await,
            Ok(Some(status)) => {
                return Err(AppStartError::NotListening(path, format!("exited with {status}")));
            }
            // Does not kill the app, which may be showing an error to the user.
            Ok(None) | Err(_) => {
                let problem = format!("did not listen within {} s", START_TIMEOUT.as_secs());
                return Err(AppStartError::NotListening(path, problem));
            }
        }
    }
}

/// Replaces this process with a daemon that denies every call that requires approval.
fn exec_headless(environment: &SessionEnvironment, options: &DaemonArguments) -> io::Result<Infallible> {
    let mut command = OwnProgram::open(&std::env::current_exe()?)?.into_command();
    set_environment(&mut command, environment);
    command.args(["daemon", "--ask", "deny"]);
    command
        .args(options.background.then_some("--background"))
        .args(options.allow_root.then_some("--allow-root"));
    Err(command.exec())
}

/// Makes the command run in `/` with exactly these environment variables.
fn set_environment(command: &mut Command, environment: &SessionEnvironment) {
    command.env_clear().envs(environment.variables()).current_dir("/");
}
