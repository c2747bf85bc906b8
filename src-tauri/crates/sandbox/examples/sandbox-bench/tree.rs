//! A process and all below it.

use super::Fallible;
use ironcurtain_testkit::figures::resident_kib;
use std::{fs, thread, time::Duration};

/// Longer than the quiet after which a supervisor gives back the memory that starting took.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of looks at a tree that does not come to rest.
const MOST_LOOKS: usize = 20;

/// The size of a tree of processes.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tree {
    /// The number of them.
    pub(crate) processes: usize,
    /// The resident memory of all of them, in KiB; what they share counts for each.
    pub(crate) resident_kib: u64,
}

/// The tree from `pid` down, once two looks agree: what is resident while it lives, not what starting it took.
pub(crate) fn at_rest(pid: u32) -> Fallible<Tree> {
    let mut last = below(pid)?;
    for _ in 0..MOST_LOOKS {
        thread::sleep(PAUSE);
        let now = below(pid)?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
    Err("the tree of processes does not come to rest".into())
}

/// The tree from `pid` down.
fn below(pid: u32) -> Fallible<Tree> {
    // One that has ended has none.
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
