//! A process that restores the user's terminal if the run's own process is killed.
//!
//! - It restores the modes only while the terminal is raw, as a run makes it. Other modes were set by another program.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Hidden command that starts this process.
const NAME: &str = "terminal-guard";

/// Has the process remember the terminal's modes. It confirms with the same byte.
const REMEMBER: u8 = b'r';

/// Ends the process. The end of its input means that the run's own process has exited.
const QUIT: u8 = b'q';

/// The guarding process. Dropping it ends the process.
pub struct TerminalGuard {
    process: Child,
    requests: Option<(ChildStdin, ChildStdout)>,
}

impl TerminalGuard {
    /// Starts the process.
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

    /// Returns once the process knows the terminal's modes, which it restores from now on.
    pub fn remember(&mut self) -> io::Result<()> {
        let Some((requests, answers)) = &mut self.requests else { return Ok(()) };
        requests.write_all(&[REMEMBER])?;
        answers.read_exact(&mut [0])
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // Fails if the process was killed.
        let _ = self.requests.take().map(|(mut requests, _)| requests.write_all(&[QUIT]));
        let _ = self.process.wait();
    }
}

/// Runs the process. Its standard error is the terminal.
pub fn run() -> io::Result<()> {
    // A process outside the terminal's session gets no signals from it and may change it from the background.
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
    // A shell that edits a line leaves signals on.
    let is_of_run =
        |now: &Termios| !now.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    if let Some(own) = own.filter(|_| tcgetattr(&terminal).is_ok_and(|now| is_of_run(&now))) {
        tcsetattr(&terminal, OptionalActions::Flush, &own)?;
    }
    Ok(())
}
