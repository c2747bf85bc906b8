//! Launches sandboxes from the trusted process.
//!
//! - INVARIANT: the thread that spawns a supervisor outlives the supervisor, because the kernel sends the parent-death
//!   signal when that thread exits. The sandbox therefore dies whenever the trusted process is killed;
//!   [`supervisor`](crate::supervisor) describes how quickly.
//! - INVARIANT: the supervisor inherits only the server's standard streams, the spec, the control stream, the link to
//!   the watcher for pipes and sockets and, if they are used, the socket for the proxy's listener, the connection to
//!   the view, the run link, the service link and the control group's `cgroup.procs`.
//! - [`launch`] returns as soon as the supervisor is running. The control stream reports when the server has started.

use std::{
    fs::File,
    io::{self, Seek, Write},
    net::TcpListener,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{
            net::{UnixListener, UnixStream},
            process::CommandExt,
            process::ExitStatusExt,
        },
    },
    path::Path,
    process::{Child, ExitStatus, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use ironcurtain_paths::OwnProgram;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{MemfdFlags, memfd_create},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::Serialize;

use crate::{
    cgroup::{CgroupLimits, CgroupRoot},
    error::SandboxLaunchError,
    fd_passing,
    outcome::SandboxExit,
    service_link::ServiceLink,
    spec::{NetworkAccess, Spec, View},
    special, sys,
    sys::process::NO_DESCRIPTOR,
};

/// Running supervisor, as seen by the trusted process.
///
/// Dropping `control` terminates the sandbox.
#[derive(Debug)]
pub struct LaunchedSandbox {
    /// Write end of the server's standard input.
    pub stdin: OwnedFd,
    /// Read end of the server's standard output.
    pub stdout: OwnedFd,
    /// Read end of the server's standard error.
    pub stderr: OwnedFd,
    /// Control stream; see [`control`](crate::control).
    pub control: UnixStream,
    /// The supervisor's process id, for display.
    pub pid: u32,
    /// Handle that kills the sandbox.
    pub kill: KillHandle,
    /// Handle for receiving the proxy's listener; set if the spec's network has a proxy.
    pub egress: Option<Egress>,
    /// Connection to the view; set if the spec's view is [`View::Served`].
    pub view: Option<UnixStream>,
    /// Link for services on this computer; set if the spec's network is [`NetworkAccess::ProxiedWithServices`].
    pub services: Option<ServiceLink>,
}

/// Receiver of a sandbox's listeners: first the proxy's listener, then the listeners of the unix sockets.
#[derive(Debug)]
pub struct Egress(UnixStream);

impl Egress {
    /// Waits for the listener on port [`PROXY_PORT`](crate::PROXY_PORT) of the sandbox's own `127.0.0.1`. The listener
    /// arrives no later than [`SandboxEvent::Started`](crate::SandboxEvent::Started). Fails if the sandbox cannot be
    /// started.
    pub fn listener(&self) -> io::Result<TcpListener> {
        Ok(fd_passing::receive(&self.0)?.into())
    }

    /// Waits for the listener of the view's next socket, in the order of the sockets. Call this after
    /// [`listener`](Self::listener).
    pub fn socket(&self) -> io::Result<UnixListener> {
        Ok(fd_passing::receive(&self.0)?.into())
    }
}

/// Handle that kills one sandbox. Cheap to clone, and safe to use after the sandbox has exited.
#[derive(Clone, Debug)]
pub struct KillHandle(Arc<OwnedFd>);

impl KillHandle {
    /// Kills the supervisor and thereby the whole sandbox.
    pub fn kill(&self) {
        // Ignores the error: the supervisor has already exited.
        let _ = pidfd_send_signal(&*self.0, Signal::KILL);
    }
}

impl KillHandle {
    /// Waits up to `timeout` for the supervisor to clean up and exit, then kills it. The control stream must already
    /// be closed.
    pub fn kill_after(self, timeout: Duration) {
        let kill = self.clone();
        let wait = move || {
            let left = Timespec::try_from(timeout).unwrap_or_default();
            let ended = poll(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(&left));
            if !matches!(ended, Ok(1..)) {
                self.kill();
            }
        };
        if thread::Builder::new().name("sandbox-end".into()).stack_size(64 * 1024).spawn(wait).is_err() {
            kill.kill();
        }
    }
}

/// Launches a sandbox for `spec` with `supervisor_program`. Calls `on_ended` once, from another thread, after the
/// supervisor has exited.
///
/// On failure, nothing is left running and `on_ended` is not called.
pub fn launch(
    spec: &Spec,
    supervisor_program: &Path,
    on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedSandbox, SandboxLaunchError> {
    launch_in(CgroupRoot::find(), spec, supervisor_program, on_ended)
}

/// Running supervisor of a run. The run's program uses the user's own standard streams, and a view serves its files.
///
/// Dropping `control` terminates the sandbox.
#[derive(Debug)]
pub struct LaunchedRun {
    /// Control stream, see [`control`](crate::control).
    pub control: UnixStream,
    /// Connection to the view; see [`file_access`](crate::file_access).
    pub view: UnixStream,
    /// Receiver of the proxy's listener. `Some` if the spec's network has a proxy.
    pub egress: Option<Egress>,
    /// Link for services on this computer. `Some` if the network is [`NetworkAccess::ProxiedWithServices`].
    pub services: Option<ServiceLink>,
    /// The supervisor's process id, for display.
    pub pid: u32,
    /// Handle that kills the sandbox.
    pub kill: KillHandle,
}

/// Launches a run for `spec` with the given standard streams. The view must be [`View::Served`](crate::View::Served).
/// `link` is the inner end of the [`RunLink`](crate::run_link::RunLink). Calls `on_ended` like [`launch`].
///
/// On failure, nothing is left running and `on_ended` is not called.
pub fn launch_run(
    spec: &Spec,
    supervisor_program: &Path,
    streams: [OwnedFd; 3],
    link: OwnedFd,
    on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedRun, SandboxLaunchError> {
    let started =
        start_supervisor(CgroupRoot::find(), spec, supervisor_program, (streams, Some(link)), on_ended)?;
    let StartedSupervisor { control, pid, kill, egress, view, services } = started;
    let view = view.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
    Ok(LaunchedRun { control, view, egress, services, pid, kill })
}

fn launch_in(
    cgroup_root: Option<&CgroupRoot>,
    spec: &Spec,
    supervisor_program: &Path,
    on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<LaunchedSandbox, SandboxLaunchError> {
    let (stdin_theirs, stdin) = pipe()?;
    let (stdout, stdout_theirs) = pipe()?;
    let (stderr, stderr_theirs) = pipe()?;
    let streams = [stdin_theirs, stdout_theirs, stderr_theirs];
    let started = start_supervisor(cgroup_root, spec, supervisor_program, (streams, None), on_ended)?;
    let StartedSupervisor { control, pid, kill, egress, view, services } = started;
    Ok(LaunchedSandbox { stdin, stdout, stderr, control, pid, kill, egress, view, services })
}

/// Spawned supervisor process.
struct StartedSupervisor {
    control: UnixStream,
    pid: u32,
    kill: KillHandle,
    egress: Option<Egress>,
    view: Option<UnixStream>,
    services: Option<ServiceLink>,
}

/// Starts a supervisor whose server gets these standard streams. A run also has a link to the process that started it.
fn start_supervisor(
    cgroup_root: Option<&CgroupRoot>,
    spec: &Spec,
    supervisor_program: &Path,
    (stdio, link): ([OwnedFd; 3], Option<OwnedFd>),
    on_ended: impl FnOnce(SandboxExit) + Send + 'static,
) -> Result<StartedSupervisor, SandboxLaunchError> {
    spec.validate()?;
    let (control, control_theirs) = UnixStream::pair()?;
    let (egress, egress_theirs) = pair_if(spec.network != NetworkAccess::None)?;
    let (services, services_theirs) = pair_if(spec.network == NetworkAccess::ProxiedWithServices)?;
    let (view, view_theirs) = pair_if(matches!(spec.view, View::Served { .. }))?;
    let group = cgroup_root.map(|cgroup_root| cgroup_root.create_group(&spec.limits)).transpose()?;
    let cgroup_procs = group
        .as_ref()
        .map(|group| Ok::<_, io::Error>((group.open_procs()?, group.enforced())))
        .transpose()?;
    let start_failed =
        |source| SandboxLaunchError::Start { program: supervisor_program.display().to_string(), source };
    let theirs = SupervisorInputs {
        program: OwnProgram::open(supervisor_program).map_err(start_failed)?,
        spec: memory_file(spec)?,
        stdio,
        control: control_theirs.into(),
        special: special::serve()?.into(),
        egress: egress_theirs,
        view: view_theirs,
        link,
        services: services_theirs,
        cgroup_procs,
    };

    let (started, start) = mpsc::channel();
    thread::Builder::new().name("sandbox".into()).stack_size(256 * 1024).spawn(move || {
        let mut child = match theirs.start().and_then(with_handle) {
            Ok((kill, child)) => {
                // This fails if the receiver was dropped. `control` was then dropped too, so the supervisor exits.
                let _ = started.send(Ok((kill, child.id())));
                child
            }
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        let ended = child.wait().map(SandboxExit::from);
        on_ended(ended.unwrap_or(SandboxExit { status: None, signal: None }));
        drop(group);
    })?;
    let thread_exited = |_| io::Error::other("the spawning thread has exited");
    let (kill, pid) = start.recv().map_err(thread_exited)?.map_err(start_failed)?;
    let (egress, services) = (egress.map(Egress), services.map(ServiceLink::new));
    Ok(StartedSupervisor { control, pid, kill, egress, view, services })
}

/// Program and descriptors for starting a supervisor.
struct SupervisorInputs {
    program: OwnProgram,
    spec: File,
    stdio: [OwnedFd; 3],
    control: OwnedFd,
    special: OwnedFd,
    egress: Option<OwnedFd>,
    /// Connection from the view to the trusted process.
    view: Option<OwnedFd>,
    /// Link to the process that started the run.
    link: Option<OwnedFd>,
    /// Link for services on this computer.
    services: Option<OwnedFd>,
    cgroup_procs: Option<(OwnedFd, CgroupLimits)>,
}

impl SupervisorInputs {
    fn start(self) -> io::Result<Child> {
        let [stdin, stdout, stderr] = self.stdio;
        let mut command = self.program.into_command();
        command
            .args(["--supervise", &std::process::id().to_string()])
            .args([self.spec.as_raw_fd().to_string(), self.control.as_raw_fd().to_string()])
            .args([&self.egress, &self.view, &self.link, &self.services].map(number_or_none))
            .arg(self.special.as_raw_fd().to_string())
            .env_clear()
            .process_group(0)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        if let Some((cgroup_procs, controlled)) = &self.cgroup_procs {
            command.args([cgroup_procs.as_raw_fd().to_string(), serde_json::to_string(controlled)?]);
        }
        sys::process::die_with_parent(&mut command);
        let mut needed = vec![self.spec.as_fd(), self.control.as_fd(), self.special.as_fd()];
        let passed = [&self.egress, &self.view, &self.link, &self.services];
        needed.extend(passed.into_iter().flatten().map(AsFd::as_fd));
        needed.extend(self.cgroup_procs.iter().map(|(cgroup_procs, _)| cgroup_procs.as_fd()));
        sys::process::inherit(&mut command, &needed);
        command.spawn()
    }
}

/// Creates a socket pair if `wanted`. Returns this process's end and the supervisor's end.
fn pair_if(wanted: bool) -> io::Result<(Option<UnixStream>, Option<OwnedFd>)> {
    let pair = wanted.then(UnixStream::pair).transpose()?;
    Ok(pair.map_or((None, None), |(ours, theirs)| (Some(ours), Some(theirs.into()))))
}

/// Returns the number of a descriptor, or [`NO_DESCRIPTOR`], for the command line.
fn number_or_none(descriptor: &Option<OwnedFd>) -> String {
    descriptor.as_ref().map_or(NO_DESCRIPTOR.to_owned(), |descriptor| descriptor.as_raw_fd().to_string())
}

/// Opens a pidfd of `child`. Must be called before `child` is reaped, because its process id can be reused afterwards.
fn with_handle(mut child: Child) -> io::Result<(KillHandle, Child)> {
    match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(handle) => Ok((KillHandle(Arc::new(handle)), child)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error.into())
        }
    }
}

impl From<ExitStatus> for SandboxExit {
    fn from(status: ExitStatus) -> Self {
        Self { status: status.code(), signal: status.signal() }
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Serializes a value into an anonymous in-memory file, because the spec's environment may contain tokens that a
/// command line would expose.
fn memory_file(value: &impl Serialize) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"ironcurtain-spec", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(value)?)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Instant};

    use super::*;
    use crate::{
        client::ControlClient,
        control::{Enforcement, SandboxEvent},
        spec::{ResourceLimits, UnixSockets},
    };

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn sandbox_is_in_its_control_group_while_running() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let text = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(text("session")).unwrap();
        let spec = Spec {
            argv: vec!["cat".into()],
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            cwd: None,
            home: None,
            view: View::Roots { session_dir: text("session"), programs: vec![] },
            mounts: vec![],
            network: NetworkAccess::None,
            unix_sockets: UnixSockets::None,
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: ResourceLimits { cpu: Some(50), ..ResourceLimits::default() },
            state_dir: text("state"),
            allow_root: true,
        };
        let tests = std::env::current_exe().unwrap();
        let program = tests.ancestors().nth(2).unwrap().join("ironcurtain-sandbox");
        let cgroup_root = CgroupRoot::without_controllers();
        let (end, ended) = mpsc::channel();
        let launched =
            launch_in(cgroup_root.as_ref(), &spec, &program, move |how| _ = end.send(how)).unwrap();
        let mut control = ControlClient::new(launched.control, TIMEOUT).unwrap();
        assert_eq!(control.event().unwrap(), SandboxEvent::Started);
        let SandboxEvent::Limited { memory, cpu, .. } = control.event().unwrap() else {
            panic!("expected the limits event")
        };
        // Without controllers, a group enforces no limits, and the event must report this.
        assert_eq!((memory, cpu), (Enforcement::Process, Enforcement::Unenforced));
        let Some(cgroup_root) = cgroup_root else { return };
        let group = fs::read_dir(cgroup_root.dir())
            .unwrap()
            .flatten()
            .find(|entry| entry.path().is_dir())
            .unwrap()
            .path();
        // The group contains bubblewrap, the init process of the sandbox, and the server.
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap().lines().count(), 3);
        drop(launched.stdin);
        assert_eq!(ended.recv_timeout(TIMEOUT).unwrap(), SandboxExit { status: Some(0), signal: None });
        let deadline = Instant::now() + TIMEOUT;
        while group.exists() {
            assert!(Instant::now() < deadline, "the group was not removed");
            thread::yield_now();
        }
        fs::remove_dir(cgroup_root.dir()).unwrap();
    }
}
