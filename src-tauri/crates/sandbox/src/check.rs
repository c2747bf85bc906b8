//! True if this machine can sandbox: by trying it, and by naming what is missing when it cannot.
//!
//! - The trial decides. What is read about the machine only explains its outcome, and warns.
//! - Killed at any instant, it leaves nothing but an empty folder of a fixed name in our own state.

use std::{io, path::Path, process::Command, time::Duration};

use rustix::process::getuid;
use serde::{Deserialize, Serialize};

use crate::{
    client::ControlClient,
    control::Event,
    launch::launch,
    spec::{Limits, Network, Spec, View},
    state::StateDir,
};

mod facts;

use facts::Facts;

const PATIENCE: Duration = Duration::from_secs(30);

/// The folder of the state that a trial may write to, and does not.
const TRIAL: &str = "trial";

/// What this machine can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// True if a sandbox was launched just now.
    pub usable: bool,
    /// What is missing, one sentence each.
    pub missing: Vec<String>,
    /// The command a person can run to get what is missing, where there is one.
    pub fix_command: Option<String>,
    /// What works, but not as well as it should.
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
) -> (Availability, Option<Event>) {
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

fn try_it(supervisor_program: &Path, state_dir: &str, allow_root: bool) -> io::Result<Event> {
    StateDir::open(state_dir, getuid().as_raw())?.below(TRIAL)?;
    let spec = Spec {
        argv: vec!["true".into()],
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        view: View::Roots { session_dir: format!("{state_dir}/{TRIAL}"), programs: vec![] },
        mounts: vec![],
        network: Network::None,
        unix_sockets: false,
        closed: vec![],
        kept: vec![],
        limits: Limits { cpu: Some(100), ..Limits::default() },
        state_dir: state_dir.to_owned(),
        allow_root,
    };
    let launched = launch(&spec, supervisor_program, |_| ()).map_err(io::Error::other)?;
    let mut control = ControlClient::new(launched.control, PATIENCE)?;
    let mut next = |expected: fn(&Event) -> bool| {
        let event = control.event()?;
        if expected(&event) { Ok(event) } else { Err(io::Error::other(otherwise(event))) }
    };
    next(|event| *event == Event::Started)?;
    let limited = next(|event| matches!(event, Event::Limited { .. }))?;
    next(|event| *event == Event::Exited { status: 0 })?;
    Ok(limited)
}

fn otherwise(event: Event) -> String {
    match event {
        Event::Failed { reason } => reason,
        Event::Exited { status } => format!("a trial ended with status {status}"),
        Event::Started | Event::Limited { .. } | Event::Uncovered { .. } => {
            format!("a trial went otherwise: {event:?}")
        }
    }
}

/// The version `bwrap --version` tells, if there is such a program.
fn bwrap_version() -> Option<(u32, u32)> {
    let told = Command::new(crate::supervisor::find_bwrap()?).arg("--version").output().ok()?;
    facts::version(String::from_utf8_lossy(&told.stdout).split_whitespace().last()?)
}
