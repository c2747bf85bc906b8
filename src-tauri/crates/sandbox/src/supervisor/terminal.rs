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
    event::{PollFd, PollFlags, Timespec},
    io::fcntl_dupfd_cloexec,
    stdio::stderr,
};

use super::{
    QUIET, SupervisorStartError,
    bwrap::{Bwrap, InheritedDescriptors, take_streams},
    exit_code,
    owner::SandboxOwner,
    start::start,
    streams::Streams,
    wait,
};
use crate::{
    autostart::{AutostartRules, ChangeKind, Countermeasure, Finding, FinishedJournal, Watcher},
    control::SandboxEvent,
    enter::FAILED,
    mounts::{Mounts, RestoredMask},
    spec::Spec,
    special::{SpecialLink, serve_beside},
    sys::{process::close_beside, signals::Signals},
};

/// The name in front of every message.
pub(crate) const NAME: &str = "ironcurtain-sandbox";

/// The name of the command's sandbox in the journal of what it can write to; there is one in this process.
const SANDBOX: &str = "command";

/// The sandbox of a person's command, and how files that run later are treated.
#[derive(Debug)]
pub(crate) struct ForegroundCommand {
    pub(crate) spec: Spec,
    /// The treatment of files that run later.
    pub(crate) autostart: AutostartRules,
}

/// The person's side.
pub(super) struct ForegroundTerminal {
    signals: Signals,
    messages: File,
    debug: bool,
}

/// Runs a command to its end. `egress` is the socket that the proxy's listener goes through, where there is one.
pub(crate) fn run_in_foreground(
    foreground: ForegroundCommand,
    egress: Option<OwnedFd>,
    signals: Signals,
    debug: bool,
) -> io::Result<ExitCode> {
    let terminal = ForegroundTerminal { signals, messages: fcntl_dupfd_cloexec(stderr(), 3)?.into(), debug };
    let mut streams = match Streams::take() {
        Ok(streams) => streams,
        Err(error) => return terminal.failed(&SupervisorStartError::Setup(error.to_string())),
    };
    let (mut bwrap, mut mounts, mut watcher) = match terminal.start(foreground, egress) {
        Ok(started) => started,
        Err(error) => return terminal.failed(&error),
    };
    let end = terminal.watch(&mut bwrap, &mut mounts, &mut watcher, &mut streams);
    let status = end.unwrap_or_else(|_| bwrap.kill());
    let lost = streams.finish();
    // All of it is looked at before anybody is told, which can fail.
    let (found, journal) = watcher.finish(SANDBOX);
    journal.into_iter().for_each(FinishedJournal::forget);
    found.iter().try_for_each(|finding| terminal.find(finding))?;
    for (name, error) in &lost {
        terminal.tell(&format!("{name} could not be written: {error}"))?;
    }
    // The kernel takes some ten milliseconds to end watches and namespaces. If nobody else can wait for that, we do.
    let slow = [watcher.as_fd(), mounts.sandbox().namespace()].into_iter().chain(bwrap.namespace());
    let _ = close_beside(&slow.collect::<Vec<_>>());
    // A command that did not notice has not succeeded.
    Ok(if status == 0 && !lost.is_empty() { ExitCode::from(FAILED) } else { exit_code(status) })
}

impl SandboxOwner for ForegroundTerminal {
    /// Tells what a person has to know.
    fn say(&self, event: &SandboxEvent) -> io::Result<()> {
        let text = match event {
            SandboxEvent::Failed { reason } => reason.clone(),
            SandboxEvent::Uncovered { path, hidden } => {
                let could = if *hidden {
                    "hidden from the command, and could be read"
                } else {
                    "closed, and could be written"
                };
                format!("`{path}` is {could} for a moment, since a program outside replaced it")
            }
            SandboxEvent::Started | SandboxEvent::Limited { .. } | SandboxEvent::Exited { .. }
                if self.debug =>
            {
                serde_json::to_string(event)?
            }
            SandboxEvent::Started | SandboxEvent::Limited { .. } | SandboxEvent::Exited { .. } => {
                return Ok(());
            }
        };
        self.tell(&text)
    }

    fn giving_up(&self) -> PollFd<'_> {
        PollFd::new(&self.signals, PollFlags::IN)
    }
}

impl ForegroundTerminal {
    /// Tells what was found of files that run later.
    fn find(&self, finding: &Finding) -> io::Result<()> {
        let text = match finding {
            Finding::Quarantined { path, moved_to, when } => {
                format!("`{path}` was moved to `{moved_to}`: it would have run {when}")
            }
            Finding::Restored { path, keys } => {
                format!("`{}` in `{path}` was put back: git would have run what it says", keys.join("`, `"))
            }
            Finding::Left { path, when, change: ChangeKind::New, .. } => {
                format!("`{path}` is new and runs {when}")
            }
            Finding::Left { path, when, change: ChangeKind::Changed, .. } => {
                format!("`{path}` was changed and runs {when}")
            }
            Finding::Unfinished { reason } => reason.clone(),
        };
        self.tell(&text)
    }

