//! Files that programs read below readable folders. Each one is reported to the trusted process once, before it is opened.

use std::{
    collections::HashSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

/// Maximum number of files. Further files require an answer of their own.
const MAX_COUNT: usize = 100_000;

/// Maximum total length of the files' paths, in bytes: 16 MiB. Further files require an answer of their own.
const MAX_PATHS_LEN: usize = 16 << 20;

/// Files that were reported.
#[derive(Debug, Default)]
pub(super) struct Reads(Mutex<ReportedFiles>);

#[derive(Debug, Default)]
struct ReportedFiles {
    paths: HashSet<String>,
    /// Total length of the paths.
    length: usize,
}

impl Reads {
    /// Reports a file with `report`, unless it was reported already. Returns `false` if a limit is reached or `report`
    /// fails. The file must then not be opened.
    pub(super) fn report_once(&self, path: &str, report: impl FnOnce() -> bool) -> bool {
        // Holds the lock while reporting, so that another thread does not open the file before.
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.paths.contains(path) {
            return true;
        }
        let is_full = reported.paths.len() >= MAX_COUNT || reported.length + path.len() > MAX_PATHS_LEN;
        if is_full || !report() {
            return false;
        }
        reported.length += path.len();
        reported.paths.insert(path.to_owned());
        true
    }

    /// Forgets the files below these folders, so that they are reported again if the folders become readable again.
    pub(super) fn forget(&self, folders: &[String]) {
        let is_below = |path: &str| folders.iter().any(|folder| Path::new(path).starts_with(folder));
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut length = 0;
        reported.paths.retain(|path| {
            let is_kept = !is_below(path);
            length += if is_kept { path.len() } else { 0 };
            is_kept
        });
        reported.length = length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_reported_once_and_not_opened_if_that_fails() {
        let (reads, mut reports) = (Reads::default(), 0);
        assert!(!reads.report_once("/a", || false));
        for _ in 0..2 {
            assert!(reads.report_once("/a", || {
                reports += 1;
                true
            }));
        }
        assert_eq!(reports, 1);
    }

    #[test]
    fn files_of_an_ended_folder_are_reported_again() {
        let reads = Reads::default();
        assert!(["/d/a", "/e/a"].iter().all(|path| reads.report_once(path, || true)));
        reads.forget(&["/d".to_owned()]);
        assert!(!reads.report_once("/d/a", || false) && reads.report_once("/e/a", || false));
    }

    #[test]
    fn files_are_limited_in_number_and_length() {
        let reads = Reads::default();
        assert!((0..MAX_COUNT).all(|number| reads.report_once(&number.to_string(), || true)));
        assert!(!reads.report_once("more", || true) && reads.report_once("7", || true));
        let reads = Reads::default();
        assert!(
            (0..MAX_PATHS_LEN / 4096).all(|number| reads.report_once(&format!("{number:04096}"), || true))
        );
        assert!(!reads.report_once("x", || true));
    }
}
