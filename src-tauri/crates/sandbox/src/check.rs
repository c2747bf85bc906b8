//! Launches a trial sandbox to check whether this machine supports sandboxes and explains a failure.
//!
//! - Only the trial launch decides. Facts about the machine explain a failure and add warnings.
//! - A check that is killed leaves at most one empty folder in the state directory.

use std::{fs::OpenOptions, io, path::Path, process::Command, time::Duration};

use rustix::process::getuid;

use crate::{
    client::ControlClient,
    control::SandboxEvent,
    launch::launch,
    outcome::Availability,
    spec::{NetworkAccess, ResourceLimits, Spec, UnixSockets, View},
    state::StateDir,
    sys::tun::DEVICE_FILE,
};

mod facts;

use facts::Facts;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Name of the trial's folder in the state directory. The folder stays empty.
const TRIAL: &str = "trial";

/// Launches a trial sandbox with `supervisor_program` and the state directory of all sandboxes ([`Spec::state_dir`]).
/// Takes a few milliseconds, so callers should cache the result.
pub fn check(supervisor_program: &Path, state_dir: &str, allow_root: bool) -> Availability {
    check_with_limits(supervisor_program, state_dir, allow_root).0
}

/// Like [`check`], but also returns the enforced limits if the launch succeeded.
pub(crate) fn check_with_limits(
    supervisor_program: &Path,
    state_dir: &str,
    allow_root: bool,
) -> (Availability, Option<SandboxEvent>) {
    let facts = Facts::find();
    let mut found = facts.availability();
    match launch_trial(supervisor_program, state_dir, allow_root) {
        Ok(limited) => {
            (Availability { usable: true, missing: vec![], fix_command: None, ..found }, Some(limited))
        }
        Err(error) => {
            // No known fact explains the failure, so the trial's own error is reported.
            if found.missing.is_empty() {
                found.missing.push(error.to_string());
            }
            (Availability { usable: false, ..found }, None)
        }
    }
}

/// Checks that this process can create TUN devices.
///
/// # Errors
/// Returns the reason, which names the device file.
pub fn check_tun() -> io::Result<()> {
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE_FILE);
    opened.map(drop).map_err(|error| io::Error::new(error.kind(), format!("`{DEVICE_FILE}`: {error}")))
}

/// Describes the effect of a missing TUN device. `reason` names the device file.
#[must_use]
pub fn describe_missing_tun(reason: &str) -> String {
    format!("programs that ignore the proxy variables have no network: {reason}")
}

fn launch_trial(supervisor_program: &Path, state_dir: &str, allow_root: bool) -> io::Result<SandboxEvent> {
    StateDir::open(state_dir, getuid().as_raw())?.subdir(TRIAL)?;
    let spec = Spec {
        argv: vec!["true".into()],
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        home: None,
        view: View::Roots { session_dir: format!("{state_dir}/{TRIAL}"), programs: vec![] },
        mounts: vec![],
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits { cpu: Some(100), ..ResourceLimits::default() },
        state_dir: state_dir.to_owned(),
        allow_root,
    };
    let launched = launch(&spec, supervisor_program, |_| ()).map_err(io::Error::other)?;
    let mut control = ControlClient::new(launched.control, TIMEOUT)?;
    let mut next = |expected: fn(&SandboxEvent) -> bool| {
        let event = control.event()?;
        if expected(&event) { Ok(event) } else { Err(io::Error::other(unexpected_event(event))) }
    };
    next(|event| *event == SandboxEvent::Started)?;
    let limited = next(|event| matches!(event, SandboxEvent::Limited { .. }))?;
    next(|event| *event == SandboxEvent::Exited { status: 0 })?;
    Ok(limited)
}

fn unexpected_event(event: SandboxEvent) -> String {
    match event {
        SandboxEvent::Failed { reason } => reason,
        SandboxEvent::Exited { status } => format!("the trial sandbox exited with status {status}"),
        SandboxEvent::TunUnavailable { .. }
        | SandboxEvent::Started
        | SandboxEvent::Limited { .. }
        | SandboxEvent::Uncovered { .. } => {
            format!("the trial sandbox sent an unexpected event: {event:?}")
        }
    }
}

/// Parses the output of `bwrap --version`. Returns `None` if bubblewrap is not installed or its output is invalid.
fn bwrap_version() -> Option<(u32, u32)> {
    let output = Command::new(crate::supervisor::find_bwrap()?).arg("--version").output().ok()?;
    facts::version(String::from_utf8_lossy(&output.stdout).split_whitespace().last()?)
}
