//! The bounds of what is moved away for one session, and what follows when a server does not stop.
//!
//! - Several sandboxes of one session, one after the other, share a budget: one that is restarted gains nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::name_text::raw;

/// The times that one name is moved away before its folder is to be read-only.
pub(super) const MOST_MOVES: u32 = 5;
/// The times after which the session is to end.
const MOST_AFTER: u32 = 10;
/// The names and bytes that the quarantine takes from one session.
const MOST_NAMES: usize = 1_000;
const MOST_BYTES: u64 = 256 << 20;
/// The names of a folder that are weighed.
const MOST_WEIGHED: usize = 1_000;
/// The budgets that are kept of sessions without a sandbox.
const MOST_KEPT: usize = 1_000;

/// The consequence of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveLimit {
    None,
    /// The name came back too often.
    Again,
    /// It still does, or too much was moved.
    Over,
}

/// The moves of one session.
#[derive(Debug, Default)]
pub(super) struct MoveBudget {
    moves: BTreeMap<String, u32>,
    names: usize,
    bytes: u64,
}

/// The budgets of all sessions.
#[derive(Debug, Default)]
pub(super) struct MoveBudgets(BTreeMap<String, MoveBudget>);

impl MoveBudget {
    /// Counts a move of a name, of this weight.
    pub(super) fn count(&mut self, name: &str, bytes: u64) -> MoveLimit {
        self.names += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.is_spent() {
            return MoveLimit::Over;
        }
        let moves = self.moves.entry(name.to_owned()).or_default();
        *moves += 1;
        match *moves {
            MOST_MOVES => MoveLimit::Again,
            moves if moves >= MOST_AFTER => MoveLimit::Over,
            _ => MoveLimit::None,
        }
    }

    /// Returns whether the quarantine takes no more.
    pub(super) fn is_spent(&self) -> bool {
        self.names >= MOST_NAMES || self.bytes >= MOST_BYTES
    }
}

impl MoveBudgets {
    /// The budget of a sandbox's session, whose name ends at the first point of the sandbox's.
    pub(super) fn of(&mut self, sandbox: &str) -> &mut MoveBudget {
        self.0.entry(session(sandbox).to_owned()).or_default()
    }

    /// Forgets those of sessions without a sandbox, if there are too many.
    pub(super) fn tidy<'a>(&mut self, sandboxes: impl Iterator<Item = &'a String>) {
        if self.0.len() > MOST_KEPT {
            let live: BTreeSet<&str> = sandboxes.map(|name| session(name)).collect();
            self.0.retain(|name, _| live.contains(name.as_str()));
        }
    }
}

fn session(sandbox: &str) -> &str {
    sandbox.split_once('.').map_or(sandbox, |(session, _)| session)
}

/// The bytes of a file, or of a folder with what is in it. A folder of too many names counts as one that is too large.
pub(super) fn weight(path: &str) -> u64 {
    let (mut bytes, mut names, mut waiting) = (0_u64, 0, vec![raw(path).into_owned().into()]);
    while let Some(path) = waiting.pop() {
        let path: std::path::PathBuf = path;
        names += 1;
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        bytes = bytes.saturating_add(about.len());
        if names > MOST_WEIGHED {
            return MOST_BYTES;
        }
        if about.is_dir() {
            waiting.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_back_has_its_folder_closed_and_then_the_session_ended() {
        let mut budgets = MoveBudgets::default();
        let mut limits = |sandbox: &str, name: &str, times: usize| {
            (0..times).map(|_| budgets.of(sandbox).count(name, 1)).collect::<Vec<_>>()
        };
        let mut expected = vec![MoveLimit::None; 4];
        expected.push(MoveLimit::Again);
        assert_eq!(limits("a.0", "/x", 5), expected);
        assert_eq!(limits("b.0", "/x", 4), [MoveLimit::None; 4]);
        assert_eq!(limits("a.0", "/y", 4), [MoveLimit::None; 4]);
        // Its next process goes on where the last one was.
        expected = vec![MoveLimit::None; 4];
        expected.extend([MoveLimit::Over, MoveLimit::Over]);
        assert_eq!(limits("a.1", "/x", 6), expected);
    }

    #[test]
    fn the_quarantine_takes_so_many_names_and_bytes() {
        let mut budget = MoveBudget::default();
        assert_eq!(budget.count("/x", MOST_BYTES - 1), MoveLimit::None);
        assert!(!budget.is_spent());
        assert_eq!(budget.count("/y", 1), MoveLimit::Over);
        assert!(budget.is_spent());
        let mut budget = MoveBudget::default();
        let all: Vec<MoveLimit> = (0..MOST_NAMES).map(|name| budget.count(&format!("/{name}"), 0)).collect();
        assert_eq!(all.last(), Some(&MoveLimit::Over));
        assert!(all.iter().rev().skip(1).all(|limit| *limit == MoveLimit::None));
    }
}
