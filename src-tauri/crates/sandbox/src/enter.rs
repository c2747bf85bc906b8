//! The last step before the server, made inside the finished sandbox: wait for the word, then become the server.
//!
//! - The server starts only after the supervisor said so, which it does when the initial mounts are made. A supervisor
//!   that has died says nothing, and then the server never starts.
//! - INVARIANT: the server gets descriptors 0, 1 and 2 and no other; and nobody else in the sandbox holds them, so that
//!   end-of-file and broken pipes mean what they mean without a sandbox.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use landlock::{ABI, Access as _, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, Scope};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setpgid, setrlimit},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};

use crate::{
    fd_passing,
    seccomp::REPORTS_CONNECT,
    spec::{PROXY_PORT, ResourceLimits, UnixSockets},
    sys,
};

/// First byte in: the sandbox is complete.
pub(crate) const READY: u8 = b'r';
/// First byte out: start the server.
pub(crate) const GO: u8 = b'g';

/// Exit status, as shells have it: there is no such program.
const ABSENT: u8 = 127;
/// There is, and it cannot be run.
const UNUSABLE: u8 = 126;
/// It did not come to that.
pub(crate) const FAILED: u8 = 125;

/// In place of a descriptor: there is none.
pub(crate) const NONE: &str = "-";

/// Arguments: the descriptors of stdin, stdout, stderr, of the supervisor and of who serves the proxy, the limits, which
/// unix sockets it may use, the working directory, the command.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [stdin, stdout, stderr, gate, egress, limits, sockets, cwd, program, rest @ ..] = args else {
        return ExitCode::from(2);
    };
    let Ok(limits) = serde_json::from_str::<ResourceLimits>(limits) else { return ExitCode::from(2) };
    let Ok(sockets) = serde_json::from_str::<UnixSockets>(sockets) else { return ExitCode::from(2) };
    let taken = [stdin, stdout, stderr, gate].map(|number| sys::process::take_descriptor(number));
    let [Ok(stdin), Ok(stdout), Ok(stderr), Ok(gate)] = taken else { return ExitCode::from(2) };
    let egress = match egress.as_str() {
        NONE => None,
        number => match sys::process::take_descriptor(number) {
            Ok(egress) => Some(egress),
            Err(_) => return ExitCode::from(2),
        },
    };
    // So that a signal for the server reaches what it started as well.
    if setpgid(None, None).is_err() {
        return ExitCode::from(1);
    }
    let mut gate = File::from(gate);
    if !passed(&mut gate) {
        return ExitCode::from(1);
    }
    let last_steps = || -> io::Result<()> {
        if let Some(egress) = egress {
            fd_passing::send(egress, TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?)?;
        }
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        sys::process::close_on_exec_from(3)?;
        limit_to(limits)?;
        stay_in_scope()?;
        std::env::set_current_dir(cwd)?;
        report_connections(sockets, &gate)
    };
    let (status, error) = match last_steps() {
        Ok(()) => {
            let error = Command::new(program).args(rest).env("PWD", cwd).exec();
            (if error.kind() == io::ErrorKind::NotFound { ABSENT } else { UNUSABLE }, error)
        }
        Err(error) => (FAILED, error),
    };
    // Exec has closed the gate if it worked; what is written here is why it did not.
    let _ = write!(gate, "{status} `{program}` could not be started in `{cwd}`: {error}");
    ExitCode::from(status)
}

/// Has each `connect` reported to the supervisor, in a sandbox with unix sockets of its own.
fn report_connections(sockets: UnixSockets, gate: &File) -> io::Result<()> {
    match sockets {
        UnixSockets::None | UnixSockets::All => Ok(()),
        UnixSockets::Own => {
            let calls = sys::notify::report_calls(&REPORTS_CONNECT).map_err(|error| {
                io::Error::other(format!(
                    "the kernel does not report `connect`, which `unixSockets` needs: {error}"
                ))
            })?;
            fd_passing::send(gate, calls)
        }
    }
}

/// Limits of the server and all it starts. Processes are counted in the sandbox's own user namespace.
fn limit_to(limits: ResourceLimits) -> io::Result<()> {
    limit(Resource::Core, Some(0))?;
    limit(Resource::Data, limits.memory)?;
    limit(Resource::Nproc, limits.processes)?;
    limit(Resource::Nofile, limits.open_files)?;
    limit(Resource::Fsize, limits.file_size)
}

/// Signals, traces and abstract sockets reach nobody but the server and what it starts, where the kernel knows Landlock
/// well enough (6.12). Namespaces and seccomp say the same; this holds should one of them not.
///
/// Of files it says nothing: they are what is mounted, and grants come and go, while such rules only ever become fewer.
fn stay_in_scope() -> io::Result<()> {
    let scoped =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(ABI::V6));
    let confined = scoped.and_then(Ruleset::create).and_then(RulesetCreated::restrict_self);
    confined.map(drop).map_err(io::Error::other)
}

/// Lowers a limit, and never raises one.
fn limit(resource: Resource, value: Option<u64>) -> io::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let value = getrlimit(resource).maximum.map_or(value, |most| value.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}

fn passed(gate: &mut File) -> bool {
    let mut word = [0];
    gate.write_all(&[READY]).is_ok() && gate.read_exact(&mut word).is_ok() && word == [GO]
}
