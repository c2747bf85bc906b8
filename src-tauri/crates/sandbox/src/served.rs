//! Process that serves files to a run, or to a server whose file accesses require approval. It runs the view and
//! connects it to the trusted process.
//!
//! - The process acts with the user's rights for a program that may be hostile, so it drops all capabilities and writes
//!   no core dumps.
//! - The process exits when the sandbox or the trusted process exits. Requests that are waiting for an answer then
//!   fail.

mod gate;
mod programs;
mod reads;

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::ExitCode,
    sync::Arc,
    thread,
};

use ironcurtain_view::{FileServer, FileServerOptions};
use rustix::{
    fs::{Mode, OFlags, open},
    process::{Pid, Resource, Rlimit, getgid, getrlimit, getuid, setrlimit, umask},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};

use crate::sys;
use gate::ChannelGate;

/// Serves a view.
///
/// Arguments: the supervisor's process id; the descriptors of `/dev/fuse` and of the connection to the trusted process;
/// the hidden paths; the mount points; the user's home.
pub(crate) fn run(args: &[String]) -> ExitCode {
    let [parent, device, connection, hidden, points, home] = args else { return ExitCode::from(2) };
    let Some(parent) = parent.parse().ok().and_then(Pid::from_raw) else { return ExitCode::from(2) };
    let taken = [device, connection].map(|number| sys::process::take_descriptor(number));
    let paths = [hidden, points].map(|paths| serde_json::from_str::<Vec<String>>(paths));
    let ([Ok(device), Ok(connection)], [Ok(hidden), Ok(points)]) = (taken, paths) else {
        return ExitCode::from(2);
    };
    match serve(parent, (device, connection.into()), (hidden, points), home) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(
    parent: Pid,
    (device, connection): (OwnedFd, UnixStream),
    (hidden, points): (Vec<String>, Vec<String>),
    home: &str,
) -> io::Result<()> {
    sys::process::bind_to_parent(parent)?;
    restrict()?;
    // The kernel has already applied the calling program's umask to every mode.
    umask(Mode::empty());
    let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let gate = ChannelGate::start(connection.try_clone()?, home.to_owned())?;
    let options = FileServerOptions {
        device,
        root,
        hidden: hidden.into_iter().map(Into::into).collect(),
        mount_points: points.into_iter().map(Into::into).collect(),
        owner: getuid().as_raw(),
        group: getgid().as_raw(),
        gate: gate.clone(),
    };
    let view = Arc::new(FileServer::start(options)?);
    let revocable_view = view.clone();
    thread::Builder::new().name("permissions".into()).spawn(move || {
        // Returns when the trusted process has exited. The supervisor then exits too.
        let _ = gate.handle_messages(&connection, &revocable_view);
        gate.deny_all();
    })?;
    view.wait();
    Ok(())
}

/// Drops all capabilities, disables core dumps, and raises the limit on open files.
fn restrict() -> io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let files = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files })?)
}
