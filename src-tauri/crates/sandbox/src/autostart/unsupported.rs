//! Stub for platforms without sandboxes, where there is nothing to watch.

use std::{convert::Infallible, io, path::Path, time::Duration};

use super::{AutostartRules, Countermeasure, Finding, RunsLater, runs_later};

/// Watcher of all sandboxes. Never created on this platform.
#[derive(Debug)]
pub struct Watcher(Infallible);

/// Autostart files of one user, recognized only by their names on this platform.
#[derive(Debug)]
pub struct StartupFiles(String);

#[expect(missing_docs, reason = "see the Linux implementation")]
impl StartupFiles {
    #[must_use]
    pub fn new(home: String) -> Self {
        Self(home)
    }

    pub fn runs_later(&self, path: &str) -> Option<RunsLater> {
        runs_later(path, Some(&self.0))
    }
}

/// Journal of a sandbox after its final check. Never created on this platform.
#[derive(Debug)]
#[must_use = "unless the journal is forgotten, the next start checks again"]
pub struct FinishedJournal;

impl FinishedJournal {
    /// Removes the journal. Called once all findings are recorded.
    pub fn forget(self) {}
}

#[expect(missing_docs, reason = "see the Linux implementation")]
impl Watcher {
    pub fn new(_state_dir: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn sweep(&mut self) -> Vec<(String, Vec<Finding>, Option<FinishedJournal>)> {
        match self.0 {}
    }

    pub fn begin(&mut self, _name: &str, _rules: AutostartRules) -> io::Result<()> {
        match self.0 {}
    }

    pub fn open(&mut self, _name: &str, _root: &str) -> io::Result<Vec<String>> {
        match self.0 {}
    }

    pub fn close(&mut self, _name: &str, _root: &str) -> Vec<Finding> {
        match self.0 {}
    }

    pub fn named(&mut self, _name: &str, _path: &str) {
        match self.0 {}
    }

    pub fn hidden(&mut self, _name: &str, _paths: &[String]) {
        match self.0 {}
    }

    pub fn patience(&self) -> Option<Duration> {
        match self.0 {}
    }

    pub fn read(&mut self) -> Vec<(String, Finding)> {
        match self.0 {}
    }

    pub fn uncovered(&mut self) -> Vec<String> {
        match self.0 {}
    }

    pub fn countermeasures(&mut self) -> Vec<(String, Countermeasure)> {
        match self.0 {}
    }

    pub fn covered(&mut self, _name: &str) {
        match self.0 {}
    }

    pub fn finish(&mut self, _name: &str) -> (Vec<Finding>, Option<FinishedJournal>) {
        match self.0 {}
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for Watcher {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self.0 {}
    }
}

/// Quarantines a file at the user's request.
pub fn quarantine(_state_dir: &Path, _path: &str) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Failure to restore or delete a quarantined file.
#[derive(Debug, thiserror::Error)]
#[error("quarantine is not supported on this platform")]
pub struct PutBackError;

/// Restores the quarantined file `kept` to its original path `path`.
pub fn put_back(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), PutBackError> {
    Err(PutBackError)
}

/// Restores a file and quarantines the file currently at its path.
pub fn exchange(_state_dir: &Path, _path: &str, _kept: &str) -> Result<Option<String>, PutBackError> {
    Err(PutBackError)
}

/// Permanently deletes the file that was quarantined from `path` as `kept`.
pub fn delete(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), PutBackError> {
    Err(PutBackError)
}

/// Converts a path from a finding to the path on disk.
pub fn real_path(shown: &str) -> std::path::PathBuf {
    shown.into()
}
