//! Records the files that programs read in readable folders. The view reports each file before it opens it and does not
//! wait for the record, so that reading many files is fast.
//!
//! - Each file gets the entry of the decision that made its folder readable, with its own path.

use super::ServedFiles;
use ironcurtain_audit::{Entry, Pending, redacted};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of files that are recorded with one write.
const MAX_AT_ONCE: usize = 256;

/// All folders that have been readable, each with the entry of the first file that was read in it. A folder is kept after
/// it is no longer readable, because a report can arrive later.
#[derive(Debug, Default)]
pub(super) struct FolderReads(Mutex<HashMap<CanonicalPath, Entry>>);

impl FolderReads {
    pub(super) fn add(&self, folder: CanonicalPath, entry: Entry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(folder, entry);
    }

    /// Returns the entry for a file, or `None` if no folder above it has been readable.
    fn entry(&self, path: &str) -> Option<Entry> {
        let folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        let mut above = above.filter_map(|folder| CanonicalPath::assume_canonical(folder).ok());
        let mut entry = above.find_map(|folder| folders.get(&folder).cloned())?;
        entry.paths = vec![path.to_owned()];
        entry.arguments = Some(redacted(&super::judge::arguments(path)));
        Some(entry)
    }
}

impl ServedFiles {
    /// Records reported files until the sender is dropped.
    pub(super) async fn record_reads(&self, mut reports: mpsc::UnboundedReceiver<String>) {
        let mut paths = Vec::new();
        while reports.recv_many(&mut paths, MAX_AT_ONCE).await > 0 {
            self.record_read(paths.drain(..)).await;
        }
    }

    /// Records files that programs read. If this fails, each further read must be judged, which denies it.
    async fn record_read(&self, paths: impl Iterator<Item = String>) {
        let mut entries = Vec::new();
        for path in paths {
            let entry = self.permissions.reads().entry(&path);
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
        if entries.is_empty() {
            return;
        }
        if let Err(problem) = self.services.audit.record_all(entries).await {
            tracing::error!(%problem, "failed to record files that were read");
            self.end_readable_folders();
        }
        self.services.changed();
    }
}
