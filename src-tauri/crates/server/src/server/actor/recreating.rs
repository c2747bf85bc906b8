//! Limits a server that keeps recreating quarantined files. The folder first becomes read-only. If that does not help,
//! the server is stopped.

use super::{Actor, DownReason, Running};
pub use crate::server::down::ServerExit;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::autostart::Countermeasure;
use std::collections::BTreeMap;

/// Limits on a server that keeps recreating quarantined files.
#[derive(Debug, Default)]
pub(super) struct RecreatedFiles {
    /// Folders that became read-only, each with the file that the server recreated in it.
    read_only: BTreeMap<CanonicalPath, String>,
    /// Reason why the server was stopped and must not be restarted. `None` while it may run.
    reason: Option<String>,
}

impl RecreatedFiles {
    /// Returns the reason why the server must not be started, or `None` if it may be started.
    pub(super) fn down_reason(&self) -> Option<DownReason> {
        self.reason.clone().map(DownReason::RecreatesFiles)
    }

    /// Returns the read-only folders, with messages that explain why.
    pub(super) fn read_only(&self) -> BTreeMap<CanonicalPath, String> {
        let reason = |file: &String| {
            format!(
                "it is read-only in this session, because `{file}` was recreated each time it was quarantined"
            )
        };
        self.read_only.iter().map(|(root, file)| (root.clone(), reason(file))).collect()
    }

    fn is_read_only(&self, path: &CanonicalPath) -> bool {
        self.read_only.keys().any(|root| root.contains(path))
    }
}

impl Actor {
    /// Applies the limits that the sandbox's watcher has requested.
    pub(super) async fn apply_countermeasures(&mut self) {
        let watch = self.running.as_mut().and_then(Running::control).and_then(|control| control.watch());
        for due in watch.map(|watch| watch.take_countermeasures()).unwrap_or_default() {
            match due {
                Countermeasure::ReadOnly { root, path } => self.make_root_read_only(&root, path).await,
                Countermeasure::End { reason } => self.end_recreating(reason).await,
            }
        }
    }

    async fn make_root_read_only(&mut self, root: &str, path: String) {
        let mounted = self.mounted.iter().map(|mounted| &mounted.need);
        let writable_root = mounted.filter(|need| need.writable).find(|need| need.path.as_str() == root);
        // A folder that is not mounted by a grant, such as the session folder, stays writable. If the server recreates
        // the file again, the next countermeasure stops it.
        let Some(root) = writable_root.map(|need| need.path.clone()) else { return };
        let server = &self.options.server.name;
        let summary = format!(
            "the server {server} kept recreating `{path}`, so `{root}` is read-only for it from now on",
            root = root.as_str()
        );
        let mut entry = Entry::new(Event::BoundaryViolation, summary);
        entry.path = Some(path.clone());
        entry.sandboxed = Some(true);
        self.options.metrics.count_violation();
        self.record_entry(entry).await;
        self.recreating.read_only.insert(root, path);
        // Publish the reason now, so that calls get it without waiting for the server to confirm its new roots.
        let read_only = self.recreating.read_only();
        self.applied.send_modify(|applied| applied.read_only = read_only);
        self.reconcile().await;
    }

    async fn end_recreating(&mut self, reason: String) {
        self.recreating.reason = Some(reason.clone());
        let why = DownReason::RecreatesFiles(reason);
        if let Some(running) = self.running.take() {
            running
                .connection
                .report_exit(&ServerExit { remote: Some(why.to_string()), ..ServerExit::default() });
            running.stop().await;
        }
        self.set_down(why).await;
    }

    /// Removes write access from the mounts that are in a read-only folder.
    pub(super) fn remove_write_access(&self, mounts: &mut [MountRequest]) {
        for need in mounts.iter_mut().filter(|need| self.recreating.is_read_only(&need.path)) {
            need.writable = false;
        }
    }
}
