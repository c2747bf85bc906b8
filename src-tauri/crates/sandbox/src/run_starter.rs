//! Process inside a run that starts the program and waits for it.
//!
//! - This process leads the session of the run's terminal. The program leads its own process group, as under a shell.
//! - When the starter outside exits, this process exits, and everything in the sandbox with it.
//! - Confinement does not depend on this process: it runs in the sandbox with the program's rights, and the trusted
//!   process ends a run when its starter has exited.

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
const HELD: [Signal; 8] = [
    Signal::CHILD,
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

/// Process that starts a run's program and leads the session of its terminal.
pub(crate) struct RunStarter {
    link: InnerLink,
    signals: Signals,
    terminal: Option<(RunTerminal, OwnedFd)>,
}

impl RunStarter {
    /// Makes this process a session leader, with a terminal if the starter outside requests one.
    pub(crate) fn new(link: OwnedFd) -> io::Result<Self> {
        setsid()?;
        let link = InnerLink::new(link);
        let signals = Signals::hold_these(&HELD)?;
        let terminal = link.terminal()?.map(|terminal| Ok::<_, io::Error>((terminal, open(&link)?)));
        Ok(Self { link, signals, terminal: terminal.transpose()? })
    }

    /// Returns the run's terminal if the standard stream with this number is the terminal.
    pub(crate) fn stream(&self, number: usize) -> Option<&OwnedFd> {
        let (terminal, descriptor) = self.terminal.as_ref()?;
        terminal.streams.get(number).is_some_and(|is_terminal| *is_terminal).then_some(descriptor)
    }

    /// Starts the program in a new process group. If the run requests the foreground, the group becomes the
    /// terminal's foreground group.
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

    /// Waits until the program has exited and its output has been read. Returns the exit status.
    ///
    /// Also replaces the standard streams of this process, so that the program holds the only copies and can close its
    /// end of a pipe.
    pub(crate) fn wait(self, child: Child) -> io::Result<u8> {
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
            let [signalled, told] = polled.map(|polled| !polled.revents().is_empty());
            if signalled {
                while self.signals.next()?.is_some() {}
                if exited.is_none() {
                    exited = self.look(child)?;
                }
                // Keeps a terminal open, because it would discard unread output when closed.
                if let (Some(status), None) = (exited, &self.terminal) {
                    return Ok(status);
                }
            }
            if told && self.obey(child, exited.is_some())? {
                // Without the starter, no process receives the status.
                return Ok(exited.unwrap_or(FAILED));
            }
        }
    }

    /// Checks whether the program was stopped or has exited, and reports it to the starter. Returns the exit status
    /// once it has exited.
    fn look(&self, child: Pid) -> io::Result<Option<u8>> {
        while let Some((_, status)) = waitpid(Some(child), WaitOptions::NOHANG | WaitOptions::UNTRACED)? {
            if let Some(signal) = status.stopping_signal() {
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

    /// Executes one command of the starter. Returns `true` if this process must exit.
    fn obey(&self, child: Pid, has_exited: bool) -> io::Result<bool> {
        let signal = match self.link.command()? {
            Some(LinkCommand::Signal(signal)) => signal,
            Some(LinkCommand::Resume { foreground }) => {
                if let Some((_, terminal)) = &self.terminal {
                    // Fails if the group has exited.
                    let _ = tcsetpgrp(terminal, if foreground { child } else { getpgrp() });
                }
                Signal::CONT
            }
            Some(LinkCommand::Finish) | None => return Ok(true),
        };
        if !has_exited {
            // Fails if the group has exited.
            let _ = kill_process_group(child, signal);
        }
        Ok(false)
    }
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Creates the terminal, makes it the controlling terminal of this session, and sends out its master side.
fn open(link: &InnerLink) -> io::Result<OwnedFd> {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&own)?;
    let terminal = ioctl_tiocgptpeer(&own, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    ioctl_tiocsctty(terminal.as_fd())?;
    link.give_terminal(own)?;
    Ok(terminal)
}
