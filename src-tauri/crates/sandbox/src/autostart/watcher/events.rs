//! Processes inotify events.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, inotify::ReadFlags};

use super::{
    Watcher,
    folder_check::{NEW_FOLDER_BOUNDS, RECHECK_BOUNDS},
};
use crate::{
    autostart::{
        baseline::CoverState,
        event_queue::{EventBatch, NameEvent},
        file_stamp::FileStamp,
        paths::parent,
        reopened_folders::open_reopening,
    },
    nofollow::is_at_or_below,
};

/// Maximum number of consecutive reads. It suffices for all events queued before the first read.
const MAX_READS: usize = 8;
/// Maximum number of pending paths. If there are more, every root is checked instead.
const MAX_PENDING: usize = 20_000;
/// Maximum time spent on pending paths per call to [`check_pending`](Watcher::check_pending).
const MAX_CHECK_TIME: Duration = Duration::from_millis(100);

/// Events that create or remove a name.
const NAME_EVENTS: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);
const APPEARED_EVENTS: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO);
const DISAPPEARED_EVENTS: ReadFlags = ReadFlags::DELETE.union(ReadFlags::MOVED_FROM);

/// Paths that had events and have not been checked yet.
#[derive(Debug, Default)]
pub(super) struct PendingPaths {
    folders: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl PendingPaths {
    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }

    /// Removes the pending folders below a folder that was just checked with all its subfolders.
    fn forget_below(&mut self, folder: &str) {
        let below = format!("{folder}/");
        while let Some(next) =
            self.folders.range(below.clone()..).next().filter(|next| next.starts_with(&below))
        {
            let next = next.clone();
            self.folders.remove(&next);
        }
    }
}

impl Watcher {
    /// Reads all queued events, updates the covered names, and queues paths to check.
    pub(super) fn drain(&mut self) {
        for _ in 0..MAX_READS {
            let EventBatch { events, overflowed, has_more } = self.queue.read();
            events.into_iter().for_each(|event| self.handle_event(event));
            if overflowed || self.pending.folders.len() + self.pending.files.len() > MAX_PENDING {
                self.check_everything();
            }
            if !has_more {
                return;
            }
        }
    }

    fn handle_event(&mut self, NameEvent { path, flags }: NameEvent) {
        self.update_masks(&path, flags);
        if flags.contains(ReadFlags::ISDIR) {
            if flags.intersects(DISAPPEARED_EVENTS) {
                self.queue.unwatch_below(&path);
                self.pending.folders.remove(&path);
            }
            if flags.contains(ReadFlags::MOVED_TO) {
                let baselines = self.sandboxes.values_mut().flat_map(|sandbox| sandbox.roots.iter_mut());
                let containing = baselines.filter(|(root, _)| is_at_or_below(&path, root));
                containing.for_each(|(_, baseline)| baseline.record_move(&path));
            }
            if !flags.intersects(APPEARED_EVENTS) {
                return;
            }
        }
        if self.git_folders.is_completed_by(&path) {
            self.pending.folders.insert(parent(&path).to_owned());
        }
        let pending = &mut self.pending;
        if flags.contains(ReadFlags::ISDIR) { &mut pending.folders } else { &mut pending.files }.insert(path);
    }

    /// Checks pending paths for at most [`MAX_CHECK_TIME`].
    pub(super) fn check_pending(&mut self) {
        let deadline = Instant::now() + MAX_CHECK_TIME;
        while Instant::now() < deadline {
            if let Some(folder) = self.pending.folders.pop_first() {
                self.check_pending_folder(&folder);
                self.pending.forget_below(&folder);
            } else if let Some(file) = self.pending.files.pop_first() {
                self.check_path(&file);
            } else {
                return;
            }
        }
    }

    fn check_pending_folder(&mut self, folder: &str) {
        if self.is_root(folder) {
            self.check_folder(folder, RECHECK_BOUNDS);
        } else if self.is_in_root(folder) && self.git_folders.should_enter(folder) {
            self.check_path(folder);
            self.check_folder(folder, NEW_FOLDER_BOUNDS);
        }
    }

    /// Judges the file at a path.
    pub(super) fn check_path(&mut self, path: &str) {
        if self.is_in_root(path)
            && let Ok((dir, _reopened)) = open_reopening(parent(path))
        {
            self.check_file(&dir, path);
        }
    }

    pub(super) fn is_in_root(&self, path: &str) -> bool {
        self.sandboxes.values().any(|sandbox| sandbox.roots_containing(path).next().is_some())
    }

    /// Updates the covers of a path after an event.
    fn update_masks(&mut self, path: &str, flags: ReadFlags) {
        for sandbox in self.sandboxes.values_mut() {
            sandbox.uncovered |= flags.intersects(NAME_EVENTS) && sandbox.has_mask_below(path);
            for baseline in sandbox.roots.values_mut() {
                let Some(entry) = baseline.entries.get_mut(path) else { continue };
                let now = FileStamp::at(CWD, path).ok();
                let is_same = now.as_ref().is_some_and(|now| entry.stamp.is_same_file(now));
                match entry.cover {
                    CoverState::None | CoverState::Doubtful => {}
                    CoverState::Covered if flags.contains(ReadFlags::MOVED_TO) => {
                        if let Some(stamp) = now.filter(|_| !is_same) {
                            (entry.stamp, entry.cover) = (stamp, CoverState::Replaced);
                            // Ignores the error: without this entry, a later process judges the file like any other
                            // file.
                            let _ = sandbox.journal.log_replaced(path, stamp);
                        }
                    }
                    // A program outside the sandbox wrote to the file.
                    CoverState::Covered if is_same => {}
                    CoverState::Covered | CoverState::Replaced => entry.cover = CoverState::Doubtful,
                }
            }
        }
    }

    /// Queues every root for checking, because events were dropped.
    fn check_everything(&mut self) {
        self.sandboxes.values_mut().for_each(|sandbox| sandbox.uncovered = true);
        let roots = self.sandboxes.values().flat_map(|sandbox| sandbox.roots.keys().cloned());
        self.pending = PendingPaths { folders: roots.collect(), files: BTreeSet::new() };
    }

    pub(super) fn is_root(&self, path: &str) -> bool {
        self.sandboxes.values().any(|sandbox| sandbox.roots.contains_key(path))
    }
}
