//! Starts bubblewrap and starts the server once the sandbox is complete.
//!
//! - Bubblewrap receives its options, filters and user database through descriptors. Its standard error is a pipe to
//!   the supervisor, separate from the server's.
//! - Once its base file system (the frame) is complete, bubblewrap reads a byte and then starts
//!   [`enter`](crate::enter). Meanwhile, the other mounts are prepared. The server starts when both are done.
//! - The gate is a socket pair. Only `enter` holds the other end. A successful `exec` closes that end.

mod frame;
mod spawn;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, kill_process_group},
};
pub(super) use spawn::InheritedDescriptors;
pub(crate) use spawn::find_bwrap;

use super::{SupervisorStartError, owner::SandboxOwner, served::ServedView, tun::ServedTun};
use crate::{
    argv::{self, Descriptors},
    connector::{Connections, Connector},
    enter::{GO, READY},
    fd_passing,
    host::HostTree,
    mounts::{InitialMounts, InitialMountsChild, SandboxNamespaces},
    outcome::FAILED,
    spec::Spec,
    sys::{self, process::NamespaceInit},
};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Bubblewrap process. Dropping it kills the sandbox.
#[derive(Debug)]
pub(super) struct Bwrap {
    child: NamespaceInit,
    /// Pidfd of bubblewrap, readable once it exits.
    exit_fd: OwnedFd,
    numbers: Descriptors,
    /// Pipe for bubblewrap's options, or `None` once they are written.
    options: Option<File>,
    /// Pipe that becomes writable once bubblewrap has read its byte.
    frame: File,
    gate: UnixStream,
    /// Process that becomes the server and leads its process group, or `None` until it is ready.
    server: Option<Pid>,
    /// Pipe with the process id of the sandbox's init.
    info: File,
    messages: File,
    /// Bubblewrap's own mount namespace, kept open because destroying it takes the kernel a long time.
    namespace: Option<OwnedFd>,
    /// Child that prepares the initial mounts.
    mounts_child: Option<InitialMountsChild>,
    /// Process that connects the sandbox's sockets, or `None` if `connect` calls are not reported.
    connector: Option<Connector>,
    /// Process that serves the sandbox's files, or `None` if no files are served.
    view: Option<ServedView>,
    /// Process that serves the sandbox's TUN device, if there is one.
    tun: Option<ServedTun>,
}

impl Bwrap {
    /// Writes bubblewrap's options.
    pub(super) fn write_options(&mut self, spec: &Spec, host: &HostTree) -> Result<(), SupervisorStartError> {
        let mut words = argv::bwrap_argv(spec, host, self.numbers).join("\0");
        words.push('\0');
        // Bubblewrap reads until EOF, so the pipe must be closed after writing.
        let Some(mut options) = self.options.take() else { return Ok(()) };
        options.write_all(words.as_bytes()).map_err(|_| self.setup_failed())
    }

    /// Takes ownership of the process that serves the sandbox's files, if any.
    pub(super) fn set_view(&mut self, view: Option<ServedView>) {
        self.view = view;
    }

