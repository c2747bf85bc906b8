//! Starts the daemon if none is running.
//!
//! - A headless daemon that fails to start writes the reason to standard error, where this module reads it. A daemon
//!   that has started writes nothing to standard error.

use ironcurtain_paths::OwnProgram;
use ironcurtain_protocol::{ConnectError, HOME_VARIABLE, Sockets};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum time to wait for a started daemon to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to wait for a daemon that another process started concurrently, counted from the exit of our daemon.
const RACE_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum time to wait for a daemon to exit after it closed a connection.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Delay before the second connection attempt. Doubles with each attempt, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of bytes kept from a starting daemon's standard error.
const MAX_REPORTED: u64 = 64 * 1024;

/// Daemon started by this shim.
pub struct LaunchedDaemon {
    program: PathBuf,
    child: Child,
    stderr_text: Option<JoinHandle<String>>,
}

/// Failure to start a daemon.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The shim never starts a daemon as root, because the user must decide that, not the shim's parent process.
    #[error(
        "IronCurtain is not running, and does not start automatically as root; run `ironcurtain daemon --allow-root` \
        first, or run the agent as a normal user"
    )]
    Root,
    #[error("failed to find the path of ironcurtain-shim: {0}")]
    OwnPath(io::Error),
    #[error(
        "IronCurtain is not running, and its programs are not next to `{}`; reinstall IronCurtain",
        .0.display()
    )]
    NotInstalled(PathBuf),
    #[error("IronCurtain is not running, and `{}` failed to start: {source}", .program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The daemon is running but not listening.
    #[error(
        "IronCurtain was not running; started `{program}`, but it did not listen within {n} s; run it yourself to see why",
        program = .0.display(), n = START_TIMEOUT.as_secs()
    )]
    NotListening(PathBuf),
    #[error(transparent)]
    Exited(#[from] DaemonExit),
}

/// Reason a daemon exited after it was started.
#[derive(Debug, thiserror::Error)]
pub enum DaemonExit {
    /// The daemon reported this error.
    #[error(
        "IronCurtain is not running and failed to start: {0}. Fix this, then restart the agent's servers"
    )]
    Reported(String),
    /// The daemon exited without reporting an error.
    #[error(
        "IronCurtain was not running; started `{}`, but it exited with {status}; run it yourself to see why",
        .program.display()
    )]
    Status { program: PathBuf, status: ExitStatus },
    /// The exit status could not be read.
    #[error("IronCurtain was not running; started `{}`, but it exited: {problem}", .program.display())]
    Unknown { program: PathBuf, problem: io::Error },
}

impl DaemonExit {
    /// Returns `true` if the daemon was killed by a signal.
    pub fn is_kill(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.signal().is_some(),
            Self::Reported(_) | Self::Unknown { .. } => false,
        }
    }
}

