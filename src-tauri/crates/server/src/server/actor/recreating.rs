//! Limits a server that keeps recreating quarantined files. The folder first becomes read-only. If that does not help,
//! the server is stopped.

use super::{Actor, DownReason, Running};
pub use crate::server::down::ServerExit;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::mounts::Need;
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
    pub(super) fn ended(&self) -> Option<DownReason> {
        self.reason.clone().map(DownReason::Recreates)
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

    fn withholds(&self, path: &CanonicalPath) -> bool {
        self.read_only.keys().any(|root| root.contains(path))
    }
}

impl Actor {
    /// Applies the limits that the sandbox's watcher has requested.
    pub(super) async fn act_on_due(&mut self) {
        let look = self.running.as_mut().and_then(Running::control).and_then(|control| control.look());
        for due in look.map(|look| look.due()).unwrap_or_default() {
            match due {
                Countermeasure::ReadOnly { root, path } => self.close_root(&root, path).await,
                Countermeasure::End { reason } => self.end_recreating(reason).await,
            }
        }
    }

    async fn close_root(&mut self, root: &str, path: String) {
        let mounted = self.mounted.iter().map(|mounted| &mounted.need);
        let granted = mounted.filter(|need| need.writable).find(|need| need.path.as_str() == root);
        // A folder that no grant opens stays writable. The next countermeasure stops the server.
        let Some(root) = granted.map(|need| need.path.clone()) else { return };
        let server = &self.options.server.name;
        let summary = format!(
            "the server {server} kept recreating `{path}`, so `{root}` is read-only for it from now on",
            root = root.as_str()
        );
        let mut entry = Entry::new(Event::BoundaryViolation, summary);
        entry.path = Some(path.clone());
        entry.sandboxed = Some(true);
        self.options.metrics.violation();
        self.record_entry(entry).await;
        self.recreating.read_only.insert(root, path);
        // Publish the reason now, so that calls get it without waiting for the server to confirm its new roots.
        let read_only = self.recreating.read_only();
        self.applied.send_modify(|applied| applied.read_only = read_only);
        self.reconcile().await;
    }

    async fn end_recreating(&mut self, reason: String) {
        self.recreating.reason = Some(reason.clone());
        let why = DownReason::Recreates(reason);
        if let Some(running) = self.running.take() {
            running.connection.ended(&ServerExit { remote: Some(why.to_string()), ..ServerExit::default() });
            running.stop().await;
        }
        self.down(why).await;
    }

    /// Removes write access from the needs that are in a read-only folder.
    pub(super) fn withhold_writing(&self, needs: &mut [Need]) {
        for need in needs.iter_mut().filter(|need| self.recreating.withholds(&need.path)) {
            need.writable = false;
        }
    }
}
