//! The supervisor of one sandbox: sets it up, then changes its mounts on request until either side is gone.
//!
//! - INVARIANT: one thread. It forks children that do not exec, and enters namespaces, which only such a process can.
//! - INVARIANT: everything it starts is in one pid namespace whose first process is bubblewrap, which the kernel kills
//!   when the supervisor dies, and everything in the namespace with it.
//! - INVARIANT: once bubblewrap runs it holds none of the server's standard streams.
//! - The control stream's end is the sandbox's end.

mod bwrap;
mod lines;
mod namespaces;
mod owner;
mod terminal;

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
    process::ExitCode,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, getgid, getuid},
};

pub(crate) use bwrap::find_bwrap;
pub(crate) use terminal::{Command, NAME, in_foreground};

use self::{
    bwrap::Bwrap,
    lines::{Lines, say},
    owner::Owner,
};
use crate::{
    cgroup::Controlled,
    control::{Answer, ControlOp, ControlReply, ControlRequest, Enforcement, Event, Refusal},
    enter::{FAILED, NONE},
    mountinfo::MountInfo,
    mounts::{MountError, Mounts},
    persistence::{Guard, GuardError},
    place::is_below,
    shape::{Layout, LayoutError},
    spec::{Spec, SpecError, View},
    state::StateDir,
    sys,
};

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
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error(transparent)]
    Guard(#[from] GuardError),
    #[error("the system call filter could not be made: {0}")]
    Filter(#[from] seccompiler::Error),
}

/// Arguments: the launcher's process id, the descriptors of the spec and of the control stream, that of the socket which the
/// proxy's listener goes through or nothing; and where there is a control group its door, and which limits it has.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, spec, control, egress, group @ ..] = args else { return ExitCode::from(2) };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let (Ok(spec), Ok(control)) =
        (sys::process::take_descriptor(spec), sys::process::take_descriptor(control))
    else {
        return ExitCode::from(2);
    };
    let egress = Some(egress).filter(|egress| *egress != NONE);
    let Ok(egress) = egress.map(|egress| sys::process::take_descriptor(egress)).transpose() else {
        return ExitCode::from(2);
    };
    let Ok(group) = taken(group) else { return ExitCode::from(2) };
    let given = Given { egress, group };
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
    serve(&mut bwrap, mounts, guard, &control)
}

/// What came with exec beside what every supervisor gets.
struct Given {
    egress: Option<OwnedFd>,
    group: Option<(OwnedFd, Controlled)>,
}

