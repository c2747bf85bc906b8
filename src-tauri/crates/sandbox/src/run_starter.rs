//! Inner process of a run: starts the program inside the sandbox and waits for it.
//!
//! - The process leads the session of the run's terminal. The program leads its own process group, as under a shell.
//! - When the CLI exits, this process exits, and the sandbox exits with it.
//! - This process has the program's rights, so the sandbox does not depend on it: the trusted process also terminates a
//!   run when its CLI has exited.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpgrp, ioctl_tiocsctty, kill_process_group, setsid, waitpid},
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
    termios::tcsetpgrp,
};

use crate::{
    outcome::FAILED,
    run_link::{InnerLink, LinkCommand, RunTerminal},
    sys::{
        self,
        signals::{Signals, block_only},
    },
};

/// Signals that must neither stop nor kill this process.
const BLOCKED_SIGNALS: [Signal; 8] = [
    Signal::CHILD,
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// Inner process of a run.
pub(crate) struct RunStarter {
    link: InnerLink,
    signals: Signals,
    terminal: Option<(RunTerminal, OwnedFd)>,
    /// `true` if the program was stopped and this process has not resumed it.
    is_stopped: bool,
}

impl RunStarter {
    /// Makes this process a session leader and opens a terminal if the CLI requested one.
    pub(crate) fn new(link: OwnedFd) -> io::Result<Self> {
        setsid()?;
        let link = InnerLink::new(link);
        let signals = Signals::block(&BLOCKED_SIGNALS)?;
        let terminal = link.terminal()?.map(|terminal| Ok::<_, io::Error>((terminal, open_terminal(&link)?)));
        Ok(Self { link, signals, terminal: terminal.transpose()?, is_stopped: false })
    }

    /// Returns the run's terminal if it serves as the standard stream `number`.
    pub(crate) fn stream(&self, number: usize) -> Option<&OwnedFd> {
        let (terminal, descriptor) = self.terminal.as_ref()?;
        terminal.streams.get(number).is_some_and(|is_terminal| *is_terminal).then_some(descriptor)
    }

    /// Starts the program in a new process group. The group becomes the terminal's foreground group if the run
    /// requested the foreground.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
        let foreground = match &self.terminal {
            Some((terminal, descriptor)) if terminal.foreground => Some(descriptor.try_clone()?),
            Some(_) | None => None,
        };
        sys::process::prepare(command, move || {
            if let Some(terminal) = &foreground {
                tcsetpgrp(terminal, getpgrp())?;
            }
            block_only(&[])
        });
        command.spawn()
    }

    /// Waits until the program has exited and the CLI has read all its output. Returns the exit status.
    ///
    /// First replaces the standard streams of this process so that only the program holds its ends of pipes.
    pub(crate) fn wait(mut self, child: Child) -> io::Result<u8> {
        let child = Pid::from_child(&child);
        let null = open_null()?;
        dup2_stdin(&null)?;
        dup2_stdout(&null)?;
        dup2_stderr(null)?;
        let mut exited = None;
        loop {
            let mut polled =
                [PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&self.link, PollFlags::IN)];
            match poll(&mut polled, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [signalled, has_command] = polled.map(|polled| !polled.revents().is_empty());
            // A command about a stopped program must not overtake the stop.
            if signalled || has_command {
                while self.signals.next()?.is_some() {}
                if exited.is_none() {
                    exited = self.check_child(child)?;
                }
                // A terminal stays open, because closing it would discard unread output.
                if let (Some(status), None) = (exited, &self.terminal) {
                    return Ok(status);
                }
            }
            if has_command && self.handle_command(child, exited.is_some())? {
                // The CLI has exited, so no process receives the status.
                return Ok(exited.unwrap_or(FAILED));
            }
        }
    }

    /// Reports to the CLI if the program was stopped or has exited. Returns the exit status once the program has
    /// exited.
    fn check_child(&mut self, child: Pid) -> io::Result<Option<u8>> {
        while let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG | WaitOptions::UNTRACED)? {
            if let Some(signal) = status.stopping_signal() {
                self.is_stopped = true;
                self.link.stopped(u8::try_from(signal).unwrap_or_default())?;
                continue;
            }
            let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
            let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED);
            self.link.exited(code)?;
            return Ok(Some(code));
        }
        Ok(None)
    }

    /// Executes the CLI's next command. Returns `true` if this process must exit.
    fn handle_command(&mut self, child: Pid, has_exited: bool) -> io::Result<bool> {
        let signal = match self.link.command()? {
            Some(LinkCommand::Signal(signal)) => signal,
            Some(LinkCommand::Resume { foreground }) => {
                if let Some((_, terminal)) = &self.terminal {
                    // Ignores the error: the group has exited.
                    let _ = tcsetpgrp(terminal, if foreground { child } else { getpgrp() });
                }
                Signal::CONT
            }
            Some(LinkCommand::Finish) | None => return Ok(true),
        };
        if !has_exited {
            // Ignores the error: the group has exited.
            let _ = kill_process_group(child, signal);
            // A stopped program receives the signal only when it continues.
            if self.is_stopped && signal != Signal::TSTP {
                let _ = kill_process_group(child, Signal::CONT);
                self.is_stopped = false;
            }
        }
        Ok(false)
    }
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Creates the controlling terminal of this session and sends its master side to the CLI.
fn open_terminal(link: &InnerLink) -> io::Result<OwnedFd> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&master)?;
    let terminal =
        ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    ioctl_tiocsctty(terminal.as_fd())?;
    link.send_terminal(master)?;
    Ok(terminal)
}
