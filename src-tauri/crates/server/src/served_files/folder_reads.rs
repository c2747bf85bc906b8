//! Records the files that programs read in readable folders. The view reports each file before it opens it and does not
//! wait for the record, so that reading many files is fast.
//!
//! - Each file gets the entry of the decision that made its folder readable, with its own path.
//! - Files that cannot be recorded are kept until they can. Until then, no folder is readable.

use super::ServedFiles;
use ironcurtain_audit::{Entry, Pending, redacted};
use ironcurtain_grants::GrantTable;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Maximum number of files that are recorded with one write.
const MAX_AT_ONCE: usize = 256;

/// Time between attempts to record files.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// All folders that have been readable, each with the entry of the first file that was read in it. A folder is kept after
/// it is no longer readable, because a report can arrive later.
#[derive(Debug, Default)]
pub(super) struct FolderReads {
    folders: Mutex<HashMap<CanonicalPath, Entry>>,
    /// Number of reported files that are not recorded yet.
    unrecorded: AtomicUsize,
}

impl FolderReads {
    pub(super) fn add(&self, folder: CanonicalPath, entry: Entry) {
        self.lock().insert(folder, entry);
    }

    /// Counts a reported file that is not recorded yet.
    pub(super) fn count_report(&self) {
        self.unrecorded.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if the decision that made the folder readable still holds: its grant is active, and the policy is
    /// the same.
    pub(super) fn is_current(&self, folder: &CanonicalPath, table: &GrantTable, policy_hash: &str) -> bool {
        self.lock().get(folder).is_some_and(|entry| {
            let is_active = |id: &String| table.grants.iter().any(|grant| grant.id == *id);
            entry.grant_id.as_ref().is_some_and(is_active)
                && entry.policy_hash.as_deref() == Some(policy_hash)
        })
    }

    /// Returns the entry for a file: that of the innermost folder that is readable or, for a late report, was readable.
    /// Returns `None` if no folder above the file has been readable.
    fn entry(&self, path: &str, readable: &HashSet<CanonicalPath>) -> Option<Entry> {
        let above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        let above = above.filter_map(|folder| CanonicalPath::assume_canonical(folder).ok());
        let folders = self.lock();
        let known: Vec<CanonicalPath> = above.filter(|folder| folders.contains_key(folder)).collect();
        let folder = known.iter().find(|folder| readable.contains(*folder)).or(known.first())?;
        let mut entry = folders.get(folder)?.clone();
        entry.paths = vec![path.to_owned()];
        entry.arguments = Some(redacted(&super::judge::arguments(path)));
        Some(entry)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CanonicalPath, Entry>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServedFiles {
    /// Returns the number of files that the view has reported and that are not recorded yet.
    pub fn unrecorded_reads(&self) -> usize {
        self.permissions.reads().unrecorded.load(Ordering::Relaxed)
    }

    /// Records reported files until the sender is dropped.
    pub(super) async fn record_reads(&self, mut reports: mpsc::UnboundedReceiver<String>) {
        let mut paths = Vec::new();
        while reports.recv_many(&mut paths, MAX_AT_ONCE).await > 0 {
            let (count, entries) = (paths.len(), self.read_entries(paths.drain(..)));
            self.record_entries(entries).await;
            self.permissions.reads().unrecorded.fetch_sub(count, Ordering::Relaxed);
            self.services.changed();
        }
    }

    /// Returns the entries for files that programs read, and counts the files.
    fn read_entries(&self, paths: impl Iterator<Item = String>) -> Vec<Pending> {
        let (mut entries, readable) = (Vec::new(), self.permissions.readable());
        for path in paths {
            let entry = self.permissions.reads().entry(&path, &readable);
            let grant = entry.as_ref().and_then(|entry| entry.grant_id.clone());
            let Some(Ok(entry)) = entry.map(Pending::new) else {
                // Only a defect of the view can cause this.
                tracing::error!(
                    session = self.id,
                    path,
                    "no permission covers a file that was read; terminating the sandbox"
                );
                self.end();
                continue;
            };
            entries.push(entry);
            self.services.grants.count_use(grant.as_slice());
            self.count_allowed(&PermittedAccess { path, access: FileAccess::Read });
        }
        entries
    }

    /// Records entries. While this fails, each further read must be judged, which denies it.
    async fn record_entries(&self, entries: Vec<Pending>) {
        let mut has_failed = false;
        while !entries.is_empty()
            && let Err(problem) = self.services.audit.record_all(entries.clone()).await
        {
            if !has_failed {
                tracing::error!(session = self.id, %problem, "failed to record files that were read; trying again");
                self.hold_readable_folders(true);
            }
            has_failed = true;
            tokio::time::sleep(RETRY_DELAY).await;
        }
        if has_failed {
            self.hold_readable_folders(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_audit::Event;

    #[test]
    fn a_file_is_recorded_under_the_innermost_readable_folder() {
        let reads = FolderReads::default();
        let folder = |path: &str| CanonicalPath::assume_canonical(path).unwrap();
        for (path, grant) in [("/d", "outer"), ("/d/e", "inner")] {
            let entry = Entry { grant_id: Some(grant.into()), ..Entry::new(Event::Decision, "allowed") };
            reads.add(folder(path), entry);
        }
        let grant = |path: &str, readable: &[&str]| {
            let entry = reads.entry(path, &readable.iter().map(|path| folder(path)).collect())?;
            assert_eq!(entry.paths, [path]);
            entry.grant_id
        };
        assert_eq!(grant("/d/e/f", &["/d", "/d/e"]).as_deref(), Some("inner"));
        assert_eq!(grant("/d/e/f", &["/d"]).as_deref(), Some("outer"));
        // A late report.
        assert_eq!(grant("/d/e/f", &[]).as_deref(), Some("inner"));
        assert_eq!(grant("/other/f", &["/d"]), None);
    }
}