    /// Returns a descriptor that becomes readable when the process that serves the sandbox's files exits. If no files
    /// are served, it becomes readable when bubblewrap exits.
    pub(super) fn view_exit_fd(&self) -> BorrowedFd<'_> {
        self.view.as_ref().map_or(self.exit_fd.as_fd(), ServedView::exit_fd)
    }

    /// Takes ownership of the process that serves the sandbox's TUN device.
    pub(super) fn set_tun(&mut self, tun: ServedTun) {
        self.tun = Some(tun);
    }

    /// Starts preparing the initial mounts, in parallel with bubblewrap.
    pub(super) fn prepare(&mut self, mounts: InitialMounts) -> io::Result<()> {
        let mount = self.view.as_mut().and_then(ServedView::take_mount);
        self.mounts_child = Some(InitialMountsChild::start(mounts, mount)?);
        Ok(())
    }

    /// Waits for the base file system and moves the prepared mounts into the sandbox. Returns its namespaces and the
    /// mount ids by path.
    pub(super) fn wait_for_frame(
        &mut self,
        owner: &dyn SandboxOwner,
        own_tmp: bool,
    ) -> Result<(SandboxNamespaces, BTreeMap<String, u64>), SupervisorStartError> {
        self.wait_for(PollFd::new(&self.frame, PollFlags::OUT), owner)?;
        if !frame::is_complete(&self.frame)? {
            return Err(self.setup_failed());
        }
        let first = self.first_process()?;
        let own = format!("/proc/{}", self.child.pid().as_raw_nonzero());
        self.namespace = open(format!("{own}/ns/mnt"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok();
        // The reported process id is valid only in bubblewrap's own `/proc`.
        let path = format!("{own}/root/proc/{first}");
        let process = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let process = process.map_err(io::Error::from)?;
        let shown = self.mounts_child.as_mut().map(|first| first.finish(&process)).transpose();
        let shown = shown.map_err(|error| SupervisorStartError::Setup(error.to_string()))?;
        Ok((SandboxNamespaces::open(process, own_tmp)?, shown.unwrap_or_default()))
    }

    /// Waits until the sandbox is ready for the server.
    pub(super) fn wait_until_ready(
        &mut self,
        owner: &dyn SandboxOwner,
        sandbox: &SandboxNamespaces,
    ) -> Result<(), SupervisorStartError> {
        self.wait_for(PollFd::new(&self.gate, PollFlags::IN), owner)?;
        match fd_passing::receive_byte_and_sender(&self.gate)? {
            (Some(READY), server) => self.server = server,
            _ => return Err(self.setup_failed()),
        }
        if sandbox.has_original_root()? { Ok(()) } else { Err(SupervisorStartError::RootChanged) }
    }

    /// Starts the server, unless `owner` cancels. Returns once the server's program is running.
    ///
    /// `connections` must be `Some` if the sandbox's `connect` calls are reported.
    pub(super) fn start_server(
        &mut self,
        owner: &dyn SandboxOwner,
        connections: Option<Connections>,
    ) -> Result<(), SupervisorStartError> {
        if poll(&mut [owner.cancellation()], Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            return Err(SupervisorStartError::Cancelled);
        }
        self.gate.write_all(&[GO])?;
        let mut problem = String::new();
        if let Some(connections) = connections {
            match fd_passing::receive_or_byte(&self.gate)? {
                Ok(calls) => self.connector = Some(Connector::start(calls, connections)?),
                Err(Some(byte)) => problem.push(byte.into()),
                Err(None) => return Err(self.setup_failed()),
            }
        }
        self.gate.read_to_string(&mut problem)?;
        let Some((status, problem)) = problem.split_once(' ') else { return Ok(()) };
        let status = status.parse().unwrap_or(FAILED);
        Err(SupervisorStartError::Program { status, problem: problem.to_owned() })
    }

    /// Releases resources that are needed only until the server runs: program code, and the child that prepared the
    /// mounts, which takes milliseconds to exit.
    pub(super) fn release_memory(&mut self) {
        self.mounts_child = None;
        sys::memory::drop_code();
    }

    /// Sends a signal to the server's process group.
    pub(super) fn signal(&self, signal: Signal) {
        // Ignores the error: the group has exited.
        let _ = self.server.map(|server| kill_process_group(server, signal));
    }

    /// Returns bubblewrap's own mount namespace.
    pub(super) fn namespace(&self) -> Option<BorrowedFd<'_>> {
        self.namespace.as_ref().map(AsFd::as_fd)
    }

    /// Returns a descriptor that becomes readable when bubblewrap exits.
    pub(super) fn exit_fd(&self) -> BorrowedFd<'_> {
        self.exit_fd.as_fd()
    }

    /// Kills all processes in the sandbox. Returns the exit status.
    pub(super) fn kill(&mut self) -> i32 {
        self.child.kill();
        // A process that waits for permission would otherwise delay the exit.
        self.view = None;
        self.tun = None;
        self.reap()
    }

    /// Waits until bubblewrap exits. Returns the exit status, or 128 plus the signal number.
    pub(super) fn reap(&mut self) -> i32 {
        self.mounts_child = None;
        self.child.wait().unwrap_or(125)
    }

    /// Waits until `source` is ready. Fails on timeout, if bubblewrap exits, or if `owner` cancels.
    fn wait_for(&self, source: PollFd<'_>, owner: &dyn SandboxOwner) -> Result<(), SupervisorStartError> {
        let deadline = Instant::now() + TIMEOUT;
        let mut polled = [source, PollFd::new(&self.exit_fd, PollFlags::IN), owner.cancellation()];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| SupervisorStartError::TimedOut)?;
            match poll(&mut polled, Some(&left)) {
                Ok(0) => return Err(SupervisorStartError::TimedOut),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let [ready, ended, hung_up] = polled.each_ref().map(|polled| !polled.revents().is_empty());
            if hung_up {
                return Err(SupervisorStartError::Cancelled);
            }
            if ready || ended {
                return Ok(());
            }
        }
    }

    fn first_process(&mut self) -> Result<u64, SupervisorStartError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        struct Info {
            child_pid: u64,
        }
        let mut text = String::new();
        self.info.read_to_string(&mut text)?;
        Ok(serde_json::from_str::<Info>(&text)?.child_pid)
    }

    /// Kills bubblewrap and returns the error that it printed.
    fn setup_failed(&mut self) -> SupervisorStartError {
        let status = self.kill();
        match (read_messages(&self.messages), self.child.exec_error()) {
            (output, _) if !output.is_empty() => SupervisorStartError::Setup(output),
            (_, Some(error)) => SupervisorStartError::Prepare(error),
            (_, None) => SupervisorStartError::Setup(format!("bubblewrap exited with status {status}")),
        }
    }
}

impl Drop for Bwrap {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns bubblewrap's output on standard error so far, without blocking.
fn read_messages(mut messages: &File) -> String {
    let mut output = [0; 4096];
    let count = messages.read(&mut output).unwrap_or_default();
    String::from_utf8_lossy(output.get(..count).unwrap_or_default()).trim().to_owned()
}
