//! Starts the trusted process in the background.

use crate::connection::Connection;
use crate::daemon_arguments::{Ask, DaemonArguments};
use anyhow::{Context, bail};
use clap::ValueEnum;
use ironcurtain_paths::OwnProgram;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time to wait for the started process to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay between attempts to connect to the started process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Performs `daemon --detach`.
pub fn start_for_user(options: &DaemonArguments) -> anyhow::Result<()> {
    if options.ask == Ask::Terminal {
        bail!("`--ask terminal` needs a terminal; omit `--detach`, or choose another `--ask`");
    }
    if Connection::open_if_running()?.is_some() {
        bail!("IronCurtain is already running; `ironcurtain status` shows its state");
    }
    start(options)
}

/// Starts the trusted process if it is not running. The new process denies everything that needs approval until a
/// desktop is attached.
pub fn start_if_needed() -> anyhow::Result<()> {
    if Connection::open_if_running()?.is_some() {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() {
        bail!(
            "IronCurtain is not running, and does not start automatically as root; run `ironcurtain daemon \
             --allow-root --detach` first"
        );
    }
    start(&DaemonArguments { ask: Ask::Deny, allow_root: false, detach: false, background: false })
}

/// Starts the trusted process and returns once it is listening.
fn start(options: &DaemonArguments) -> anyhow::Result<()> {
    let path = std::env::current_exe()?;
    let failed = || format!("failed to start `{}`", path.display());
    let mut command = OwnProgram::open(&path).with_context(failed)?.into_command();
    command.args(["daemon", "--background"]).args(options.allow_root.then_some("--allow-root"));
    let ask = options.ask.to_possible_value().context("this value of `--ask` has no name")?;
    command.args(["--ask", ask.get_name()]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = command.spawn().with_context(failed)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        // Read before connecting, because with `--ask desktop` the child starts the app and exits.
        let exit_status = child.try_wait()?;
        match (Connection::open_if_running(), exit_status) {
            (Ok(Some(_)), _) => return Ok(()),
            (Ok(None) | Err(_), Some(status)) => {
                bail!("IronCurtain failed to start: it exited with {status}")
            }
            (Err(problem), None) if Instant::now() >= deadline => return Err(problem),
            (Ok(None), None) if Instant::now() >= deadline => {
                bail!("IronCurtain did not start within {} s", START_TIMEOUT.as_secs())
            }
            // A process that fails to start can close a connection without an answer.
            (Ok(None) | Err(_), None) => {}
        }
        thread::sleep(POLL_INTERVAL);
    }
}
