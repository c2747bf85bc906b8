//! The supervisor of one sandbox: sets it up, then changes its mounts on request until either side is gone.
//!
//! - INVARIANT: one thread. It forks children that do not exec, and enters namespaces, which only such a process can.
//! - INVARIANT: everything it starts is in one pid namespace whose first process is bubblewrap, which the kernel kills
//!   when the supervisor dies, and everything in the namespace with it.
//! - INVARIANT: once bubblewrap runs it holds none of the server's standard streams.
//! - The control stream's end is the sandbox's end, and so is the launcher's: the kernel kills the supervisor with it.
//! - It keeps no record and searches nothing: what a server leaves behind is the launcher's to look at
//!   ([`autostart`](crate::autostart)).

mod bwrap;
mod lines;
mod namespaces;
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
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Pid,
};

pub(crate) use bwrap::find_bwrap;
pub(crate) use terminal::{ForegroundCommand, NAME, run_in_foreground};

use self::{
    bwrap::{Bwrap, InheritedDescriptors, take_streams},
    lines::{ControlLines, say},
    owner::SandboxOwner,
    start::start,
};

use crate::{
    cgroup::CgroupLimits,
    control::{ControlAnswer, ControlOp, ControlReply, ControlRequest, MountRefusal, SandboxEvent},
    enter::{FAILED, NONE},
    mount_plan::LayoutError,
    mounts::{MountError, Mounts, RestoredMask},
    spec::{Spec, SpecError},
    special::SpecialLink,
    sys::{self, signals::Signals},
};

