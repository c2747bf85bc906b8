//! Processes inotify events.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, inotify::ReadFlags};

use super::{
    Watcher,
    folder_check::{AGAIN, APPEARED},
};
use crate::{
    autostart::{
        baseline::Cover,
        event_queue::{EventBatch, NameEvent},
        file_stamp::FileStamp,
        paths::above,
        reopened_folders::open_reopening,
    },
    place::is_at_or_below,
};

/// Maximum number of consecutive reads. It suffices for all events queued before the first read.
const MAX_READS: usize = 8;
/// Maximum number of pending paths. If there are more, every root is checked instead.
const MAX_PENDING: usize = 20_000;
/// Maximum time spent on pending paths per call to [`work`](Watcher::work).
const MAX_WORK: Duration = Duration::from_millis(100);

/// Events that create or remove a name.
const NAMES: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);
const CAME: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO);
const WENT: ReadFlags = ReadFlags::DELETE.union(ReadFlags::MOVED_FROM);

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
            let EventBatch { happened, lost, more } = self.queue.read();
            happened.into_iter().for_each(|happened| self.note(happened));
            if lost || self.pending.folders.len() + self.pending.files.len() > MAX_PENDING {
                self.check_everything();
            }
            if !more {
                return;
            }
        }
    }

    fn note(&mut self, NameEvent { path, what }: NameEvent) {
        self.note_covers(&path, what);
        if what.contains(ReadFlags::ISDIR) {
            if what.intersects(WENT) {
                self.queue.forget(&path);
                self.pending.folders.remove(&path);
            }
            if what.contains(ReadFlags::MOVED_TO) {
                let baselines = self.sandboxes.values_mut().flat_map(|sandbox| sandbox.roots.iter_mut());
                let around = baselines.filter(|(root, _)| is_at_or_below(&path, root));
                around.for_each(|(_, baseline)| baseline.moved(&path));
            }
            if !what.intersects(CAME) {
                return;
            }
        }
        if self.git_folders.is_completed_by(&path) {
            self.pending.folders.insert(above(&path).to_owned());
        }
        let pending = &mut self.pending;
        if what.contains(ReadFlags::ISDIR) { &mut pending.folders } else { &mut pending.files }.insert(path);
    }

    /// Checks pending paths for at most [`MAX_WORK`].
    pub(super) fn work(&mut self) {
        let until = Instant::now() + MAX_WORK;
        while Instant::now() < until {
            if let Some(folder) = self.pending.folders.pop_first() {
                self.look_at(&folder);
                self.pending.forget_below(&folder);
            } else if let Some(file) = self.pending.files.pop_first() {
                self.consider_at(&file);
            } else {
                return;
            }
        }
    }

    fn look_at(&mut self, folder: &str) {
        if self.is_root(folder) {
            self.look(folder, AGAIN);
        } else if self.is_in_root(folder) && self.git_folders.is_entered(folder) {
            self.consider_at(folder);
            self.look(folder, APPEARED);
        }
    }

    /// Judges the file at a path.
    pub(super) fn consider_at(&mut self, path: &str) {
        if self.is_in_root(path)
            && let Ok((dir, _shut)) = open_reopening(above(path))
        {
            self.consider(&dir, path);
        }
    }

    pub(super) fn is_in_root(&self, path: &str) -> bool {
        self.sandboxes.values().any(|sandbox| sandbox.around(path).next().is_some())
    }

    /// Updates the covers of a path after an event.
    fn note_covers(&mut self, path: &str, what: ReadFlags) {
        for sandbox in self.sandboxes.values_mut() {
            sandbox.uncovered |= what.intersects(NAMES) && sandbox.has_cover_below(path);
            for baseline in sandbox.roots.values_mut() {
                let Some(entry) = baseline.entries.get_mut(path) else { continue };
                let now = FileStamp::of(CWD, path).ok();
                let is_same = now.as_ref().is_some_and(|now| entry.stamp.is_same_file(now));
                match entry.cover {
                    Cover::None | Cover::Doubtful => {}
                    Cover::Covered if what.contains(ReadFlags::MOVED_TO) => {
                        if let Some(stamp) = now.filter(|_| !is_same) {
                            (entry.stamp, entry.cover) = (stamp, Cover::Replaced);
                            // Ignores the error: without this entry, a later process judges the file like any other
                            // file.
                            let _ = sandbox.journal.replaced(path, stamp);
                        }
                    }
                    // A program outside the sandbox wrote to the file.
                    Cover::Covered if is_same => {}
                    Cover::Covered | Cover::Replaced => entry.cover = Cover::Doubtful,
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