/// Starts the daemon and connects to it, or to a daemon that another process started concurrently.
pub fn start_and_connect(sockets: &Sockets) -> Result<(UnixStream, LaunchedDaemon), LaunchError> {
    if rustix::process::geteuid().is_root() {
        return Err(LaunchError::Root);
    }
    let mut launched = LaunchedDaemon::start(&daemon_program()?)?;
    let mut deadline = Instant::now() + START_TIMEOUT;
    let mut ended = false;
    let mut pause = FIRST_PAUSE;
    loop {
        match sockets.connect()? {
            Some(stream) => return Ok((stream, launched)),
            None if Instant::now() >= deadline => return Err(launched.into_error()),
            // Our daemon may have exited because another daemon won the race to start and will listen soon.
            None => thread::sleep(pause),
        }
        if !ended && launched.has_exited() {
            ended = true;
            deadline = deadline.min(Instant::now() + RACE_TIMEOUT);
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

impl LaunchedDaemon {
    fn start(program: &Path) -> Result<Self, LaunchError> {
        let mut child =
            start(program).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        // Reads until EOF so that the daemon never blocks or fails when writing to this pipe.
        let stderr_text = child.stderr.take().map(|stderr| thread::spawn(move || read(stderr)));
        Ok(Self { program: program.to_owned(), child, stderr_text })
    }

    fn has_exited(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn into_error(mut self) -> LaunchError {
        if self.has_exited() { self.into_exit().into() } else { LaunchError::NotListening(self.program) }
    }

    /// Returns the reason the daemon exited after closing a connection, or `None` if it is still running.
    pub fn exit_reason(mut self) -> Option<DaemonExit> {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while !self.has_exited() {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(FIRST_PAUSE);
        }
        Some(self.into_exit())
    }

    /// Waits for the daemon to exit and returns the reason.
    fn into_exit(mut self) -> DaemonExit {
        let stderr_text =
            self.stderr_text.take().and_then(|stderr_text| stderr_text.join().ok()).unwrap_or_default();
        let program = self.program;
        match (reported_error(&stderr_text), self.child.wait()) {
            (Some(why), _) => DaemonExit::Reported(why.to_owned()),
            (None, Ok(status)) => DaemonExit::Status { program, status },
            (None, Err(problem)) => DaemonExit::Unknown { program, problem },
        }
    }
}

/// Reads standard error until EOF and returns its first [`MAX_REPORTED`] bytes.
fn read(mut stderr: impl Read) -> String {
    let mut stderr_text = Vec::new();
    // Ignores the error: the bytes read so far are still useful.
    let _ = stderr.by_ref().take(MAX_REPORTED).read_to_end(&mut stderr_text);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&stderr_text).into_owned()
}

/// Returns the last error message that the daemon reported.
fn reported_error(stderr_text: &str) -> Option<&str> {
    stderr_text.lines().rev().find_map(|line| line.strip_prefix("ironcurtain: "))
}

/// Environment variables passed to the started program.
///
/// Other variables are not passed, because the client's settings can set them, and a repository may contain such
/// settings. The program takes the display, bus and `XDG_*` variables from the user's login session.
const PASSED_VARIABLES: [&str; 5] = ["HOME", HOME_VARIABLE, "PATH", "LANG", "LC_ALL"];

/// Returns the path of `ironcurtain`. This program starts the app in the user's desktop session, or runs headless if
/// there is no desktop session.
fn daemon_program() -> Result<PathBuf, LaunchError> {
    let own = std::env::current_exe().map_err(LaunchError::OwnPath)?;
    let program = own.parent().map(|directory| directory.join("ironcurtain")).filter(|path| path.is_file());
    program.ok_or(LaunchError::NotInstalled(own))
}

/// Starts the program with only the [`PASSED_VARIABLES`] variables and without the client's pipes. It creates a session of its
/// own so that it outlives the client.
fn start(program: &Path) -> io::Result<Child> {
    let mut command = OwnProgram::open(program)?.into_command();
    command.args(["daemon", "--ask", "desktop", "--background"]).env_clear();
    command.envs(PASSED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_message(script: &str) -> Option<String> {
        let mut child =
            std::process::Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let stderr_text = child.stderr.take().map(|stderr| thread::spawn(move || read(stderr)));
        LaunchedDaemon { program: "/p".into(), child, stderr_text }.exit_reason().map(|end| end.to_string())
    }

    #[test]
    fn exit_reason_is_the_reported_error_or_the_status() {
        let message =
            exit_message("echo noise >&2; echo 'ironcurtain: `/c`, line 3: no rule' >&2; exit 1").unwrap();
        let expected = "IronCurtain is not running and failed to start: `/c`, line 3: no rule. Fix this, then restart the agent's servers";
        assert_eq!(message, expected);
        let silent = exit_message("exit 3").unwrap();
        assert!(
            silent.ends_with("but it exited with exit status: 3; run it yourself to see why"),
            "{silent}"
        );
    }

    #[test]
    fn running_daemon_has_no_exit_reason() {
        assert_eq!(exit_message("exec sleep 4 > /dev/null"), None);
    }
}
