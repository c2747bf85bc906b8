//! First program inside the sandbox: waits until the supervisor has mounted everything, then executes the server.
//!
//! - The server starts only after the supervisor's signal. If the supervisor has died, the server never starts.
//! - INVARIANT: the server inherits only descriptors 0, 1 and 2. No other process in the sandbox holds them, so EOF
//!   and broken pipes behave as they do without a sandbox.
//! - A run's program is spawned as a child instead ([`RunStarter`]).

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener},
    os::unix::{net::UnixListener, process::CommandExt},
    path::Path,
    process::{Command, ExitCode},
};

use landlock::{ABI, Access as _, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, Scope};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setpgid, setrlimit},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use crate::{
    fd_passing,
    outcome::FAILED,
    run_starter::RunStarter,
    seccomp::REPORTS_CONNECT,
    spec::{PROXY_PORT, ResourceLimits, SOCKET_FOLDER},
    sys,
};

/// Byte sent to the supervisor once this program runs.
pub(crate) const READY: u8 = b'r';
/// Byte received from the supervisor as permission to start the server.
pub(crate) const GO: u8 = b'g';

/// Exit status for a program that does not exist, as in shells.
const NOT_FOUND: u8 = 127;
/// Exit status for a program that cannot be executed, as in shells.
const NOT_EXECUTABLE: u8 = 126;

/// Executes the server once the sandbox is complete.
///
/// Arguments: the descriptors of stdin, stdout, stderr, the supervisor's socket (the gate), the socket over which the
/// proxy's listener is sent, and the [`InnerLink`](crate::run_link::InnerLink) of a run; the names of the launcher's
/// sockets; the limits; `true` if the supervisor connects the sandbox's sockets; the working directory; the command.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [stdin, stdout, stderr, gate, egress, link, sockets, limits, reports, cwd, program, rest @ ..] = args
    else {
        return ExitCode::from(2);
    };
    let Ok(limits) = serde_json::from_str::<ResourceLimits>(limits) else { return ExitCode::from(2) };
    let Ok(sockets) = serde_json::from_str::<Vec<String>>(sockets) else { return ExitCode::from(2) };
    let Ok(reports) = reports.parse() else { return ExitCode::from(2) };
    let taken = [stdin, stdout, stderr, gate].map(|number| sys::process::take_descriptor(number));
    let [Ok(stdin), Ok(stdout), Ok(stderr), Ok(gate)] = taken else { return ExitCode::from(2) };
    let [Ok(egress), Ok(link)] = [egress, link].map(|number| sys::process::take_optional(number)) else {
        return ExitCode::from(2);
    };
    // Leads a process group so that a signal to the server also reaches its children. In a run, this process becomes a
    // session leader below.
    if link.is_none() && setpgid(None, None).is_err() {
        return ExitCode::from(1);
    }
    let mut gate = File::from(gate);
    if !wait_for_go(&mut gate) {
        return ExitCode::from(1);
    }
    let last_steps = || -> io::Result<Option<RunStarter>> {
        let starter = link.map(RunStarter::new).transpose()?;
        let terminal = |number| starter.as_ref().and_then(|starter| starter.stream(number));
        if let Some(egress) = egress {
            fd_passing::send(&egress, TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?)?;
            for name in &sockets {
                fd_passing::send(&egress, UnixListener::bind(Path::new(SOCKET_FOLDER).join(name))?)?;
            }
        }
        dup2_stdin(terminal(0).unwrap_or(&stdin))?;
        dup2_stdout(terminal(1).unwrap_or(&stdout))?;
        dup2_stderr(terminal(2).unwrap_or(&stderr))?;
        drop((stdin, stdout, stderr));
        sys::process::close_on_exec_from(3)?;
        apply_limits(limits)?;
        restrict_scope()?;
        std::env::set_current_dir(cwd)?;
        if reports {
            report_connections(&gate)?;
        }
        Ok(starter)
    };
    let mut command = Command::new(program);
    command.args(rest).env("PWD", cwd);
    let exec_failure = |error: io::Error| {
        (if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }, error)
    };
    let (status, error) = match last_steps() {
        Ok(None) => exec_failure(command.exec()),
        Ok(Some(starter)) => match starter.start(&mut command) {
            Ok(child) => {
                drop(gate);
                return ExitCode::from(starter.wait(child).unwrap_or(FAILED));
            }
            Err(error) => exec_failure(error),
        },
        Err(error) => (FAILED, error),
    };
    // A successful `exec` closes the gate. On failure, the error is sent through the gate.
    let _ = write!(gate, "{status} failed to start `{program}` in `{cwd}`: {error}");
    ExitCode::from(status)
}

/// Makes the kernel report each `connect` call to the supervisor.
fn report_connections(gate: &File) -> io::Result<()> {
    let calls = sys::notify::report_calls(&REPORTS_CONNECT).map_err(|error| {
        io::Error::other(format!(
            "this kernel cannot report `connect` calls, which `ironcurtain run`, `access: ask` and \
             `unixSockets` require: {error}"
        ))
    })?;
    fd_passing::send(gate, calls)
}

/// Applies limits to the server and its descendants. The process limit covers the whole sandbox, because the kernel
/// counts processes per user namespace.
fn apply_limits(limits: ResourceLimits) -> io::Result<()> {
    limit(Resource::Core, Some(0))?;
    limit(Resource::Data, limits.memory)?;
    limit(Resource::Nproc, limits.processes)?;
    limit(Resource::Nofile, limits.open_files)?;
    limit(Resource::Fsize, limits.file_size)
}

/// Restricts signals, tracing and abstract sockets to the server and its descendants with Landlock (since Linux 6.12).
/// This is a second layer on top of namespaces and seccomp.
///
/// Landlock does not restrict files here, because its rules can only be tightened, while grants can also be added.
/// Mounts restrict files instead.
fn restrict_scope() -> io::Result<()> {
    let scoped =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(ABI::V6));
    let confined = scoped.and_then(Ruleset::create).and_then(RulesetCreated::restrict_self);
    confined.map(drop).map_err(io::Error::other)
}

/// Lowers a limit to `value`. Never raises it.
fn limit(resource: Resource, value: Option<u64>) -> io::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let value = getrlimit(resource).maximum.map_or(value, |maximum| value.min(maximum));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

fn wait_for_go(gate: &mut File) -> bool {
    let mut word = [0];
    gate.write_all(&[READY]).is_ok() && gate.read_exact(&mut word).is_ok() && word == [GO]
}