/// After so long without news, memory that is only needed when there is some is given back.
const QUIET: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The reasons why a server is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorStartError {
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
    #[error("bubblewrap changed the sandbox after its frame was complete")]
    Frame,
    #[error("the sandbox was not ready in time")]
    TooSlow,
    #[error("the sandbox was given up before it was ready")]
    HungUp,
    #[error("the sandbox could not be prepared: {0}")]
    Prepare(#[from] io::Error),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("the system call filter could not be made: {0}")]
    Filter(#[from] seccompiler::Error),
}

/// Arguments: the launcher's process id, the descriptors of the spec and of the control stream, that of the socket which the
/// proxy's listener goes through or nothing, that of the link to the watch for pipes and sockets; and where there is a control group its door, and which limits it has.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, spec, control, egress, special, group @ ..] = args else { return ExitCode::from(2) };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let taken_up = [spec, control, special].map(|number| sys::process::take_descriptor(number));
    let [Ok(spec), Ok(control), Ok(special)] = taken_up else { return ExitCode::from(2) };
    let (Ok(egress), Ok(group)) = (taken(egress), door(group)) else { return ExitCode::from(2) };
    let control = UnixStream::from(control);
    let owner: &dyn SandboxOwner = &control;
    let started = ordered(parent, File::from(spec)).and_then(|spec| {
        let closed = spec.closed.clone();
        let given = InheritedDescriptors { streams: take_streams()?, egress, group };
        let special = SpecialLink::new(special.into(), None, spec.unix_sockets)?;
        start(Some(parent), &spec, owner, given, special, |_| Ok(closed))
    });
    let (mut bwrap, mut mounts) = match started {
        Ok(started) => started,
        Err(error) => {
            // Nobody may be listening any more; the exit status says the same.
            let _ = owner.say(&SandboxEvent::Failed { reason: error.to_string() });
            return ExitCode::from(FAILED);
        }
    };
    let end = converse(&mut bwrap, &mut mounts, &control);
    let status = end.unwrap_or_else(|_| bwrap.kill());
    // A launcher that is gone needs no word.
    let _ = say(&control, &SandboxEvent::Exited { status });
    exit_code(status)
}

/// A descriptor, or none.
fn taken(number: &str) -> io::Result<Option<OwnedFd>> {
    if number == NONE { Ok(None) } else { sys::process::take_descriptor(number).map(Some) }
}

/// The door of a control group, and its limits.
fn door(group: &[String]) -> io::Result<Option<(OwnedFd, CgroupLimits)>> {
    match group {
        [] => Ok(None),
        [door, controlled] => {
            Ok(Some((sys::process::take_descriptor(door)?, serde_json::from_str(controlled)?)))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The specification that the launcher hands over.
fn ordered(parent: Pid, mut spec: File) -> Result<Spec, SupervisorStartError> {
    sys::process::bind_to_parent(parent).map_err(io::Error::from)?;
    sys::process::close_on_exec_from(3).map_err(io::Error::from)?;
    sys::process::leave_keyring()?;
    let mut text = String::new();
    spec.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn exit_code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// Until the server ends, the launcher hangs up, or a signal comes; returns the exit status. An error is the end, too.
fn converse(bwrap: &mut Bwrap, mounts: &mut Mounts, control: &UnixStream) -> io::Result<i32> {
    // When a person's session ends, every process is told at once.
    let signals = Signals::hold()?;
    let mut lines = ControlLines::default();
    let mut quiet = Some(QUIET);
    loop {
        let [asked, ended, told_to_end] = [control.as_fd(), bwrap.ended(), signals.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut polled = [asked, ended, told_to_end, mounts.news(), mounts.special_news()];
        if !wait(&mut polled, quiet.as_ref())? {
            quiet = None;
            bwrap.settle();
            continue;
        }
        quiet = Some(QUIET);
        let [asked, ended, told_to_end, mounted, special] = polled.map(|polled| !polled.revents().is_empty());
        if ended {
            return Ok(bwrap.reap());
        }
        if told_to_end {
            return Ok(bwrap.kill());
        }
        if mounted || special {
            restore(mounts, control)?;
        }
        let lines = if asked { lines.read(control)? } else { vec![] };
        for line in lines {
            let reply = answer(&line, mounts);
            // Before the answer, which says that all is as it should be.
            restore(mounts, control)?;
            say(control, &reply)?;
            if matches!(reply.answer, ControlAnswer::Closing | ControlAnswer::Broken { .. }) {
                return Ok(bwrap.kill());
            }
        }
    }
}

/// Masks again what programs outside have replaced, and tells of it.
fn restore(mounts: &mut Mounts, control: &UnixStream) -> io::Result<()> {
    mounts
        .restore_masks()?
        .into_iter()
        .try_for_each(|RestoredMask { path, hidden }| say(control, &SandboxEvent::Uncovered { path, hidden }))
}

/// Waits until one of them has something, and tells whether it has, or the time is over.
fn wait(polled: &mut [PollFd<'_>], at_most: Option<&Timespec>) -> io::Result<bool> {
    match poll(polled, at_most) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn answer(line: &str, mounts: &mut Mounts) -> ControlReply {
    let request: ControlRequest = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(error) => {
            let answer = ControlAnswer::Refused {
                code: MountRefusal::BadRequest,
                message: format!("not a request: {error}"),
            };
            return ControlReply { id: 0, answer };
        }
    };
    let done = match request.op {
        ControlOp::Add(mount) => mounts.add(&mount).map(|()| ControlAnswer::Added),
        ControlOp::Narrow { path, file } => {
            mounts.narrow(&path, file).map(|proof| ControlAnswer::Narrowed { proof })
        }
        ControlOp::Remove { path } => mounts.remove(&path).map(|proof| ControlAnswer::Removed { proof }),
        ControlOp::List => Ok(ControlAnswer::Mounts { mounts: mounts.list() }),
        ControlOp::Check => Ok(ControlAnswer::Checked),
        ControlOp::Shutdown => Ok(ControlAnswer::Closing),
    };
    let answer = match done {
        Ok(answer) => answer,
        Err(MountError::Refused { code, message }) => ControlAnswer::Refused { code, message },
        Err(MountError::Broken(message)) => ControlAnswer::Broken { message },
    };
    ControlReply { id: request.id, answer }
}
