//! The facade of platforms without a sandbox: there is nothing to watch.

use std::{io, path::Path};

use super::{AutostartRules, Finding};

/// The watcher of all sandboxes: there is none on this platform.
#[derive(Debug)]
pub struct Watcher;

/// The journal of a sandbox whose last look is done: there is none on this platform.
#[derive(Debug)]
#[must_use = "a journal that is not forgotten has the next start look again"]
pub struct FinishedJournal;

impl FinishedJournal {
    /// All that was found is on record.
    pub fn forget(self) {}
}

#[expect(missing_docs, clippy::unused_self, reason = "the real ones say what they do")]
impl Watcher {
    pub fn new(_state_dir: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    pub fn sweep(&mut self) -> Vec<(String, Vec<Finding>, Option<FinishedJournal>)> {
        vec![]
    }

    pub fn begin(&mut self, _name: &str, _rules: AutostartRules) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn open(&mut self, _name: &str, _root: &str) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn close(&mut self, _name: &str, _root: &str) -> Vec<Finding> {
        vec![]
    }

    pub fn named(&mut self, _name: &str, _path: &str) {}

    pub fn hidden(&mut self, _name: &str, _paths: &[String]) {}

    pub fn read(&mut self) -> Vec<(String, Finding)> {
        vec![]
    }

    pub fn uncovered(&mut self) -> Vec<String> {
        vec![]
    }

    pub fn covered(&mut self, _name: &str) {}

    pub fn finish(&mut self, _name: &str) -> (Vec<Finding>, Option<FinishedJournal>) {
        (vec![], None)
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
