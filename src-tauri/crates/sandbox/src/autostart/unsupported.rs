//! The facade of platforms without a sandbox: there is nothing to watch.

use std::{convert::Infallible, io, path::Path, time::Duration};

use super::{AutostartRules, Countermeasure, Finding};

/// The watcher of all sandboxes: there is none on this platform.
#[derive(Debug)]
pub struct Watcher(Infallible);

/// The journal of a sandbox whose last look is done: there is none on this platform.
#[derive(Debug)]
#[must_use = "a journal that is not forgotten has the next start look again"]
pub struct FinishedJournal;

impl FinishedJournal {
    /// All that was found is on record.
    pub fn forget(self) {}
}

#[expect(missing_docs, reason = "the real ones say what they do")]
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

/// Moves a file to quarantine because the person said so.
pub fn quarantine(_state_dir: &Path, _path: &str) -> io::Result<String> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Why something is not put back, or not deleted.
#[derive(Debug, thiserror::Error)]
#[error("nothing is in quarantine on this platform")]
pub struct PutBackError;

/// Puts back what was moved from `path` to `kept`.
pub fn put_back(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), PutBackError> {
    Err(PutBackError)
}

/// Puts it back, and what stands there now into quarantine.
pub fn exchange(_state_dir: &Path, _path: &str, _kept: &str) -> Result<Option<String>, PutBackError> {
    Err(PutBackError)
}

/// Deletes for good what was moved from `path` to `kept`.
pub fn delete(_state_dir: &Path, _path: &str, _kept: &str) -> Result<(), PutBackError> {
    Err(PutBackError)
}

/// The path that a finding names.
pub fn real_path(shown: &str) -> std::path::PathBuf {
    shown.into()
}
