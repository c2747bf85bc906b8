//! Starts bubblewrap with the files and descriptors that it inherits.
//!
//! - Bubblewrap is the init of its pid namespace. Its environment is empty.
//! - It is found only in the system's directories, never through `PATH`.

use std::{
    fs::File,
    io::{self, Seek, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::{Command, Stdio},
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    mount::{MountFlags, mount},
    net::sockopt::set_socket_passcred,
    pipe::{PipeFlags, pipe_with},
    process::{PidfdFlags, Signal, getgid, getuid, pidfd_open, set_parent_process_death_signal},
};

use super::{Bwrap, frame};
use crate::{
    argv::{self, Descriptors},
    cgroup::{self, CgroupLimits},
    host::HOSTS_FILE,
    mount_plan::MountPlan,
    seccomp,
    spec::Spec,
    supervisor::SupervisorStartError,
    sys::process::NO_DESCRIPTOR,
    sys::{self, process::spawn_namespace_init},
};

/// Descriptors that bubblewrap inherits. This process closes its copies afterwards.
pub(in crate::supervisor) struct InheritedDescriptors {
    /// Standard streams of the server.
    pub(in crate::supervisor) streams: [OwnedFd; 3],
    /// Socket over which the proxy's listener is sent.
    pub(in crate::supervisor) egress: Option<OwnedFd>,
    /// Inner end of the run link.
    pub(in crate::supervisor) link: Option<OwnedFd>,
    /// `cgroup.procs` of the sandbox's control group, and the limits of the group.
    pub(in crate::supervisor) group: Option<(OwnedFd, CgroupLimits)>,
}

impl Bwrap {
    /// Starts bubblewrap, which waits for its options. Also hides the paths of `hidden` in bubblewrap's own mount
    /// namespace.
    pub(in crate::supervisor) fn start(
        spec: &Spec,
        inherited: &InheritedDescriptors,
        hidden: MountPlan,
    ) -> Result<Self, SupervisorStartError> {
        let own_program = File::open("/proc/self/exe")?;
        let seccomp = [memory_file()?, memory_file()?, memory_file()?];
        let (passwd, group, resolver, hosts) =
            (memory_file()?, memory_file()?, memory_file()?, memory_file()?);
        let (info, info_theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let (options_theirs, options) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let (messages, messages_theirs) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(io::Error::from)?;
        let (frame, frame_theirs) = frame::pipe()?;
        let (gate, gate_theirs) = UnixStream::pair()?;
        set_socket_passcred(&gate, true).map_err(io::Error::from)?;
        let numbers = Descriptors {
            info: info_theirs.as_raw_fd(),
            frame: frame_theirs.as_raw_fd(),
            seccomp: seccomp.each_ref().map(AsRawFd::as_raw_fd),
            passwd: passwd.as_raw_fd(),
            group: group.as_raw_fd(),
            resolver: resolver.as_raw_fd(),
            hosts: hosts.as_raw_fd(),
        };

        let mut command = Command::new(find_bwrap().ok_or(SupervisorStartError::NoBwrap)?);
        // The program is executed by descriptor, because its path may not be visible in the sandbox.
        let enter = format!("/proc/self/fd/{}", own_program.as_raw_fd());
        command.args(["--args", &options_theirs.as_raw_fd().to_string(), "--", &enter, "--enter"]);
        command.args(inherited.streams.each_ref().map(|stream| stream.as_raw_fd().to_string()));
        command.arg(gate_theirs.as_raw_fd().to_string());
        command.args([&inherited.egress, &inherited.link].map(|passed| {
            passed.as_ref().map_or(NO_DESCRIPTOR.to_owned(), |passed| passed.as_raw_fd().to_string())
        }));
        command.arg(serde_json::to_string(spec.view.sockets())?);
        command.arg(serde_json::to_string(&spec.limits)?);
        command.arg(spec.reports_connections().to_string());
        command.arg(spec.working_dir()).args(&spec.argv);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(messages_theirs));
        let mut needed = vec![own_program.as_fd(), options_theirs.as_fd(), passwd.as_fd(), group.as_fd()];
        needed.extend([
            resolver.as_fd(),
            hosts.as_fd(),
            info_theirs.as_fd(),
            frame_theirs.as_fd(),
            gate_theirs.as_fd(),
        ]);
        needed.extend(seccomp.iter().map(AsFd::as_fd));
        needed.extend(
            inherited.streams.iter().chain(&inherited.egress).chain(&inherited.link).map(AsFd::as_fd),
        );
        sys::process::inherit(&mut command, &needed);
        let control_group =
            inherited.group.as_ref().map(|(cgroup_procs, _)| cgroup_procs.try_clone()).transpose()?;
        sys::process::prepare(&mut command, move || {
            let joined = control_group.as_ref().map_or(Ok(()), cgroup::join);
            joined.and_then(|()| prepare_namespace_init(&hidden)).inspect_err(|error| {
                // The message goes to the complaints pipe. It is more precise than the errno that the parent receives.
                let _ = writeln!(io::stderr(), "{error}");
            })
        });
        let child = spawn_namespace_init(&mut command)?;
        let exit_fd = pidfd_open(child.pid(), PidfdFlags::empty()).map_err(io::Error::from)?;
        let started = Self {
            child,
            exit_fd,
            numbers,
            options: Some(options.into()),
            frame,
            gate,
            server: None,
            info: info.into(),
            messages: messages.into(),
            namespace: None,
            mounts_child: None,
            connector: None,
            view: None,
            tun: None,
        };
        // Bubblewrap reads these files only after its options.
        let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
        fill(passwd, argv::passwd(spec, uid, gid).as_bytes())?;
        fill(group, argv::group(uid, gid).as_bytes())?;
        fill(resolver, argv::resolv_conf().as_bytes())?;
        // Without the file, only the sandbox's own names are in it.
        fill(hosts, argv::hosts_file(&std::fs::read_to_string(HOSTS_FILE).unwrap_or_default()).as_bytes())?;
        for (file, program) in seccomp.into_iter().zip(seccomp::programs(spec.unix_sockets)?) {
            fill(file, &program)?;
        }
        Ok(started)
    }
}

/// Prepares the forked child before it executes bubblewrap as the init of its pid namespace.
fn prepare_namespace_init(hidden: &MountPlan) -> io::Result<()> {
    // If the supervisor dies before this call, the gate stays closed, so the server never starts and the child exits.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    sys::signals::unblock()?;
    // Prevents later mounts on the host from propagating into the sandbox.
    sys::process::enter_private_mount_namespace()?;
    hidden.apply()?;
    // Bubblewrap looks up its children in `/proc`, which must match its pid namespace.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"proc", c"/proc", c"proc", flags, None)?;
    Ok(())
}

fn memory_file() -> io::Result<File> {
    Ok(memfd_create(c"ironcurtain", MemfdFlags::CLOEXEC)?.into())
}

/// Writes a file and rewinds it for the process that inherits the descriptor.
fn fill(mut file: File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.rewind()
}

/// Finds `bwrap` in the system's directories. Ignores `PATH`.
pub(crate) fn find_bwrap() -> Option<PathBuf> {
    let candidates =
        ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
    candidates.into_iter().map(PathBuf::from).find(|path| path.is_file())
}
