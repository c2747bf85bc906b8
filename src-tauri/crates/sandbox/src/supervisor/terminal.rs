//! Runs one sandboxed command in the foreground of a terminal, without grants.
//!
//! - The command inherits the standard streams, except for files, which are copied through pipes. IronCurtain's own
//!   messages go to standard error, prefixed with the program name.
//! - Signals are forwarded to the command's process group. The exit status is the command's own, 128 + n if signal n
//!   killed the command, or [`FAILED`] if the command never ran.
//! - Like any command, this process outlives its parent. Killing it kills the sandbox.

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
    IDLE_TIME, SupervisorStartError,
    bwrap::{Bwrap, InheritedDescriptors},
    exit_code,
    owner::SandboxOwner,
    server_stdio::take_streams,
    start::start,
    streams::Streams,
    wait,
};
use crate::{
    autostart::{AutostartRules, ChangeKind, Countermeasure, Finding, FinishedJournal, Watcher},
    control::SandboxEvent,
    mounts::{Mounts, RestoredMask},
    outcome::FAILED,
    spec::Spec,
    special::{SpecialFileLink, serve_in_child},
    sys::{process::close_in_child, signals::Signals},
};

/// Program name, used as the prefix of messages.
pub(crate) const NAME: &str = "ironcurtain-sandbox";

/// Journal name of the command's sandbox, the only sandbox in this process.
const SANDBOX: &str = "command";

/// Sandbox of a foreground command, and its autostart rules.
#[derive(Debug)]
pub(crate) struct ForegroundCommand {
    pub(crate) spec: Spec,
    /// Rules for autostart files.
    pub(crate) autostart: AutostartRules,
}

/// Signals from the user's terminal, and messages to the user.
pub(super) struct ForegroundTerminal {
    signals: Signals,
    messages: File,
    debug: bool,
}

/// Runs a command until it exits. `egress` is the socket over which to send the proxy's listener, if there is a proxy.
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
    // Completes all checks before the first report, because reporting can fail.
    let (found, journal) = watcher.finish(SANDBOX);
    journal.into_iter().for_each(FinishedJournal::delete);
    found.iter().try_for_each(|finding| terminal.print_finding(finding))?;
    for (name, error) in &lost {
        terminal.print(&format!("failed to write {name}: {error}"))?;
    }
    // Destroying watches and namespaces takes the kernel about 10 ms. If possible, a child process waits instead.
    let slow = [watcher.as_fd(), mounts.sandbox().namespace()].into_iter().chain(bwrap.namespace());
    let _ = close_in_child(&slow.collect::<Vec<_>>());
    // The command does not know that data was lost, so the exit status must report it.
    Ok(if status == 0 && !lost.is_empty() { ExitCode::from(FAILED) } else { exit_code(status) })
}

impl SandboxOwner for ForegroundTerminal {
    /// Prints the events that matter to the user.
    fn notify(&self, event: &SandboxEvent) -> io::Result<()> {
        let text = match event {
            SandboxEvent::Failed { reason } => reason.clone(),
            SandboxEvent::Uncovered { path, hidden } => {
                let could = if *hidden {
                    "is hidden, but the command could read it"
                } else {
                    "is read-only, but the command could write to it"
                };
                format!("`{path}` {could} for a moment, because a program outside the sandbox replaced it")
            }
            SandboxEvent::TunUnavailable { .. }
            | SandboxEvent::Started
            | SandboxEvent::Limited { .. }
            | SandboxEvent::Exited { .. }
                if self.debug =>
            {
                serde_json::to_string(event)?
            }
            SandboxEvent::TunUnavailable { .. }
            | SandboxEvent::Started
            | SandboxEvent::Limited { .. }
            | SandboxEvent::Exited { .. } => return Ok(()),
        };
        self.print(&text)
    }

    fn cancellation(&self) -> PollFd<'_> {
        PollFd::new(&self.signals, PollFlags::IN)
    }
}

impl ForegroundTerminal {
    /// Prints a finding about autostart files.
    fn print_finding(&self, finding: &Finding) -> io::Result<()> {
        let text = match finding {
            Finding::Quarantined { path, moved_to, when } => {
                format!("`{path}` was moved to `{moved_to}`: it would have run {when}")
            }
            Finding::Restored { path, keys } => {
                format!(
                    "`{}` in `{path}` was restored: git would have run the commands in it",
                    keys.join("`, `")
                )
            }
            Finding::AutostartFile { path, when, change: ChangeKind::New, .. } => {
                format!("`{path}` is new and runs {when}")
            }
            Finding::AutostartFile { path, when, change: ChangeKind::Changed, .. } => {
                format!("`{path}` was changed and runs {when}")
            }
            Finding::Unfinished { reason } => reason.clone(),
        };
        self.print(&text)
    }

