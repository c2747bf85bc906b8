//! Supervisor of one sandbox. Sets up the sandbox, then changes its mounts on request until the launcher or the server
//! exits.
//!
//! - INVARIANT: the process is single-threaded, because it forks children that do not `exec` and enters namespaces.
//! - INVARIANT: all processes of the sandbox are in one pid namespace, whose init is bubblewrap. When the supervisor
//!   dies, the kernel kills bubblewrap and thereby the whole namespace.
//! - INVARIANT: once bubblewrap is running, the supervisor holds none of the server's standard streams.
//! - Closing the control stream terminates the sandbox. The kernel kills the supervisor when the launcher dies.
//! - The supervisor neither keeps records nor scans files. The launcher checks the files that a server leaves behind
//!   ([`autostart`](crate::autostart)).

mod bwrap;
mod lines;
mod namespaces;
mod owner;
mod served;
mod server_stdio;
mod start;
mod streams;
mod terminal;
mod tun;

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
    bwrap::{Bwrap, InheritedDescriptors},
    lines::{ControlLines, write_message},
    owner::SandboxOwner,
    server_stdio::take_streams,
    start::start,
    streams::{StreamError, Streams},
};

use crate::{
    cgroup::CgroupLimits,
    control::{ControlAnswer, ControlOp, ControlReply, ControlRequest, MountRefusal, SandboxEvent},
    mount_plan::LayoutError,
    mounts::{MountError, Mounts, RestoredMask},
    outcome::FAILED,
    spec::{Spec, SpecError},
    special::SpecialFileLink,
    sys::{self, signals::Signals},
};

/// Idle time after which memory that is used only for processing events is released.
const IDLE_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Failure to start a server in its sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorStartError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("failed to parse the sandbox specification: {0}")]
    InvalidSpec(#[from] serde_json::Error),
    #[error("refusing to run the sandbox as root; run as an ordinary user, or pass `--allow-root`")]
    Root,
    #[error("failed to create a user namespace, which the sandbox needs: {0}")]
    Namespaces(io::Error),
    #[error("bubblewrap is not installed: `bwrap` not found")]
    NoBwrap,
    #[error("failed to set up the sandbox: {0}")]
    Setup(String),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error("{problem}")]
    Program { status: u8, problem: String },
    #[error("bubblewrap unexpectedly changed the sandbox's root or mount namespace during startup")]
    RootChanged,
    #[error("timed out waiting for the sandbox to start")]
    TimedOut,
    #[error("the sandbox was cancelled before it started")]
    Cancelled,
    #[error("failed to serve your files to the sandbox: {0}")]
    View(io::Error),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("failed to prepare the sandbox: {0}")]
    Prepare(#[from] io::Error),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("failed to build the system call filter: {0}")]
    Filter(#[from] seccompiler::Error),
}

/// Runs the supervisor.
///
/// Arguments: the launcher's process id; the descriptors of the spec and the control stream; the descriptors of the
/// socket for the proxy's listener, the connection to the view, the run link and the service link, each
/// [`NO_DESCRIPTOR`](crate::sys::process::NO_DESCRIPTOR) if unused; the descriptor of the link to the watcher for pipes
/// and sockets; and, with a control group, the descriptor of its `cgroup.procs` and its limits.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, spec, control, egress, view, link, services, special, group @ ..] = args else {
        return ExitCode::from(2);
    };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let descriptors = [spec, control, special].map(|number| sys::process::take_descriptor(number));
    let [Ok(spec), Ok(control), Ok(special)] = descriptors else { return ExitCode::from(2) };
    let [Ok(egress), Ok(view), Ok(link), Ok(services)] =
        [egress, view, link, services].map(|number| sys::process::take_optional(number))
    else {
        return ExitCode::from(2);
    };
    let Ok(group) = take_group(group) else { return ExitCode::from(2) };
    let control = UnixStream::from(control);
    let owner: &dyn SandboxOwner = &control;
    let mut streams = Streams::default();
    let started = read_spec(parent, File::from(spec)).and_then(|spec| {
        let closed = spec.read_only.clone();
        // A server's streams are pipes, which are passed on unchanged.
        streams = Streams::take()?;
        let inherited = InheritedDescriptors { streams: take_streams()?, egress, link, group };
        let special = SpecialFileLink::new(special.into(), None, spec.unix_sockets)?;
        start(Some(parent), &spec, owner, inherited, (view, special, services.map(UnixStream::from)), |_| {
            Ok(closed)
        })
    });
    let (mut bwrap, mut mounts) = match started {
        Ok(started) => started,
        Err(error) => {
            // Ignores the error: the launcher may have exited, and the exit status also reports the failure.
            let _ = owner.notify(&SandboxEvent::Failed { reason: error.to_string() });
            return ExitCode::from(FAILED);
        }
    };
    let end = serve_control(&mut bwrap, &mut mounts, &control, &mut streams);
    let status = end.unwrap_or_else(|_| bwrap.kill());
    // If writing the program's output fails, the program has already received a broken pipe.
    drop(streams.finish());
    // Ignores the error: the launcher may have exited.
    let _ = write_message(&control, &SandboxEvent::Exited { status });
    exit_code(status)
}

