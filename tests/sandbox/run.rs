//! Runs a row: the attack and its twin in one sandbox, and the attack again without a sandbox.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    judge::{breaches, picture, twin_worked},
    launch::{Executor, clean_up},
    row::{Bare, Group, Row, Views},
    scene::Scene,
    tools::Tools,
};

/// Line that separates the attack's output from the twin's.
const TWIN: &str = "---twin---";

/// Number of concurrent launches. They mostly wait for the kernel.
const AT_ONCE: usize = 4;

/// The host's verdict on a row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Breaches caused by the attack.
    pub(crate) breaches: Vec<String>,
    /// The twin's output, if the twin failed.
    pub(crate) twin_failed: Option<String>,
}

impl Row {
    /// Returns `true` if the row applies to this kind of sandbox.
    pub(crate) fn is_for(&self, executor: &Executor) -> bool {
        match (self.views, executor) {
            (_, Executor::Asking) if self.is_own_socket => false,
            (Views::Both, _) | (_, Executor::Bare) => true,
            (Views::Roots, Executor::Roots | Executor::Asking) => true,
            (Views::HostRead, Executor::Srt(_) | Executor::HostRead) => true,
            (Views::Roots | Views::HostRead, _) => false,
        }
    }
}

/// Runs the attack and then its twin in one sandbox.
pub(crate) fn sandboxed(tools: &Tools, group: &Group, row: &Row, executor: &Executor) -> Verdict {
    let mut scene = Scene::new(tools, group, executor);
    let before = picture(tools, &scene);
    let script = format!("( {}\n) 2>&1\necho {TWIN}\n( {}\n) 2>&1", row.attack, row.twin);
    let run = executor.run(tools, &scene, &script, row.terminal);
    let breaches = breaches(tools, &mut scene, row, &before, &run, executor);
    let said = run.said.split_once(TWIN).map_or("", |(_, said)| said);
    let twin_failed = (!twin_worked(&scene, row, said)).then(|| run.said.clone());
    clean_up(&scene);
    Verdict { breaches, twin_failed }
}

/// Runs only the attack, with all of the user's rights. Returns its breaches and its output.
pub(crate) fn bare(tools: &Tools, group: &Group, row: &Row) -> (Vec<String>, String) {
    let mut scene = Scene::new(tools, group, &Executor::Bare);
    let before = picture(tools, &scene);
    let script = format!("( {}\n) 2>&1", row.attack);
    let run = Executor::Bare.run(tools, &scene, &script, row.terminal);
    let found = breaches(tools, &mut scene, row, &before, &run, &Executor::Bare);
    clean_up(&scene);
    (found, run.said)
}

/// Returns the failures of a group's rows.
///
/// Attacks in sandboxes are independent, so they run concurrently. Attacks without a sandbox can affect each other, so
/// they run one at a time.
pub(crate) fn faults(tools: &Tools, group: &Group, executors: &[Executor], as_user: bool) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = group.rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let faults = in_sandboxes(tools, group, row, executors);
                    found.lock().unwrap().extend(faults);
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    if as_user {
        found.extend(group.rows.iter().filter_map(|row| without(tools, group, row)));
    }
    found
}

fn in_sandboxes(tools: &Tools, group: &Group, row: &Row, executors: &[Executor]) -> Vec<String> {
    let mut faults = Vec::new();
    for executor in executors.iter().filter(|executor| row.is_for(executor)) {
        let verdict = sandboxed(tools, group, row, executor);
        if !verdict.breaches.is_empty() {
            faults.push(format!("{}: {executor:?}: got through: {}", row.name, verdict.breaches.join("; ")));
        }
        if let Some(said) = verdict.twin_failed {
            faults.push(format!("{}: {executor:?}: the twin did not work: {said}", row.name));
        }
    }
    faults
}

fn without(tools: &Tools, group: &Group, row: &Row) -> Option<String> {
    if row.bare == Bare::Untried {
        return None;
    }
    let (found, said) = bare(tools, group, row);
    match row.bare {
        Bare::Breaks if found.len() < row.ways => {
            Some(format!("{}: without a sandbox no more than this happened: {found:?}: {said}", row.name))
        }
        Bare::Holds if !found.is_empty() => {
            Some(format!("{}: without a sandbox it got through: {}", row.name, found.join("; ")))
        }
        Bare::Breaks | Bare::Holds | Bare::Differs | Bare::Untried => None,
    }
}

/// Returns a breach if the kernel's socket list, which the attack wrote to the claim file, contains one of the host's
/// sockets.
pub(crate) fn listening(scene: &Scene) -> Option<String> {
    let port = scene.listeners.as_ref()?.port_in_table();
    scene
        .text("work/list")
        .filter(|list| list.contains(&port))
        .map(|_| "it sees the host's sockets".to_owned())
}
