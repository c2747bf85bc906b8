//! A process and all below it.

use super::Fallible;
use std::fs;

/// The size of a tree of processes.
#[derive(Default)]
pub(crate) struct Tree {
    /// The number of them.
    pub(crate) processes: usize,
    /// The resident memory of all of them, in KiB; what they share counts for each.
    pub(crate) resident_kib: u64,
}

/// The tree from `pid` down.
pub(crate) fn below(pid: u32) -> Fallible<Tree> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    // One that has ended has none.
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let Some(resident) = resident else { return Ok(Tree::default()) };
    let mut tree = Tree { processes: 1, resident_kib: resident.trim().trim_end_matches(" kB").parse()? };
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        for child in fs::read_to_string(task?.path().join("children"))?.split_whitespace() {
            let more = below(child.parse()?)?;
            tree.processes += more.processes;
            tree.resident_kib += more.resident_kib;
        }
    }
    Ok(tree)
}
