//! Starting the daemon when none runs.
//!
//! - A headless daemon that does not start says why on its standard error, which is read here; once it has started it writes
//!   there no more.

use ironcurtain_paths::OwnProgram;
use ironcurtain_protocol::{ConnectError, HOME_VARIABLE, Sockets};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time that a daemon that was just started may take before it listens.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// The time that another daemon, that won the race to start, may take before it listens once ours has given up.
const RACE_DEADLINE: Duration = Duration::from_secs(1);

/// The time that a daemon that lets go of its connections may take to end.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// First pause between two looks; doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The most that is read of what a daemon says while it starts.
const MOST_SAID: u64 = 64 * 1024;

/// A daemon that was started here.
pub struct Launched {
    program: PathBuf,
    child: Child,
    said: Option<JoinHandle<String>>,
}

/// Why no daemon runs that was started here.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// To run as root is for a person to say, not for whatever started this.
    #[error(
        "IronCurtain is not running, and it does not start by itself as root; start `ironcurtain daemon \
        --allow-root` first, or run the agent as an ordinary user"
    )]
    Root,
    /// The place of the programs is unknown.
    #[error("the shim's own path is unknown: {0}")]
    OwnPath(io::Error),
    /// The programs are not in their place.
    #[error(
        "IronCurtain is not running and its programs are not beside `{}`; install it again",
        .0.display()
    )]
    NotInstalled(PathBuf),
    /// The program does not start.
    #[error("IronCurtain is not running and `{}` could not be started: {source}", .program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The socket cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It runs, and nobody listens.
    #[error(
        "IronCurtain was not running; `{program}` was started and did not listen within {n} s; start it yourself to see why",
        program = .0.display(), n = START_DEADLINE.as_secs()
    )]
    Silent(PathBuf),
    /// It ended.
    #[error(transparent)]
    Ended(#[from] DaemonEnd),
}

/// Why a daemon that was started here ended.
#[derive(Debug, thiserror::Error)]
pub enum DaemonEnd {
    /// In its own words.
    #[error(
        "IronCurtain is not running and could not be started: {0}. Mend that, then start the agent's servers again"
    )]
    Said(String),
    /// It said nothing.
    #[error(
        "IronCurtain was not running; `{}` was started and ended with {status}; start it yourself to see why",
        .program.display()
    )]
    Status {
        /// The program.
        program: PathBuf,
        /// Its end.
        status: ExitStatus,
    },
    /// Not even its status is known.
    #[error("IronCurtain was not running, and `{}` ended: {problem}", .program.display())]
    Unknown {
        /// The program.
        program: PathBuf,
        /// The operating system's answer.
        problem: io::Error,
    },
}

impl DaemonEnd {
    /// Returns whether it was killed, and did not end for a reason of its own.
    pub fn is_kill(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.signal().is_some(),
            Self::Said(_) | Self::Unknown { .. } => false,
        }
    }
}

/// Starts the daemon and connects to it, or to another one that won the race to start.
pub fn and_connect(sockets: &Sockets) -> Result<(UnixStream, Launched), LaunchError> {
    if rustix::process::geteuid().is_root() {
        return Err(LaunchError::Root);
    }
    let mut launched = Launched::start(&daemon_program()?)?;
    let mut deadline = Instant::now() + START_DEADLINE;
    let mut ended = false;
    let mut pause = FIRST_PAUSE;
    loop {
        match sockets.connect()? {
            Some(stream) => return Ok((stream, launched)),
            None if Instant::now() >= deadline => return Err(launched.why_it_does_not_listen()),
            // It may also have ended because another one won the race to start; that one will listen.
            None => thread::sleep(pause),
        }
        if !ended && launched.has_ended() {
            ended = true;
            deadline = deadline.min(Instant::now() + RACE_DEADLINE);
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Launched {
    fn start(program: &Path) -> Result<Self, LaunchError> {
        let mut child =
            start(program).map_err(|source| LaunchError::Start { program: program.to_owned(), source })?;
        // Read to its end, or for as long as this program runs: nobody is to write into a pipe that nobody reads.
        let said = child.stderr.take().map(|stderr| thread::spawn(move || read(stderr)));
        Ok(Self { program: program.to_owned(), child, said })
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn why_it_does_not_listen(mut self) -> LaunchError {
        if self.has_ended() { self.why_it_ended().into() } else { LaunchError::Silent(self.program) }
    }

    /// The reason why it let go of a connection, if that is because it ended.
    pub fn why_it_let_go(mut self) -> Option<DaemonEnd> {
        let deadline = Instant::now() + END_DEADLINE;
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(FIRST_PAUSE);
        }
        Some(self.why_it_ended())
    }

    /// For one that has ended.
    fn why_it_ended(mut self) -> DaemonEnd {
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        let program = self.program;
        match (last_word(&said), self.child.wait()) {
            (Some(why), _) => DaemonEnd::Said(why.to_owned()),
            (None, Ok(status)) => DaemonEnd::Status { program, status },
            (None, Err(problem)) => DaemonEnd::Unknown { program, problem },
        }
    }
}

/// Reads what it says, to its end.
fn read(mut stderr: impl Read) -> String {
    let mut said = Vec::new();
    // What was read is worth telling in any case.
    let _ = stderr.by_ref().take(MOST_SAID).read_to_end(&mut said);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&said).into_owned()
}

/// The sentence that the daemon ends with.
fn last_word(said: &str) -> Option<&str> {
    said.lines().rev().find_map(|line| line.strip_prefix("ironcurtain: "))
}

/// Variables that the started program gets from this one.
///
/// Whoever wrote the client's settings chooses this environment, which may be a repository. The started program takes everything else
/// (displays, the bus, `XDG_*`) from the user's login session.
const PASSED: [&str; 5] = ["HOME", HOME_VARIABLE, "PATH", "LANG", "LC_ALL"];

/// Returns the path of `ironcurtain`, which starts the app in the user's desktop session, or continues without one.
fn daemon_program() -> Result<PathBuf, LaunchError> {
    let own = std::env::current_exe().map_err(LaunchError::OwnPath)?;
    let program = own.parent().map(|directory| directory.join("ironcurtain")).filter(|path| path.is_file());
    program.ok_or(LaunchError::NotInstalled(own))
}

/// Starts it without anything of ours: no descriptor of the conversation, no variable but the listed ones, and not in the
/// client's process group, so that it outlives the client.
fn start(program: &Path) -> io::Result<Child> {
    let opened = OwnProgram::open(program)?;
    let mut command = opened.command();
    command.args(["daemon", "--ask", "desktop", "--detach"]).env_clear();
    command.envs(PASSED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str) -> Option<String> {
        let mut child =
            std::process::Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let said = child.stderr.take().map(|stderr| thread::spawn(move || read(stderr)));
        Launched { program: "/p".into(), child, said }.why_it_let_go().map(|end| end.to_string())
    }

    #[test]
    fn a_daemon_that_ends_tells_its_own_reason() {
        let told = ended("echo noise >&2; echo 'ironcurtain: `/c`, line 3: no rule' >&2; exit 1").unwrap();
        let expected = "IronCurtain is not running and could not be started: `/c`, line 3: no rule. Mend that, then start the agent's servers again";
        assert_eq!(told, expected);
        let silent = ended("exit 3").unwrap();
        assert!(
            silent.ends_with("was started and ended with exit status: 3; start it yourself to see why"),
            "{silent}"
        );
    }

    #[test]
    fn one_that_runs_on_has_not_ended() {
        assert_eq!(ended("exec sleep 4 > /dev/null"), None);
    }
}
