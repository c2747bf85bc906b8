//! A sandbox made for a person: in the foreground, with one command in it, without grants.
//!
//! - The command has the streams as they are, or where they are files, pipes that are copied from and to them. What we have to
//!   say goes to standard error, with our name in front.
//! - Signals are passed on to the command and what it started; the exit status is the command's, 128 + n when signal n
//!   ended it, and [`FAILED`] when it never ran.
//! - It does not end with whoever started it, as no command does; killed, it takes the sandbox along.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, fcntl_dupfd_cloexec},
    stdio::stderr,
};

use super::{
    End, Owner, StartError,
    bwrap::Bwrap,
    exit_code, finish, read,
    start::{Given, start},
    stop,
    streams::Streams,
    taken, uncovered,
};
use crate::{
    control::Event,
    enter::FAILED,
    mounts::Mounts,
    sys::{
        process::{close_on_exec_from, take_descriptor},
        signals::Signals,
    },
};

/// What stands in front of everything we say.
pub(crate) const NAME: &str = "ironcurtain-sandbox";

/// The first word that has a command run in the foreground.
pub(crate) const FOREGROUND: &str = "--foreground";
/// In place of nothing: tell what is done.
pub(crate) const DEBUG: &str = "debug";

/// The person's side.
pub(super) struct Terminal {
    signals: Signals,
    messages: File,
    debug: bool,
}

/// Runs a command to its end. Arguments: the descriptors of the spec and of the socket which the proxy's listener goes
/// through, or nothing; and whether to tell what is done. Signals are held back already.
pub(crate) fn run_in_foreground(args: &[String]) -> ExitCode {
    let [spec, egress, debug] = args else { return ExitCode::from(2) };
    let (Ok(spec), Ok(egress)) = (take_descriptor(spec), taken(egress)) else { return ExitCode::from(2) };
    in_foreground(spec.into(), egress, debug == DEBUG).unwrap_or_else(|error| {
        // If standard error is closed, the exit status still says it.
        let _ = writeln!(io::stderr(), "{NAME}: the sandbox could not be prepared: {error}");
        ExitCode::from(FAILED)
    })
}

fn in_foreground(spec: File, egress: Option<OwnedFd>, debug: bool) -> io::Result<ExitCode> {
    let terminal =
        Terminal { signals: Signals::hold()?, messages: fcntl_dupfd_cloexec(stderr(), 3)?.into(), debug };
    let owner = Owner::Terminal(&terminal);
    close_on_exec_from(3)?;
    let mut streams = match Streams::take() {
        Ok(streams) => streams,
        Err(error) => return terminal.failed(&StartError::Setup(error.to_string())),
    };
    let given = Given { egress, group: None, record: None };
    let started = read(spec).and_then(|spec| start(None, &spec, &owner, given));
    let (mut bwrap, mut mounts, guard) = match started {
        Ok(started) => started,
        Err(error) => return terminal.failed(&error),
    };
    let end = terminal.watch(&mut bwrap, &mut mounts, &mut streams);
    let (status, why) = end.unwrap_or_else(|_| (bwrap.kill(), None));
    let mut said = why.map_or(Ok(()), |why| terminal.say(&why));
    let lost = streams.finish();
    finish(mounts, guard, &mut |event| {
        let one = terminal.say(&event);
        // What is to be moved away is, even when nobody can be told.
        said = std::mem::replace(&mut said, Ok(())).and(one);
    });
    said?;
    for (name, error) in &lost {
        terminal.tell(&format!("{name} could not be written: {error}"))?;
    }
    // A command that did not notice has not succeeded.
    Ok(if status == 0 && !lost.is_empty() { ExitCode::from(FAILED) } else { exit_code(status) })
}

impl Terminal {
    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Tells what a person has to know.
    pub(super) fn say(&self, event: &Event) -> io::Result<()> {
        let text = match event {
            Event::Failed { reason } | Event::Unfinished { reason } => reason.clone(),
            Event::Unsearched { writable } => {
                format!("not searched for new files that start programs: `{}`", writable.join("`, `"))
            }
            Event::Quarantined { path, moved_to } => format!(
                "`{path}` was moved to `{moved_to}`, since programs of yours would have run what it says"
            ),
            Event::Uncovered { path } => format!(
                "the command was ended: `{path}`, which was hidden from it or closed, was replaced or moved away"
            ),
            Event::Started | Event::Limited { .. } | Event::Exited { .. } if self.debug => {
                serde_json::to_string(event)?
            }
            Event::Started | Event::Limited { .. } | Event::Exited { .. } => return Ok(()),
        };
        self.tell(&text)
    }

    fn tell(&self, text: &str) -> io::Result<()> {
        writeln!(&self.messages, "{NAME}: {text}")
    }

    /// Passes signals on, and copies streams, until the command has ended.
    fn watch(&self, bwrap: &mut Bwrap, mounts: &mut Mounts, streams: &mut Streams) -> io::Result<End> {
        loop {
            let [ended, news @ ..] = wait(self.signals.as_fd(), bwrap.ended(), mounts, streams)?;
            if ended {
                return Ok((bwrap.reap(), None));
            }
            if let Some(path) = uncovered(mounts, news) {
                return Ok(stop(bwrap, path));
            }
            if let Err(error) = streams.copy() {
                self.tell(&format!("standard input could not be read: {error}"))?;
                return Ok((bwrap.kill(), None));
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

/// Waits until there is a signal, news of `mounts` or something to copy, or the command has ended; tells whether it has, and
/// which news there is.
fn wait(
    signals: BorrowedFd<'_>,
    ended: BorrowedFd<'_>,
    mounts: &Mounts,
    streams: &Streams,
) -> io::Result<[bool; 3]> {
    let [ended, signals] = [ended, signals].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let [mounted, named] = mounts.news();
    let mut polled = vec![ended, mounted, named, signals];
    polled.extend(streams.polled());
    match poll(&mut polled, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let has = |place: usize| polled.get(place).is_some_and(|polled| !polled.revents().is_empty());
    Ok([has(0), has(1), has(2)])
}
