//! One watcher for all sandboxes of a process.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::fs::inotify::{self, CreateFlags};

use super::{Finding, Rules};

/// Watches what sandboxes can write.
#[derive(Debug)]
pub struct Watcher {
    queue: OwnedFd,
}

impl Watcher {
    /// One whose journals are in the state directory.
    pub fn new(_state_dir: &Path) -> io::Result<Self> {
        Ok(Self { queue: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)? })
    }

    /// Finishes for processes that were killed: the names of their sandboxes, and what was found.
    pub fn sweep(&mut self) -> Vec<(String, Vec<Finding>)> {
        vec![]
    }

    /// Begins a sandbox, by a name of the launcher's.
    pub fn begin(&mut self, _name: &str, _rules: Rules) -> io::Result<()> {
        Ok(())
    }

    /// Opens a root that becomes writable; returns the paths that are to be closed in it.
    pub fn open(&mut self, _name: &str, _root: &str) -> io::Result<Vec<String>> {
        Ok(vec![])
    }

    /// Closes a root that is writable no longer, after one last look at it.
    pub fn close(&mut self, _name: &str, _root: &str) -> Vec<Finding> {
        vec![]
    }

    /// Takes an answer of the person's that named this very file.
    pub fn named(&mut self, _name: &str, _path: &str) {}

    /// Takes the paths that are hidden in a sandbox.
    pub fn hidden(&mut self, _name: &str, _paths: &[String]) {}

    /// Drains the queue without waiting, acts, and returns what is new by the names of the sandboxes.
    pub fn read(&mut self) -> Vec<(String, Finding)> {
        vec![]
    }

    /// The names of sandboxes that may have lost a cover since the last call: send them `ControlOp::Check`.
    pub fn uncovered(&mut self) -> Vec<String> {
        vec![]
    }

    /// Takes the word of a sandbox's supervisor that every path is covered again.
    pub fn covered(&mut self, _name: &str) {}

    /// Ends a sandbox: the last look at all its roots; its journal is removed.
    pub fn finish(&mut self, _name: &str) -> Vec<Finding> {
        vec![]
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
