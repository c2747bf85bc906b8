//! Restores git configuration keys that make git run programs.
//!
//! - Keys are restored under git's own lock, to preserve concurrent changes by git. Locks that are held for longer than
//!   git would hold them are ignored.
//! - Nothing is deleted: the replaced configuration is quarantined.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    os::fd::OwnedFd,
};

use rustix::fs::{AtFlags, statat};

use super::Watcher;
use crate::autostart::{
    Finding,
    baseline::read_bounded,
    config_draft::ConfigDraft,
    folder_walk::display_path,
    git::{self, ConfigPaths, ConfigRepair},
    name_table::RunVerdict,
    name_text::to_os_str,
    paths::{file_name, join, parent},
    quarantine::QuarantineSlot,
};

const WHEN: &str = "when you use git in this repository";

/// Outcome of repairing a configuration.
enum RepairOutcome {
    /// Another process has already repaired the configuration.
    NotNeeded,
    /// These keys were restored to their previous values.
    Keys(Vec<String>),
    /// The previous text is unknown, so nothing can be restored.
    Impossible,
}

impl Watcher {
    /// Compares a configuration with its previous text, if any, and repairs or quarantines it if necessary.
    pub(super) fn guard_config(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        before: Option<&[u8]>,
        now: Option<&[u8]>,
    ) {
        if self.sandboxes.values().any(|sandbox| sandbox.approved.contains(path)) {
            return;
        }
        if self.needed_repair(name, path, before, now) == ConfigRepair::NotNeeded {
            return self.watch_content(dir, path);
        }
        match self.repair(name, dir, path, before) {
            Ok(RepairOutcome::NotNeeded) => self.watch_content(dir, path),
            Ok(RepairOutcome::Keys(keys)) => {
                self.watch_content(dir, path);
                let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
                if sandbox.is_first_report(format!("{path}\0{}", keys.join("\0"))) {
                    sandbox.report(Finding::Restored { path: display_path(path), keys });
                }
            }
            Ok(RepairOutcome::Impossible) | Err(_) => {
                self.quarantine(dir, path, path, WHEN, &[name]);
            }
        }
    }

    /// Returns the verdict on a configuration whose previous text is unknown. `now` is its current text.
    pub(super) fn config_verdict(&self, name: &str, path: &str, now: Option<&[u8]>) -> RunVerdict {
        if self.needed_repair(name, path, None, now) == ConfigRepair::NotNeeded {
            RunVerdict::Harmless
        } else {
            RunVerdict::Reported
        }
    }

    fn needed_repair(
        &self,
        name: &str,
        path: &str,
        before: Option<&[u8]>,
        now: Option<&[u8]>,
    ) -> ConfigRepair {
        let all = || ConfigRepair::All { keys: vec![] };
        let (Some(sandbox), Some(now)) = (self.sandboxes.get(name), now) else { return all() };
        let is_checked = |path: &str| sandbox.roots_containing(path).next().is_some();
        let paths = ConfigPaths { is_checked: &is_checked, folder: parent(path) };
        git::repair(before, now, &paths, &sandbox.journal.scratch_path())
    }

    fn repair(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        before: Option<&[u8]>,
    ) -> io::Result<RepairOutcome> {
        let Some(sandbox) = self.sandboxes.get(name) else { return Ok(RepairOutcome::NotNeeded) };
        let draft = format!("{}.{:016x}", file_name(path), RandomState::new().hash_one(path));
        sandbox.journal.log_draft(path, &draft)?;
        let mut draft = ConfigDraft::new(dir, file_name(path), draft)?;
        draft.lock();
        let now = read_bounded(dir, file_name(path), git::MAX_LEN);
        let (text, mut keys) = match self.needed_repair(name, path, before, now.as_deref()) {
            ConfigRepair::NotNeeded => return Ok(RepairOutcome::NotNeeded),
            ConfigRepair::Keys { text, keys } => (text, keys),
            ConfigRepair::All { keys } => match before {
                Some(before) => (before.to_vec(), keys),
                None => return Ok(RepairOutcome::Impossible),
            },
        };
        if keys.is_empty() {
            keys.push("all of it".to_owned());
        }
        let bytes = now.as_ref().map_or(0, Vec::len);
        if let Some(now) = now.filter(|_| !self.is_exhausted(&[name])) {
            QuarantineSlot::new(&self.state, path)?.write(file_name(path), &now)?;
        }
        let mode = statat(dir, &*to_os_str(file_name(path)), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(0o644, |stat| stat.st_mode);
        draft.write(&text, mode & 0o777)?;
        let finding = Finding::Restored { path: display_path(path), keys: keys.clone() };
        if let Some(sandbox) = self.sandboxes.get(name) {
            sandbox.journal.log_restored(&finding, &join(parent(path), draft.name()))?;
        }
        draft.commit()?;
        // Records the result in every baseline, because the baseline of a root that was just opened may contain keys
        // that another sandbox had set shortly before.
        self.update_baselines(dir, path);
        self.count_move(path, bytes as u64, &[name]);
        Ok(RepairOutcome::Keys(keys))
    }
}
