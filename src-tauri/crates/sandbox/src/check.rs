//! A check of whether this machine can sandbox: by trying it, and by naming what is missing when it cannot.
//!
//! - The trial decides. What is read about the machine only explains its outcome, and warns.
//! - Killed at any instant, it leaves nothing but an empty folder of a fixed name in our own state.

use std::{io, path::Path, process::Command, time::Duration};

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::{
    client::ControlClient,
    control::SandboxEvent,
    launch::launch,
    spec::{NetworkAccess, ResourceLimits, Spec, UnixSockets, View},
    state::StateDir,
};

mod facts;

use facts::Facts;

const PATIENCE: Duration = Duration::from_secs(30);

/// The folder of the state that a trial may write to, and does not.
const TRIAL: &str = "trial";

/// The ability of this machine to make sandboxes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// True when a sandbox was launched just now.
    pub usable: bool,
    /// The things that are missing, one sentence each.
    pub missing: Vec<String>,
    /// The command a person can run to get what is missing, where there is one.
    pub fix_command: Option<String>,
    /// The things that work, but not as well as they should.
    pub warnings: Vec<String>,
}

/// Launches a sandbox that does nothing, by `supervisor_program`; `state_dir` is that of all sandboxes
/// ([`Spec::state_dir`]). Takes a few milliseconds; ask once.
pub fn check(supervisor_program: &Path, state_dir: &str, allow_root: bool) -> Availability {
    check_with_limits(supervisor_program, state_dir, allow_root).0
}

/// The same, and which limits were in force, if it could be launched.
pub(crate) fn check_with_limits(
    supervisor_program: &Path,
    state_dir: &str,
    allow_root: bool,
) -> (Availability, Option<SandboxEvent>) {
    let facts = Facts::find();
    let mut found = facts.judge();
    match try_it(supervisor_program, state_dir, allow_root) {
        Ok(limited) => {
            (Availability { usable: true, missing: vec![], fix_command: None, ..found }, Some(limited))
        }
        Err(error) => {
            // The reason of the trial is the last word when nothing that is known explains it.
            if found.missing.is_empty() {
                found.missing.push(error.to_string());
            }
            (Availability { usable: false, ..found }, None)
        }
    }
}

fn try_it(supervisor_program: &Path, state_dir: &str, allow_root: bool) -> io::Result<SandboxEvent> {
    StateDir::open(state_dir, getuid().as_raw())?.below(TRIAL)?;
    let spec = Spec {
        argv: vec!["true".into()],
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        view: View::Roots { session_dir: format!("{state_dir}/{TRIAL}"), programs: vec![] },
        mounts: vec![],
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        closed: vec![],
        kept: vec![],
        limits: ResourceLimits { cpu: Some(100), ..ResourceLimits::default() },
        state_dir: state_dir.to_owned(),
        allow_root,
    };
    let launched = launch(&spec, supervisor_program, |_| ()).map_err(io::Error::other)?;
    let mut control = ControlClient::new(launched.control, PATIENCE)?;
    let mut next = |expected: fn(&SandboxEvent) -> bool| {
        let event = control.event()?;
        if expected(&event) { Ok(event) } else { Err(io::Error::other(otherwise(event))) }
    };
    next(|event| *event == SandboxEvent::Started)?;
    let limited = next(|event| matches!(event, SandboxEvent::Limited { .. }))?;
    next(|event| *event == SandboxEvent::Exited { status: 0 })?;
    Ok(limited)
}

fn otherwise(event: SandboxEvent) -> String {
    match event {
        SandboxEvent::Failed { reason } => reason,
        SandboxEvent::Exited { status } => format!("a trial ended with status {status}"),
        SandboxEvent::Started | SandboxEvent::Limited { .. } | SandboxEvent::Uncovered { .. } => {
            format!("a trial went otherwise: {event:?}")
        }
    }
}

/// The version `bwrap --version` tells, if there is such a program.
fn bwrap_version() -> Option<(u32, u32)> {
    let told = Command::new(crate::supervisor::find_bwrap()?).arg("--version").output().ok()?;
    facts::version(String::from_utf8_lossy(&told.stdout).split_whitespace().last()?)
}
