//! Measures a process and its descendants.

use super::Fallible;
use ironcurtain_testkit::measurements::resident_kib;
use std::{fs, thread, time::Duration};

/// Pause before measuring, longer than the idle time after which a supervisor releases memory.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of times to measure a process tree that keeps changing.
const MAX_CHECKS: usize = 20;

/// Size of a process tree.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Number of processes in the tree.
    pub(crate) processes: usize,
    /// Total resident memory in KiB. Shared memory is counted once per process.
    pub(crate) resident_kib: u64,
}

/// Measures the tree of `pid` until two measurements agree, because processes may still be starting.
pub(crate) fn at_rest(pid: u32) -> Fallible<Tree> {
    let mut last = below(pid)?;
    for _ in 0..MAX_CHECKS {
        thread::sleep(PAUSE);
        let now = below(pid)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    Err("the process tree keeps changing".into())
}

/// Measures the tree of `pid` once.
fn below(pid: u32) -> Fallible<Tree> {
    // A process that has exited has no entry in `/proc`.
    let Some(resident_kib) = resident_kib(pid)? else { return Ok(Tree::default()) };
    let mut tree = Tree { processes: 1, resident_kib };
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        for child in fs::read_to_string(task?.path().join("children"))?.split_whitespace() {
            let more = below(child.parse()?)?;
            tree.processes += more.processes;
            tree.resident_kib += more.resident_kib;
        }
    }
    Ok(tree)
}
