//! Stub for platforms without sandboxes, where there is nothing to watch.

use std::{convert::Infallible, io, path::Path, time::Duration};

use super::{AutostartCondition, AutostartRules, Countermeasure, Finding, autostart_condition};

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

    pub fn autostart_condition(&self, path: &str) -> Option<AutostartCondition> {
        autostart_condition(path, Some(&self.0))
    }
}

/// Journal of a sandbox after its final check. Never created on this platform.
#[derive(Debug)]
#[must_use = "unless the journal is forgotten, the next start checks again"]
pub struct FinishedJournal;

impl FinishedJournal {
    /// Removes the journal. Called once all findings are recorded.
    pub fn delete(self) {}
}

#[expect(missing_docs, reason = "see the Linux implementation")]
impl Watcher {
    pub fn new(_state_dir: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn finish_interrupted(&mut self) -> Vec<(String, Vec<Finding>, Option<FinishedJournal>)> {
        match self.0 {}
    }

    pub fn add_sandbox(&mut self, _name: &str, _rules: AutostartRules) -> io::Result<()> {
        match self.0 {}
    }

    pub fn open_root(&mut self, _name: &str, _root: &str) -> io::Result<Vec<String>> {
        match self.0 {}
    }

    pub fn close_root(&mut self, _name: &str, _root: &str) -> Vec<Finding> {
        match self.0 {}
    }

    pub fn add_approved(&mut self, _name: &str, _path: &str) {
        match self.0 {}
    }

    pub fn set_hidden(&mut self, _name: &str, _paths: &[String]) {
        match self.0 {}
    }

    pub fn poll_timeout(&self) -> Option<Duration> {
        match self.0 {}
    }

    pub fn process_events(&mut self) -> Vec<(String, Finding)> {
        match self.0 {}
    }

    pub fn take_uncovered(&mut self) -> Vec<String> {
        match self.0 {}
    }

    pub fn take_countermeasures(&mut self) -> Vec<(String, Countermeasure)> {
        match self.0 {}
    }

    pub fn masks_restored(&mut self, _name: &str) {
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
pub struct RestoreError;

/// Restores the quarantined file `kept` to its original path `path`.
pub fn restore(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), RestoreError> {
    Err(RestoreError)
}

/// Restores a file and quarantines the file currently at its path.
pub fn exchange(_state_dir: &Path, _path: &str, _kept: &str) -> Result<Option<String>, RestoreError> {
    Err(RestoreError)
}

/// Permanently deletes the file that was quarantined from `path` as `kept`.
pub fn delete(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), RestoreError> {
    Err(RestoreError)
}

/// Converts a path from a finding to the path on disk.
pub fn real_path(path: &str) -> std::path::PathBuf {
    path.into()
}
