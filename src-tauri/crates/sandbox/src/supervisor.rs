//! The supervisor of one sandbox: sets it up, then changes its mounts on request until either side is gone.
//!
//! - INVARIANT: one thread. It forks children that do not exec, and enters namespaces, which only such a process can.
//! - INVARIANT: everything it starts is in one pid namespace whose first process is bubblewrap, which the kernel kills
//!   when the supervisor dies, and everything in the namespace with it.
//! - INVARIANT: once bubblewrap runs it holds none of the server's standard streams.
//! - The control stream's end is the sandbox's end. What is searched and moved away after that, the supervisor does also when
//!   its launcher was killed, within [`END_BOUND`]; it is the only thing that it outlives its launcher for.
//! - What it tells of the end is kept until the launcher says that it is on record; see [`untold`](crate::untold).
//! - INVARIANT: while the server may run, the supervisor either waits, and is woken by that end, or has a signal kill the
//!   sandbox with its launcher. Where a file system that hangs keeps the signal out, an alarm ends the supervisor, and with it
//!   the sandbox, within [`REQUEST_BOUND`], unless the file system keeps that out, too; nothing is searched then, which is told
//!   at the next start.

mod bwrap;
mod lines;
mod namespaces;
mod news;
mod owner;
mod start;
mod streams;
mod terminal;

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
    process::ExitCode,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal},
};

pub(crate) use bwrap::find_bwrap;
pub(crate) use terminal::{DEBUG, FOREGROUND, NAME, run_in_foreground};

use self::{
    bwrap::Bwrap,
    lines::{Lines, say},
    news::News,
    owner::Owner,
    start::{Given, start},
};
use crate::{
    cgroup::Controlled,
    control::{Answer, ControlOp, ControlReply, ControlRequest, END_BOUND, Event, Refusal},
    enter::{FAILED, NONE},
    mounts::{MountError, Mounts},
    persistence::{Guard, GuardError},
    shape::LayoutError,
    spec::{Spec, SpecError},
    sys::{self, signals::Signals},
};

/// The longest that a request can take: longer than the launcher waits for its answer.
const REQUEST_BOUND: Duration = Duration::from_secs(12);

/// Why a server was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("the specification of the sandbox is not readable: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the sandbox does not run as root: run as an ordinary user, or allow it with `--allow-root`")]
    Root,
    #[error("this system does not allow user namespaces, which the sandbox is made of: {0}")]
    Namespaces(io::Error),
    #[error("bubblewrap is not installed: the program `bwrap` was not found")]
    NoBwrap,
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error("{problem}")]
    Program { status: u8, problem: String },
    #[error("the sandbox was not ready in time")]
    TooSlow,
    #[error("the sandbox was given up before it was ready")]
    HungUp,
    #[error("the sandbox could not be prepared: {0}")]
    Prepare(#[from] io::Error),
    #[error("`{0}` was replaced by another program just as it was to be hidden or closed: try again")]
    Uncovered(String),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("the system call filter could not be made: {0}")]
    Filter(#[from] seccompiler::Error),
}

/// Arguments: the launcher's process id, the descriptors of the spec and of the control stream, that of the socket which the
/// proxy's listener goes through or nothing; by which name what is told is kept, or nothing; and where there is a control group
/// its door, and which limits it has.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, spec, control, egress, record, group @ ..] = args else { return ExitCode::from(2) };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let (Ok(spec), Ok(control)) =
        (sys::process::take_descriptor(spec), sys::process::take_descriptor(control))
    else {
        return ExitCode::from(2);
    };
    let (Ok(egress), Ok(group)) = (taken(egress), door(group)) else { return ExitCode::from(2) };
    let record = Some(record.clone()).filter(|record| record != NONE);
    let given = Given { egress, group, record };
    let control = UnixStream::from(control);
    let owner = Owner::Control(&control);
    let started =
        ordered(parent, File::from(spec)).and_then(|spec| start(Some(parent), &spec, &owner, given));
    let (mut bwrap, mounts, guard) = match started {
        Ok(started) => started,
        Err(error) => {
            // Nobody may be listening any more; the exit status says the same.
            let _ = owner.say(&Event::Failed { reason: error.to_string() });
            return ExitCode::from(FAILED);
        }
    };
    serve(parent, &mut bwrap, mounts, guard, &control)
}

/// A descriptor, or none.
fn taken(number: &str) -> io::Result<Option<OwnedFd>> {
    if number == NONE { Ok(None) } else { sys::process::take_descriptor(number).map(Some) }
}

