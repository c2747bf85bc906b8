//! The process that owns a journal, and the lock that it holds.
//!
//! - A process is identified by its id and start time, because ids are reused.

use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::JournalLine;

/// Process that owns a journal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Owner {
    pub(super) pid: u32,
    /// Start time in clock ticks since boot. Distinguishes the process from a later process with the same id.
    pub(super) started: u64,
}

impl Owner {
    /// Looks up a running process by id. Zombies are ignored, because they have already closed their files.
    pub(super) fn find(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may contain spaces. Fields after it are numbered from 3 in `proc_pid_stat(5)`.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let started = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, started })
    }

    /// Returns `true` if the last recorded owner of a journal is running.
    fn is_running(path: &Path) -> bool {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut is_running = None;
        for line in lines {
            match line {
                // Earlier versions journaled only the process id.
                JournalLine::Begin { pid, .. } => is_running = Some(Self::find(pid).is_some()),
                JournalLine::Owner(owner) => is_running = Some(Self::find(owner.pid) == Some(owner)),
                JournalLine::Open { .. }
                | JournalLine::Close { .. }
                | JournalLine::Approved { .. }
                | JournalLine::Replaced { .. }
                | JournalLine::Drafted { .. }
                | JournalLine::Found { .. }
                | JournalLine::Restored { .. } => {}
            }
        }
        is_running.unwrap_or(true)
    }
}

/// Locks a journal. Returns `false` if a running process owns it.
///
/// A child of a killed owner can hold the lock until the child calls `exec`. After the owner has exited, this function
/// therefore waits for the lock.
pub(super) fn lock(file: &File, path: &Path) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        if Owner::is_running(path) || Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