/// The door of a control group, and its limits.
fn taken(group: &[String]) -> io::Result<Option<(OwnedFd, Controlled)>> {
    match group {
        [] => Ok(None),
        [door, controlled] => {
            Ok(Some((sys::process::take_descriptor(door)?, serde_json::from_str(controlled)?)))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// What the launcher wants.
fn ordered(parent: Pid, mut spec: File) -> Result<Spec, StartError> {
    sys::process::bind_to_parent(parent).map_err(io::Error::from)?;
    sys::process::close_on_exec_from(3).map_err(io::Error::from)?;
    sys::process::leave_keyring()?;
    let mut text = String::new();
    spec.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Starts the server; the sandbox ends with `parent` if there is one.
fn start(
    parent: Option<Pid>,
    spec: &Spec,
    owner: &Owner<'_>,
    given: Given,
) -> Result<(Bwrap, Mounts, Guard), StartError> {
    spec.validate()?;
    let (uid, gid) = (getuid(), getgid());
    if uid.is_root() && !spec.allow_root {
        return Err(StartError::Root);
    }
    namespaces::enter(parent, uid, gid).map_err(StartError::Namespaces)?;

    let state = StateDir::open(spec.state_dir.as_deref(), uid.as_raw())?;
    let table = MountInfo::parse(&std::fs::read("/proc/self/mountinfo")?);
    let mut layout = Layout::of(spec, &table, &state.path().to_string_lossy())?;
    let mut guard = Guard::new(&spec.persistence.allow, state)?;
    let controlled = given.group.as_ref().map(|(_, controlled)| *controlled).unwrap_or_default();
    let started = start_bwrap(spec, &mut layout, &mut guard, given).and_then(|mut bwrap| {
        let started = start_server(spec, &layout, &mut bwrap, &mut guard, owner).and_then(|mounts| {
            owner.say(&in_force(spec, controlled))?;
            Ok(mounts)
        });
        if started.is_err() {
            bwrap.kill();
        }
        started.map(|mounts| (bwrap, mounts))
    });
    match started {
        Ok((bwrap, mounts)) => Ok((bwrap, mounts, guard)),
        Err(error) => {
            // Nothing of the server's has run, so there is nothing to tell of but the error.
            guard.finish();
            Err(error)
        }
    }
}

fn start_bwrap(
    spec: &Spec,
    layout: &mut Layout,
    guard: &mut Guard,
    given: Given,
) -> Result<Bwrap, StartError> {
    // What is never writable is not so by its own path either.
    layout.writable.retain(|path| !guard.protects(path));
    for root in &layout.writable {
        let missing: Vec<String> =
            layout.missing.iter().filter(|path| is_below(path, root)).cloned().collect();
        let closed = guard.cover(root, &missing, &layout.shape)?;
        layout.shape.extend(closed);
    }
    Bwrap::start(spec, layout, given.egress, given.group.map(|(door, _)| door))
}

fn start_server(
    spec: &Spec,
    layout: &Layout,
    bwrap: &mut Bwrap,
    guard: &mut Guard,
    owner: &Owner<'_>,
) -> Result<Mounts, StartError> {
    let sandbox = bwrap.wait_until_ready(owner)?;
    let mut fixed = layout.writable.clone();
    if let View::Roots { programs, .. } = &spec.view {
        fixed.extend(programs.iter().cloned());
    }
    let mut mounts = Mounts::new(sandbox, &fixed, layout.shape.clone())?;
    for mount in &spec.mounts {
        mounts.add(mount, guard)?;
    }
    bwrap.start_server()?;
    owner.say(&Event::Started)?;
    Ok(mounts)
}

/// Which limits hold, and by what.
fn in_force(spec: &Spec, group: Controlled) -> Event {
    let by = |asked: bool, in_group: bool, otherwise| match (asked, in_group) {
        (false, _) => Enforcement::Unlimited,
        (true, true) => Enforcement::Cgroup,
        (true, false) => otherwise,
    };
    let of_processes = if getuid().is_root() { Enforcement::Unenforced } else { Enforcement::Sandbox };
    Event::Limited {
        memory: by(spec.limits.memory.is_some(), group.memory, Enforcement::Process),
        cpu: by(spec.limits.cpu.is_some(), group.cpu, Enforcement::Unenforced),
        processes: by(spec.limits.processes.is_some(), group.processes, of_processes),
    }
}

/// Serves the launcher to the end, and says how that was.
fn serve(bwrap: &mut Bwrap, mounts: Mounts, mut guard: Guard, control: &UnixStream) -> ExitCode {
    let status = converse(bwrap, mounts, &mut guard, control).unwrap_or_else(|_| bwrap.kill());
    for event in guard.finish() {
        let _ = say(control, &event);
    }
    let _ = say(control, &Event::Exited { status });
    exit_code(status)
}

fn exit_code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// Until the server ends, the launcher hangs up, or the sandbox is out of order; returns the exit status.
fn converse(
    bwrap: &mut Bwrap,
    mut mounts: Mounts,
    guard: &mut Guard,
    control: &UnixStream,
) -> io::Result<i32> {
    let mut lines = Lines::default();
    loop {
        let [asked, ended] = wait(control.as_fd(), bwrap.ended())?;
        if ended {
            return Ok(bwrap.reap());
        }
        if !asked {
            continue;
        }
        for line in lines.read(control)? {
            let reply = answer(&line, &mut mounts, guard);
            say(control, &reply)?;
            if matches!(reply.answer, Answer::Closing | Answer::Broken { .. }) {
                return Ok(bwrap.kill());
            }
        }
    }
}

/// Waits until one of them is readable, and tells which.
fn wait(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<[bool; 2]> {
    let mut polled = [one, other].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
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