/// The door of a control group, and its limits.
fn door(group: &[String]) -> io::Result<Option<(OwnedFd, Controlled)>> {
    match group {
        [] => Ok(None),
        [door, controlled] => {
            Ok(Some((sys::process::take_descriptor(door)?, serde_json::from_str(controlled)?)))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// What the launcher wants.
fn ordered(parent: Pid, spec: File) -> Result<Spec, StartError> {
    sys::process::bind_to_parent(parent).map_err(io::Error::from)?;
    sys::process::close_on_exec_from(3).map_err(io::Error::from)?;
    sys::process::leave_keyring()?;
    read(spec)
}

fn read(mut spec: File) -> Result<Spec, StartError> {
    let mut text = String::new();
    spec.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Serves the launcher to the end, and says how that was.
fn serve(parent: Pid, bwrap: &mut Bwrap, mut mounts: Mounts, guard: Guard, control: &UnixStream) -> ExitCode {
    let mut guard = guard;
    let end = converse(parent, bwrap, &mut mounts, &mut guard, control);
    let (status, why) = end.unwrap_or_else(|_| (bwrap.kill(), None));
    sys::process::end_within(END_BOUND);
    // Bound to a launcher that dies, it could not search; if that cannot be undone, the kernel has the last word.
    let _ = sys::process::unbind();
    let mut news = News::new(control, guard.state(), guard.take_record());
    // What is to be moved away is, even when that can neither be told nor kept.
    let mut tell = |event| _ = news.tell(&event);
    why.map(&mut tell);
    finish(mounts, guard, &mut tell);
    news.end(status);
    exit_code(status)
}

/// What is left to do when all of the sandbox has ended.
fn finish(mut mounts: Mounts, guard: Guard, tell: &mut dyn FnMut(Event)) {
    let untouched = mounts.untouched();
    drop(mounts);
    guard.finish(&untouched, tell);
}

fn exit_code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// The exit status, and what is to be told of the end, if anything is.
type End = (i32, Option<Event>);

/// Until the server ends, the launcher hangs up, a signal comes, or the sandbox is out of order.
fn converse(
    parent: Pid,
    bwrap: &mut Bwrap,
    mounts: &mut Mounts,
    guard: &mut Guard,
    control: &UnixStream,
) -> io::Result<End> {
    // When a person's session ends, every process is told at once.
    let signals = Signals::hold()?;
    sys::orphan::prepare(bwrap.ended())?;
    let mut lines = Lines::default();
    loop {
        sys::orphan::release()?;
        let [mounted, named] = mounts.news();
        let asked = [control.as_fd(), bwrap.ended(), signals.as_fd()];
        let [asked, ended, told_to_end] = asked.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let [asked, ended, told_to_end, mounted, named] = wait([asked, ended, told_to_end, mounted, named])?;
        if ended {
            return Ok((bwrap.reap(), None));
        }
        if told_to_end {
            return Ok((bwrap.kill(), None));
        }
        if !(mounted || named || asked) {
            continue;
        }
        // What it does now can hang on a file system.
        sys::orphan::guard(parent, REQUEST_BOUND)?;
        if let Some(path) = uncovered(mounts, [mounted, named]) {
            return Ok(stop(bwrap, path));
        }
        let lines = if asked { lines.read(control)? } else { vec![] };
        for line in lines {
            let reply = answer(&line, mounts, guard);
            if let Some(path) = mounts.uncovered() {
                return Ok(stop(bwrap, path));
            }
            say(control, &reply)?;
            if matches!(reply.answer, Answer::Closing | Answer::Broken { .. }) {
                return Ok((bwrap.kill(), None));
            }
        }
    }
}

/// The path that is not covered any more, if there was news and that is what they were.
fn uncovered(mounts: &mut Mounts, [mounted, named]: [bool; 2]) -> Option<String> {
    let named = named && mounts.names_changed();
    if mounted || named { mounts.uncovered() } else { None }
}

/// Kills all of the sandbox, the server first, because it could reach what is at `path` now.
fn stop(bwrap: &mut Bwrap, path: String) -> End {
    bwrap.signal(Signal::KILL);
    (bwrap.kill(), Some(Event::Uncovered { path }))
}

/// Waits until one of them has something, and tells which.
fn wait<const N: usize>(mut polled: [PollFd<'_>; N]) -> io::Result<[bool; N]> {
    match poll(&mut polled, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled.map(|polled| !polled.revents().is_empty()))
}

fn answer(line: &str, mounts: &mut Mounts, guard: &mut Guard) -> ControlReply {
    let request: ControlRequest = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => {
            let answer =
                Answer::Refused { code: Refusal::BadRequest, message: format!("not a request: {error}") };
            return ControlReply { id: 0, answer };
        }
    };
    let done = match request.op {
        ControlOp::Add(mount) => mounts.add(&mount, guard).map(|()| Answer::Added),
        ControlOp::Narrow { path, file } => {
            mounts.narrow(&path, file, guard).map(|proof| Answer::Narrowed { proof })
        }
        ControlOp::Remove { path } => mounts.remove(&path, guard).map(|proof| Answer::Removed { proof }),
        ControlOp::List => Ok(Answer::Mounts { mounts: mounts.list() }),
        ControlOp::Shutdown => Ok(Answer::Closing),
    };
    let answer = match done {
        Ok(answer) => answer,
        Err(MountError::Refused { code, message }) => Answer::Refused { code, message },
        Err(MountError::Broken(message)) => Answer::Broken { message },
    };
    ControlReply { id: request.id, answer }
}
