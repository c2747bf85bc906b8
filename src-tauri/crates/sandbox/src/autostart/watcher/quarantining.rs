//! Quarantines files and folders, and counts the moves against the limits of the sessions.
//!
//! - Existing folders are never moved.

use std::os::fd::OwnedFd;

use super::{Watcher, watched_sandbox::WatchedSandbox};
use crate::autostart::{
    Finding,
    budget::total_size,
    folder_walk::display_path,
    name_text::from_os_path,
    paths::{file_name, parent},
    quarantine::QuarantineSlot,
    reopened_folders::open_reopening,
};

impl Watcher {
    /// Quarantines a path, or the nearest folder above it that can be moved, and reports this to the sandboxes
    /// `names`. The move counts against the limit for `counted`.
    pub(super) fn quarantine(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        counted: &str,
        when: &str,
        names: &[&str],
    ) -> bool {
        let (mut target_path, mut moved) = (path, self.quarantine_one(dir, path, when, names));
        if moved.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
            && let Some((folder, moved_to)) = self.quarantine_parent(path, when, names)
        {
            (target_path, moved) = (folder, Ok(moved_to));
        }
        let (finding, was_moved) = match moved {
            Ok(moved_to) => {
                self.count_move(counted, total_size(&moved_to), names);
                (
                    Finding::Quarantined { path: display_path(target_path), moved_to, when: when.to_owned() },
                    true,
                )
            }
            // Another process has removed the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Err(error) => {
                let reason =
                    format!("failed to move the new file `{}` to quarantine: {error}", display_path(path));
                (Finding::Unfinished { reason }, false)
            }
        };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.autostart_files.remove(path);
                sandbox.report(finding.clone());
            }
        }
        was_moved
    }

    fn quarantine_one(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        when: &str,
        names: &[&str],
    ) -> std::io::Result<String> {
        let slot = QuarantineSlot::new(&self.state, path)?;
        let moved_to = from_os_path(&slot.path_for(file_name(path)));
        let finding = Finding::Quarantined { path: display_path(path), moved_to, when: when.to_owned() };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                // Ignores the error: the finding is lost only if this process is killed.
                let _ = sandbox.journal.log_finding(&finding);
            }
        }
        if self.is_exhausted(names) {
            slot.disarm(dir, file_name(path))
        } else {
            slot.move_in(dir, file_name(path))
        }
    }

    /// Returns `true` if the budget of any of these sandboxes' sessions is used up.
    pub(super) fn is_exhausted(&mut self, names: &[&str]) -> bool {
        names.iter().any(|name| self.budgets.for_sandbox(name).is_exhausted())
    }

    /// Counts a quarantined file for these sandboxes' sessions.
    pub(super) fn count_move(&mut self, counted: &str, bytes: u64, names: &[&str]) {
        let mut sessions = std::collections::BTreeMap::new();
        for name in names {
            let session = name.split_once('.').map_or(*name, |(session, _)| session);
            let limit = *sessions
                .entry(session)
                .or_insert_with(|| self.budgets.for_sandbox(name).count(counted, bytes));
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.apply_limit(counted, limit);
            }
        }
    }

    /// Quarantines the nearest new folder above a path. Used for files that cannot be moved alone, for example in a
    /// renamed folder of another user. Existing folders are never moved.
    fn quarantine_parent<'a>(
        &mut self,
        path: &'a str,
        when: &str,
        names: &[&str],
    ) -> Option<(&'a str, String)> {
        let mut folder = parent(path);
        while self.is_in_root(folder) && !self.is_root(folder) {
            let is_new = |sandbox: &WatchedSandbox| {
                sandbox.roots_containing(folder).any(|(_, baseline)| baseline.is_new_or_moved(folder))
            };
            if self.sandboxes.values().any(is_new)
                && let Ok((dir, _reopened)) = open_reopening(parent(folder))
                && let Ok(moved_to) = self.quarantine_one(&dir, folder, when, names)
            {
                return Some((folder, moved_to));
            }
            folder = parent(folder);
        }
        None
    }
}
