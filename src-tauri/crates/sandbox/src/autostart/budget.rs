//! Per-session limits on quarantined files, and the action taken when a session exceeds them.
//!
//! - All sandboxes of a session share one budget, so restarting a sandbox does not reset it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::name_text::to_os_str;

/// Number of times a name is quarantined before its root becomes read-only.
pub(super) const MOVES_UNTIL_READ_ONLY: u32 = 5;
/// Number of times a name is quarantined before the session is terminated.
const MOVES_UNTIL_TERMINATION: u32 = 10;
/// Maximum number of files quarantined per session (`MAX_NAMES`), and their maximum total size (`MAX_BYTES`).
const MAX_NAMES: usize = 1_000;
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of entries counted when measuring a folder. Larger folders count as [`MAX_BYTES`].
const MAX_MEASURED: usize = 1_000;
/// Number of budgets above which the budgets of sessions without a sandbox are dropped.
const MAX_BUDGETS: usize = 1_000;

/// Limit reached by moving a file to quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveLimit {
    None,
    /// A name was quarantined too often, so its root must become read-only.
    Repeated,
    /// The name kept reappearing, or the budget is used up, so the session must be terminated.
    Exceeded,
}

/// Number and total size of the files that were quarantined because of one session.
#[derive(Debug, Default)]
pub(super) struct MoveBudget {
    moves: BTreeMap<String, u32>,
    names: usize,
    bytes: u64,
}

/// Budgets of all sessions, by session name.
#[derive(Debug, Default)]
pub(super) struct MoveBudgets(BTreeMap<String, MoveBudget>);

impl MoveBudget {
    /// Counts one quarantined file of `bytes` bytes.
    pub(super) fn count(&mut self, name: &str, bytes: u64) -> MoveLimit {
        self.names += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.is_exhausted() {
            return MoveLimit::Exceeded;
        }
        let moves = self.moves.entry(name.to_owned()).or_default();
        *moves += 1;
        match *moves {
            MOVES_UNTIL_READ_ONLY => MoveLimit::Repeated,
            moves if moves >= MOVES_UNTIL_TERMINATION => MoveLimit::Exceeded,
            _ => MoveLimit::None,
        }
    }

    /// Returns `true` if the session's budget is used up.
    pub(super) fn is_exhausted(&self) -> bool {
        self.names >= MAX_NAMES || self.bytes >= MAX_BYTES
    }
}

impl MoveBudgets {
    /// Returns the budget of the session that owns a sandbox. Sandbox names have the form `SESSION.SUFFIX`.
    pub(super) fn for_sandbox(&mut self, sandbox: &str) -> &mut MoveBudget {
        self.0.entry(session_name(sandbox).to_owned()).or_default()
    }

    /// Drops the budgets of sessions without a sandbox, once there are more than [`MAX_BUDGETS`].
    pub(super) fn prune<'a>(&mut self, sandboxes: impl Iterator<Item = &'a String>) {
        if self.0.len() > MAX_BUDGETS {
            let live: BTreeSet<&str> = sandboxes.map(|name| session_name(name)).collect();
            self.0.retain(|name, _| live.contains(name.as_str()));
        }
    }
}

fn session_name(sandbox: &str) -> &str {
    sandbox.split_once('.').map_or(sandbox, |(session, _)| session)
}

/// Returns the total size in bytes of a file or folder tree, or [`MAX_BYTES`] if it has too many entries.
pub(super) fn total_size(path: &str) -> u64 {
    let (mut bytes, mut names, mut queue) = (0_u64, 0, vec![to_os_str(path).into_owned().into()]);
    while let Some(path) = queue.pop() {
        let path: std::path::PathBuf = path;
        names += 1;
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        bytes = bytes.saturating_add(metadata.len());
        if names > MAX_MEASURED {
            return MAX_BYTES;
        }
        if metadata.is_dir() {
            queue.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recreated_name_closes_folder_then_ends_session() {
        let mut budgets = MoveBudgets::default();
        let mut limits = |sandbox: &str, name: &str, times: usize| {
            (0..times).map(|_| budgets.for_sandbox(sandbox).count(name, 1)).collect::<Vec<_>>()
        };
        let mut expected = vec![MoveLimit::None; 4];
        expected.push(MoveLimit::Repeated);
        assert_eq!(limits("a.0", "/x", 5), expected);
        assert_eq!(limits("b.0", "/x", 4), [MoveLimit::None; 4]);
        assert_eq!(limits("a.0", "/y", 4), [MoveLimit::None; 4]);
        // The next process of the session continues the count.
        expected = vec![MoveLimit::None; 4];
        expected.extend([MoveLimit::Exceeded, MoveLimit::Exceeded]);
        assert_eq!(limits("a.1", "/x", 6), expected);
    }

    #[test]
    fn quarantine_limits_names_and_bytes() {
        let mut budget = MoveBudget::default();
        assert_eq!(budget.count("/x", MAX_BYTES - 1), MoveLimit::None);
        assert!(!budget.is_exhausted());
        assert_eq!(budget.count("/y", 1), MoveLimit::Exceeded);
        assert!(budget.is_exhausted());
        let mut budget = MoveBudget::default();
        let all: Vec<MoveLimit> = (0..MAX_NAMES).map(|name| budget.count(&format!("/{name}"), 0)).collect();
        assert_eq!(all.last(), Some(&MoveLimit::Exceeded));
        assert!(all.iter().rev().skip(1).all(|limit| *limit == MoveLimit::None));
    }
}
