//! Files that programs have read below readable folders. Each one is reported to the trusted process once, which records
//! it.

use std::{
    collections::HashSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of files. Further files require an answer of their own.
const MAX_COUNT: usize = 100_000;

/// Maximum total length of the files' paths, in bytes: 16 MiB. Further files require an answer of their own.
const MAX_PATHS_LEN: usize = 16 << 20;

/// Maximum total length of the paths in one report, in bytes. Escaped as JSON, it fits in the longest message that the
/// trusted process accepts.
const MAX_REPORT_LEN: usize = 8 << 10;

/// Files that programs have read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    state: Mutex<State>,
    /// Notified when files are added or the end is requested.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    known: HashSet<String>,
    /// Total length of the known paths.
    length: usize,
    unreported: Vec<String>,
    is_closed: bool,
}

impl Reads {
    /// Adds a file. Returns `false` if a limit is reached and the file is not known.
    pub(super) fn add(&self, path: &str) -> bool {
        let mut state = self.lock();
        if state.known.contains(path) {
            return true;
        }
        if state.is_closed || state.known.len() >= MAX_COUNT || state.length + path.len() > MAX_PATHS_LEN {
            return false;
        }
        state.length += path.len();
        state.known.insert(path.to_owned());
        state.unreported.push(path.to_owned());
        self.changed.notify_one();
        true
    }

    /// Waits for files and returns those of the next report, or `None` after [`Reads::close`] once all were returned.
    pub(super) fn next_report(&self) -> Option<Vec<String>> {
        let mut state = self.lock();
        while state.unreported.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut length = 0;
        let fits = state.unreported.iter().take_while(|path| {
            length += path.len();
            length <= MAX_REPORT_LEN
        });
        // A single path is at most 4 KiB long.
        let count = fits.count().max(1);
        Some(state.unreported.drain(..count).collect())
    }

    /// Refuses further files.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_reported_once_and_reports_are_short() {
        let reads = Reads::default();
        let path = |number: usize| format!("/{number:04095}");
        assert!(reads.add("/a") && reads.add("/b") && reads.add("/a"));
        assert_eq!(reads.next_report(), Some(vec!["/a".to_owned(), "/b".to_owned()]));
        assert!((0..3).all(|number| reads.add(&path(number))) && reads.add("/b"));
        assert_eq!(reads.next_report(), Some(vec![path(0), path(1)]));
        reads.close();
        assert_eq!(reads.next_report(), Some(vec![path(2)]));
        assert_eq!(reads.next_report(), None);
        assert!(reads.add("/a") && !reads.add("/c"));
    }

    #[test]
    fn files_are_limited_in_number_and_length() {
        let reads = Reads::default();
        assert!((0..MAX_COUNT).all(|number| reads.add(&number.to_string())));
        assert!(!reads.add("more") && reads.add("7"));
        let reads = Reads::default();
        assert!((0..MAX_PATHS_LEN / 4096).all(|number| reads.add(&format!("{number:04096}"))));
        assert!(!reads.add("x"));
    }
}