/// Takes ownership of the control group's `cgroup.procs` descriptor, and parses the group's limits.
fn take_group(group: &[String]) -> io::Result<Option<(OwnedFd, CgroupLimits)>> {
    match group {
        [] => Ok(None),
        [cgroup_procs, controlled] => {
            Ok(Some((sys::process::take_descriptor(cgroup_procs)?, serde_json::from_str(controlled)?)))
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Ties this process to the launcher's lifetime and reads the specification.
fn read_spec(parent: Pid, mut spec: File) -> Result<Spec, SupervisorStartError> {
    sys::process::bind_to_parent(parent).map_err(io::Error::from)?;
    sys::process::close_on_exec_from(3).map_err(io::Error::from)?;
    sys::process::join_new_keyring()?;
    let mut text = String::new();
    spec.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn exit_code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

/// Handles control requests until the server exits, the launcher closes the control stream or a signal arrives, and
/// returns the exit status.
///
/// On error, the caller must terminate the sandbox.
fn serve_control(
    bwrap: &mut Bwrap,
    mounts: &mut Mounts,
    control: &UnixStream,
    streams: &mut Streams,
) -> io::Result<i32> {
    // Handles signals, because at logout every process of the session receives a signal.
    let signals = Signals::block_forwarded()?;
    let mut lines = ControlLines::default();
    let mut idle_timeout = Some(IDLE_TIME);
    loop {
        let [asked, ended, view_exited, signalled] =
            [control.as_fd(), bwrap.exit_fd(), bwrap.view_exit_fd(), signals.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut polled =
            vec![asked, ended, view_exited, signalled, mounts.poll_fd(), mounts.special_poll_fd()];
        polled.extend(streams.polled());
        if !wait(&mut polled, idle_timeout.as_ref())? {
            idle_timeout = None;
            bwrap.release_memory();
            continue;
        }
        idle_timeout = Some(IDLE_TIME);
        let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
        let [asked, ended, view_exited, signalled, mounted, special] = [0, 1, 2, 3, 4, 5].map(is_ready);
        if ended {
            return Ok(bwrap.reap());
        }
        // A sandbox cannot continue after the process that serves its files has exited.
        if signalled || view_exited {
            return Ok(bwrap.kill());
        }
        if mounted || special {
            restore(mounts, control)?;
        }
        streams.copy()?;
        let lines = if asked { lines.read(control)? } else { vec![] };
        for line in lines {
            let reply = answer(&line, mounts);
            // Sends events before the reply, which confirms that every mask is in place.
            restore(mounts, control)?;
            write_message(control, &reply)?;
            if matches!(reply.answer, ControlAnswer::Closing | ControlAnswer::Broken { .. }) {
                return Ok(bwrap.kill());
            }
        }
    }
}

/// Restores masks whose paths programs outside the sandbox have replaced and reports each restored mask.
fn restore(mounts: &mut Mounts, control: &UnixStream) -> io::Result<()> {
    mounts.restore_masks()?.into_iter().try_for_each(|RestoredMask { path, hidden }| {
        write_message(control, &SandboxEvent::Uncovered { path, hidden })
    })
}

/// Waits until a descriptor is ready. Returns `false` on timeout.
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
                message: format!("invalid request: {error}"),
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