    fn print(&self, text: &str) -> io::Result<()> {
        writeln!(&self.messages, "{NAME}: {text}")
    }

    /// Starts the command in its sandbox and watches its writable paths.
    fn start(
        &self,
        ForegroundCommand { spec, autostart }: ForegroundCommand,
        egress: Option<OwnedFd>,
    ) -> Result<(Bwrap, Mounts, Watcher), SupervisorStartError> {
        let mut watcher = None;
        let inherited = InheritedDescriptors { streams: take_streams()?, egress, link: None, group: None };
        let (stream, own) = serve_in_child()?;
        let special = SpecialFileLink::new(stream, Some(own), spec.unix_sockets)?;
        let (bwrap, mounts) = start(None, &spec, self, inherited, (None, special, None), |layout| {
            let watcher = watcher.insert(Watcher::new(spec.state_dir.as_ref())?);
            for (_, found, journal) in watcher.finish_interrupted() {
                journal.into_iter().for_each(FinishedJournal::delete);
                found.iter().try_for_each(|finding| self.print_finding(finding))?;
            }
            watcher.add_sandbox(SANDBOX, autostart)?;
            watcher.set_hidden(SANDBOX, &layout.plan.hidden().cloned().collect::<Vec<_>>());
            let closed = layout.writable.iter().map(|root| watcher.open_root(SANDBOX, root));
            Ok(closed.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })?;
        let watcher = watcher.ok_or_else(|| SupervisorStartError::Setup("nothing was watched".into()))?;
        Ok((bwrap, mounts, watcher))
    }

    /// Forwards signals, copies streams and checks new files until the command exits. Returns the exit status.
    fn watch(
        &self,
        bwrap: &mut Bwrap,
        mounts: &mut Mounts,
        watcher: &mut Watcher,
        streams: &mut Streams,
    ) -> io::Result<i32> {
        let mut idle_timeout = Some(IDLE_TIME);
        loop {
            let signals = self.signals.as_fd();
            let Some([ended, mounted, special, has_watch_events]) =
                wait_for_events(signals, bwrap.exit_fd(), mounts, watcher, streams, idle_timeout)?
            else {
                idle_timeout = None;
                bwrap.release_memory();
                continue;
            };
            idle_timeout = Some(IDLE_TIME);
            if ended {
                return Ok(bwrap.reap());
            }
            if has_watch_events || watcher.poll_timeout().is_some() {
                watcher.process_events().iter().try_for_each(|(_, finding)| self.print_finding(finding))?;
                let is_end = |(_, due): &(String, Countermeasure)| matches!(due, Countermeasure::End { .. });
                if watcher.take_countermeasures().iter().any(is_end) {
                    return Ok(bwrap.kill());
                }
            }
            if mounted || special || !watcher.take_uncovered().is_empty() {
                for RestoredMask { path, hidden } in mounts.restore_masks()? {
                    self.notify(&SandboxEvent::Uncovered { path, hidden })?;
                }
                watcher.masks_restored(SANDBOX);
            }
            if let Err(error) = streams.copy() {
                self.print(&format!("failed to read standard input: {error}"))?;
                return Ok(bwrap.kill());
            }
            while let Some(signal) = self.signals.next()? {
                bwrap.signal(signal);
            }
        }
    }

    /// Reports why the command never ran: a signal or an error.
    fn failed(&self, error: &SupervisorStartError) -> io::Result<ExitCode> {
        if let Some(signal) = self.signals.next()? {
            return Ok(exit_code(128 + signal.as_raw()));
        }
        self.notify(&SandboxEvent::Failed { reason: error.to_string() })?;
        let SupervisorStartError::Program { status, .. } = error else { return Ok(ExitCode::from(FAILED)) };
        Ok(ExitCode::from(*status))
    }
}

/// Waits for a signal, an event from `mounts` or `watcher`, data to copy, or the command's exit. The flags report which
/// sources are ready, in this order: exit, mounts, special files, watcher. Returns `None` if no source is ready within
/// `idle_timeout`.
fn wait_for_events(
    signals: BorrowedFd<'_>,
    ended: BorrowedFd<'_>,
    mounts: &Mounts,
    watcher: &Watcher,
    streams: &Streams,
    idle_timeout: Option<Timespec>,
) -> io::Result<Option<[bool; 4]>> {
    let [ended, signals, watched] =
        [ended, signals, watcher.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    let mut polled = vec![ended, mounts.poll_fd(), mounts.special_poll_fd(), watched, signals];
    polled.extend(streams.polled());
    let timeout = watcher.poll_timeout().and_then(|timeout| Timespec::try_from(timeout).ok());
    if !wait(&mut polled, idle_timeout.or(timeout).as_ref())? && idle_timeout.is_some() {
        return Ok(None);
    }
    let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
    Ok(Some([is_ready(0), is_ready(1), is_ready(2), is_ready(3)]))
}
