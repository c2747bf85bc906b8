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
    baseline::content,
    config_draft::ConfigDraft,
    folder_walk::shown,
    git::{self, ConfigPaths, ConfigRepair},
    name_table::RunVerdict,
    name_text::raw,
    paths::{above, join, last},
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
        if self.sandboxes.values().any(|sandbox| sandbox.named.contains(path)) {
            return;
        }
        if self.mended(name, path, before, now) == ConfigRepair::Fine {
            return self.watch_content(dir, path);
        }
        match self.repair(name, dir, path, before) {
            Ok(RepairOutcome::NotNeeded) => self.watch_content(dir, path),
            Ok(RepairOutcome::Keys(keys)) => {
                self.watch_content(dir, path);
                let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
                if sandbox.is_news(format!("{path}\0{}", keys.join("\0"))) {
                    sandbox.report(Finding::Restored { path: shown(path), keys });
                }
            }
            Ok(RepairOutcome::Impossible) | Err(_) => {
                self.move_away(dir, path, path, WHEN, &[name]);
            }
        }
    }

    /// Returns the verdict on a configuration whose previous text is unknown. `now` is its current text.
    pub(super) fn config_verdict(&self, name: &str, path: &str, now: Option<&[u8]>) -> RunVerdict {
        if self.mended(name, path, None, now) == ConfigRepair::Fine {
            RunVerdict::Harmless
        } else {
            RunVerdict::Listed
        }
    }

    fn mended(&self, name: &str, path: &str, before: Option<&[u8]>, now: Option<&[u8]>) -> ConfigRepair {
        let all = || ConfigRepair::All { keys: vec![] };
        let (Some(sandbox), Some(now)) = (self.sandboxes.get(name), now) else { return all() };
        let inside = |path: &str| sandbox.around(path).next().is_some();
        let paths = ConfigPaths { inside: &inside, folder: above(path) };
        git::repair(before, now, &paths, &sandbox.journal.scratch())
    }

    fn repair(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        before: Option<&[u8]>,
    ) -> io::Result<RepairOutcome> {
        let Some(sandbox) = self.sandboxes.get(name) else { return Ok(RepairOutcome::NotNeeded) };
        let draft = format!("{}.{:016x}", last(path), RandomState::new().hash_one(path));
        sandbox.journal.drafted(path, &draft)?;
        let mut draft = ConfigDraft::new(dir, last(path), draft)?;
        draft.lock();
        let now = content(dir, last(path), git::MAX_LEN);
        let (text, mut keys) = match self.mended(name, path, before, now.as_deref()) {
            ConfigRepair::Fine => return Ok(RepairOutcome::NotNeeded),
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
        if let Some(now) = now.filter(|_| !self.is_spent(&[name])) {
            QuarantineSlot::new(&self.state, path)?.keep(last(path), &now)?;
        }
        let mode =
            statat(dir, &*raw(last(path)), AtFlags::SYMLINK_NOFOLLOW).map_or(0o644, |about| about.st_mode);
        draft.write(&text, mode & 0o777)?;
        let finding = Finding::Restored { path: shown(path), keys: keys.clone() };
        if let Some(sandbox) = self.sandboxes.get(name) {
            sandbox.journal.restored(&finding, &join(above(path), draft.name()))?;
        }
        draft.place()?;
        // Records the result in every baseline, because the baseline of a root that was just opened may contain keys
        // that another sandbox had set shortly before.
        self.settle(dir, path);
        self.count_move(path, bytes as u64, &[name]);
        Ok(RepairOutcome::Keys(keys))
    }
}
