//! A sandbox made for a person: in the foreground, with one command in it, without grants.
//!
//! - The command has the streams as they are. What we have to say goes to standard error, with our name in front.
//! - Signals are passed on to the command and what it started; the exit status is the command's, 128 + n when signal n
//!   ended it, and [`FAILED`] when it never ran.
//! - It does not end with whoever started it, as no command does; killed, it takes the sandbox along.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
};

use rustix::{io::fcntl_dupfd_cloexec, stdio::stderr};

use super::{Given, Owner, StartError, bwrap::Bwrap, exit_code, start, wait};
use crate::{control::Event, enter::FAILED, spec::Spec, sys::signals::Signals};

/// What stands in front of everything we say.
pub(crate) const NAME: &str = "ironcurtain-sandbox";

/// A command to be run in the foreground.
pub(crate) struct Command {
    /// Its sandbox.
    pub(crate) spec: Spec,
    /// Where its proxy's listener is to go.
    pub(crate) egress: Option<OwnedFd>,
    /// The signals that came in meanwhile.
    pub(crate) signals: Signals,
    /// Whether to tell what is done.
    pub(crate) debug: bool,
}

/// The person's side.
pub(super) struct Terminal {
    signals: Signals,
    messages: File,
    debug: bool,
}

/// Runs it to its end.
pub(crate) fn in_foreground(command: Command) -> io::Result<ExitCode> {
    let Command { spec, egress, signals, debug } = command;
    let messages = File::from(fcntl_dupfd_cloexec(stderr(), 3)?);
    let terminal = Terminal { signals, messages, debug };
    let owner = Owner::Terminal(&terminal);
    let (mut bwrap, mounts, guard) = match start(None, &spec, &owner, Given { egress, group: None }) {
        Ok(started) => started,
        Err(error) => return terminal.failed(&error),
    };
    let status = terminal.watch(&mut bwrap).unwrap_or_else(|_| bwrap.kill());
    drop(mounts);
    for event in guard.finish() {
        terminal.say(&event)?;
    }
    Ok(exit_code(status))
}

impl Terminal {
    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Tells what a person has to know.
    pub(super) fn say(&self, event: &Event) -> io::Result<()> {
        let text = match event {
            Event::Failed { reason } | Event::Unfinished { reason } => reason.clone(),
            Event::Quarantined { path, moved_to } => format!(
                "`{path}` was moved to `{moved_to}`, since programs of yours would have run what it says"
            ),
            Event::Started | Event::Limited { .. } | Event::Exited { .. } if self.debug => {
                serde_json::to_string(event)?
            }
            Event::Started | Event::Limited { .. } | Event::Exited { .. } => return Ok(()),
        };
        writeln!(&self.messages, "{NAME}: {text}")
    }

    /// Passes signals on until the command has ended; returns its status.
    fn watch(&self, bwrap: &mut Bwrap) -> io::Result<i32> {
        loop {
            let [_, ended] = wait(self.signals.as_fd(), bwrap.ended())?;
            if ended {
                return Ok(bwrap.reap());
            }
            while let Some(signal) = self.signals.next()? {
                bwrap.signal(signal);
            }
        }
    }

    /// The command never ran: because of a signal, or because of the error.
    fn failed(&self, error: &StartError) -> io::Result<ExitCode> {
        if let Some(signal) = self.signals.next()? {
            return Ok(exit_code(128 + signal.as_raw()));
        }
        self.say(&Event::Failed { reason: error.to_string() })?;
        let StartError::Program { status, .. } = error else { return Ok(ExitCode::from(FAILED)) };
        Ok(ExitCode::from(*status))
    }
}