    fn tell(&self, text: &str) -> io::Result<()> {
        writeln!(&self.messages, "{NAME}: {text}")
    }

    /// Starts the command in its sandbox, with an eye on what it can write to.
    fn start(
        &self,
        ForegroundCommand { spec, autostart }: ForegroundCommand,
        egress: Option<OwnedFd>,
    ) -> Result<(Bwrap, Mounts, Watcher), SupervisorStartError> {
        let mut watcher = None;
        let given = InheritedDescriptors { streams: take_streams()?, egress, group: None };
        let (stream, own) = serve_beside()?;
        let special = SpecialLink::new(stream, Some(own), spec.unix_sockets)?;
        let (bwrap, mounts) = start(None, &spec, self, given, special, |layout| {
            let watcher = watcher.insert(Watcher::new(spec.state_dir.as_ref())?);
            for (_, found, journal) in watcher.sweep() {
                journal.into_iter().for_each(FinishedJournal::forget);
                found.iter().try_for_each(|finding| self.find(finding))?;
            }
            watcher.begin(SANDBOX, autostart)?;
            watcher.hidden(SANDBOX, &layout.plan.hidden().cloned().collect::<Vec<_>>());
            let closed = layout.writable.iter().map(|root| watcher.open(SANDBOX, root));
            Ok(closed.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })?;
        let watcher = watcher.ok_or_else(|| SupervisorStartError::Setup("nothing was watched".into()))?;
        Ok((bwrap, mounts, watcher))
    }

    /// Passes signals on, copies streams, and looks at what appears, until the command has ended; returns its exit status.
    fn watch(
        &self,
        bwrap: &mut Bwrap,
        mounts: &mut Mounts,
        watcher: &mut Watcher,
        streams: &mut Streams,
    ) -> io::Result<i32> {
        let mut quiet = Some(QUIET);
        loop {
            let signals = self.signals.as_fd();
            let Some([ended, mounted, special, named]) =
                wait_for_news(signals, bwrap.ended(), mounts, watcher, streams, quiet)?
            else {
                quiet = None;
                bwrap.settle();
                continue;
            };
            quiet = Some(QUIET);
            if ended {
                return Ok(bwrap.reap());
            }
            if named || watcher.patience().is_some() {
                watcher.read().iter().try_for_each(|(_, finding)| self.find(finding))?;
                let is_over = |(_, due): &(String, Countermeasure)| matches!(due, Countermeasure::End { .. });
                if watcher.countermeasures().iter().any(is_over) {
                    return Ok(bwrap.kill());
                }
            }
            if mounted || special || !watcher.uncovered().is_empty() {
                for RestoredMask { path, hidden } in mounts.restore_masks()? {
                    self.say(&SandboxEvent::Uncovered { path, hidden })?;
                }
                watcher.covered(SANDBOX);
            }
            if let Err(error) = streams.copy() {
                self.tell(&format!("standard input could not be read: {error}"))?;
                return Ok(bwrap.kill());
            }
            while let Some(signal) = self.signals.next()? {
                bwrap.signal(signal);
            }
        }
    }

    /// The command never ran: because of a signal, or because of the error.
    fn failed(&self, error: &SupervisorStartError) -> io::Result<ExitCode> {
        if let Some(signal) = self.signals.next()? {
            return Ok(exit_code(128 + signal.as_raw()));
        }
        self.say(&SandboxEvent::Failed { reason: error.to_string() })?;
        let SupervisorStartError::Program { status, .. } = error else { return Ok(ExitCode::from(FAILED)) };
        Ok(ExitCode::from(*status))
    }
}

/// Waits until there is a signal, news of `mounts` or `watcher`, or something to copy, or the command has ended; tells whether
/// it has, and which news there is. Nothing when it has been `quiet`.
fn wait_for_news(
    signals: BorrowedFd<'_>,
    ended: BorrowedFd<'_>,
    mounts: &Mounts,
    watcher: &Watcher,
    streams: &Streams,
    quiet: Option<Timespec>,
) -> io::Result<Option<[bool; 4]>> {
    let [ended, signals, watched] =
        [ended, signals, watcher.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut polled = vec![ended, mounts.news(), mounts.special_news(), watched, signals];
    polled.extend(streams.polled());
    let patience = watcher.patience().and_then(|patience| Timespec::try_from(patience).ok());
    if !wait(&mut polled, quiet.or(patience).as_ref())? && quiet.is_some() {
        return Ok(None);
    }
    let has = |place: usize| polled.get(place).is_some_and(|polled| !polled.revents().is_empty());
    Ok(Some([has(0), has(1), has(2), has(3)]))
}
