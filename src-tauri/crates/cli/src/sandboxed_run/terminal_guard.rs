//! Child process that restores the user's terminal if the run's process is killed.
//!
//! - The modes are restored only if the terminal is still in raw mode. Otherwise, another program has set them.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Hidden subcommand that runs as the guard.
const NAME: &str = "terminal-guard";

/// Request to save the terminal's modes. The guard confirms it with the same byte.
const REMEMBER: u8 = b'r';

/// Request to exit without restoring the modes. EOF without this request means that the run's process was killed.
const QUIT: u8 = b'q';

/// Handle to the guard process. Dropping it terminates the guard.
pub struct TerminalGuard {
    process: Child,
    requests: Option<(ChildStdin, ChildStdout)>,
}

impl TerminalGuard {
    /// Spawns the guard process.
    pub fn start(terminal: &OwnedFd) -> io::Result<Self> {
        let mut process = Command::new("/proc/self/exe")
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(terminal.try_clone()?)
            .current_dir("/")
            .spawn()?;
        let requests = process.stdin.take().zip(process.stdout.take());
        Ok(Self { process, requests })
    }

    /// Makes the guard save the terminal's current modes and waits for the confirmation.
    pub fn remember(&mut self) -> io::Result<()> {
        let Some((requests, answers)) = &mut self.requests else { return Ok(()) };
        requests.write_all(&[REMEMBER])?;
        answers.read_exact(&mut [0])
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // Ignores the error: the guard was killed.
        let _ = self.requests.take().map(|(mut requests, _)| requests.write_all(&[QUIT]));
        let _ = self.process.wait();
    }
}

/// Runs the guard. Its standard error is the user's terminal.
pub fn run() -> io::Result<()> {
    // In its own session, the guard receives no signals from the terminal and can change the modes from the
    // background.
    rustix::process::setsid()?;
    let terminal = io::stderr();
    let mut own: Option<Termios> = None;
    let mut request = [0];
    while io::stdin().read(&mut request)? == 1 {
        if request == [QUIT] {
            return Ok(());
        }
        own = Some(tcgetattr(&terminal)?);
        io::stdout().write_all(&request)?;
        io::stdout().flush()?;
    }
    // A shell's line editor keeps ISIG on. Only a run turns it off.
    let is_of_run =
        |now: &Termios| !now.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    if let Some(own) = own.filter(|_| tcgetattr(&terminal).is_ok_and(|now| is_of_run(&now))) {
        tcsetattr(&terminal, OptionalActions::Flush, &own)?;
    }
    Ok(())
}
