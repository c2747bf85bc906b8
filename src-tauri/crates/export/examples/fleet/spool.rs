//! Audit log that all desktops export. Each desktop's exporter reads it from disk.
//!
//! - Each desktop has its own state file, and reads up to the entries that it has "recorded" so far.

use ironcurtain_audit::{
    Audit, CallResult, ChainPosition, DecidedBy, Entry, Event, FollowedEntry, Follower, LogPosition,
    PolicyDecision,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Number of entries per call: the decision and its outcome.
pub const ENTRIES_PER_CALL: usize = 2;

pub struct Spool {
    dir: tempfile::TempDir,
    /// Positions in the log. The first position is before all entries.
    pub positions: Vec<ChainPosition>,
    numbers: HashMap<String, u64>,
}

impl Spool {
    /// Creates a log with this number of calls.
    pub fn new(calls: usize) -> Self {
        // Each desktop syncs its state file after each request, which is slow on a disk.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let dir = dir.expect("a directory");
        let log = dir.path().join("audit");
        std::fs::create_dir(&log).expect("a directory");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let beginning = runtime.block_on(record(&log, calls));
        let mut follower = Follower::new(&log, LogPosition::beginning());
        let (mut positions, mut numbers) = (vec![beginning], HashMap::new());
        while let Some(FollowedEntry::Entry { link, .. }) = follower.read_next().expect("a log") {
            numbers.insert(link, positions.len() as u64);
            positions.push(follower.position().written.clone());
        }
        assert_eq!(numbers.len(), calls * ENTRIES_PER_CALL, "each entry has its own id");
        Self { dir, positions, numbers }
    }

    pub fn log(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    pub fn state_file(&self, desktop: usize) -> PathBuf {
        self.dir.path().join(format!("{desktop}.json"))
    }

    /// Returns the sequence number of the entry with this id.
    pub fn number(&self, id: &str) -> Option<u64> {
        self.numbers.get(id).copied()
    }
}

async fn record(log: &Path, calls: usize) -> ChainPosition {
    let audit = Audit::open(log, |_| ()).expect("a log");
    for n in 0..calls {
        let number = audit.record(decision(n)).await.expect("on record");
        audit.record(Entry::outcome_of(number, CallResult::Ok, 3)).await.expect("on record");
    }
    audit.flush().await;
    audit.opened_at().clone()
}

fn decision(n: usize) -> Entry {
    let mut entry = Entry::new(Event::Decision, "");
    entry.request_id = Some(n.to_string());
    (entry.session, entry.client) = (Some("4mc6fg3r2g6pe000".to_owned()), Some("claude".to_owned()));
    (entry.server_name, entry.tool_name) = (Some("filesystem".to_owned()), Some("read_text_file".to_owned()));
    entry.paths = vec![format!("/home/person/projects/application/src/module/file{n}.rs")];
    entry.policy_decision =
        Some(PolicyDecision::allow(DecidedBy::Grant, "grant", "grant `nt5u8qj8t4m4kzgr`"));
    (entry.grant_id, entry.sandboxed) = (Some("nt5u8qj8t4m4kzgr".to_owned()), Some(true));
    entry
}
