//! Acting upon what has happened to names.

use std::collections::BTreeSet;

use rustix::fs::{CWD, inotify::ReadFlags};

use super::{Watcher, looking::Bounds};
use crate::{
    autostart::{
        baseline::{Cover, Stamp, above, is_git, last},
        queue::Happened,
        shut::open_shut,
        walk::is_entered,
    },
    place::is_at_or_below,
};

/// A name came, or went.
const NAMES: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);
const CAME: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO);
const WENT: ReadFlags = ReadFlags::DELETE.union(ReadFlags::MOVED_FROM);

impl Watcher {
    /// Drains the queue and acts.
    pub(super) fn react(&mut self) {
        match self.queue.read() {
            Some(happened) => self.act(happened),
            None => self.look_again(),
        }
    }

    fn act(&mut self, happened: Vec<Happened>) {
        let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
        for Happened { path, what } in happened {
            self.note_covers(&path, what);
            if !what.contains(ReadFlags::ISDIR) {
                if self.completes_repository(&path) {
                    folders.insert(above(&path).to_owned());
                }
                files.insert(path);
                continue;
            }
            if what.intersects(WENT) {
                self.queue.forget(&path);
                folders.remove(&path);
            }
            if what.contains(ReadFlags::MOVED_TO) {
                let baselines = self.sandboxes.values_mut().flat_map(|sandbox| sandbox.roots.iter_mut());
                let around = baselines.filter(|(root, _)| is_at_or_below(&path, root));
                around.for_each(|(_, baseline)| baseline.moved(&path));
            }
            if what.intersects(CAME) {
                if self.completes_repository(&path) {
                    folders.insert(above(&path).to_owned());
                }
                folders.insert(path);
            }
        }
        let mut looked_at: Option<String> = None;
        for folder in folders {
            // Those below one that was looked at were, too.
            if looked_at.as_ref().is_some_and(|above| is_at_or_below(&folder, above)) {
                continue;
            }
            if self.is_in_root(&folder) && is_entered(&self.git_dirs, &folder) {
                self.consider_at(&folder);
                self.look(&folder, Bounds::appeared());
            }
            looked_at = Some(folder);
        }
        files.iter().for_each(|path| self.consider_at(path));
    }

    /// Whether a name is one of those by which a folder becomes a repository.
    fn completes_repository(&self, path: &str) -> bool {
        ["HEAD", "objects", "refs", "commondir"].contains(&last(path)) && !is_git(&self.git_dirs, above(path))
    }

    /// Judges one path.
    fn consider_at(&mut self, path: &str) {
        if self.is_in_root(path)
            && let Ok((dir, _shut)) = open_shut(above(path))
        {
            self.consider(&dir, path);
        }
    }

    pub(super) fn is_in_root(&self, path: &str) -> bool {
        self.sandboxes.values().any(|sandbox| sandbox.around(path).next().is_some())
    }

    /// Keeps account of what happened to the names of what is covered.
    fn note_covers(&mut self, path: &str, what: ReadFlags) {
        for sandbox in self.sandboxes.values_mut() {
            sandbox.uncovered |= what.intersects(NAMES) && sandbox.has_cover_below(path);
            for baseline in sandbox.roots.values_mut() {
                let Some(entry) = baseline.entries.get_mut(path) else { continue };
                let now = Stamp::of(CWD, path).ok();
                let is_same = now.as_ref().is_some_and(|now| entry.stamp.is_same_file(now));
                match entry.cover {
                    Cover::None | Cover::Doubtful => {}
                    Cover::Covered if what.contains(ReadFlags::MOVED_TO) => {
                        if let Some(stamp) = now.filter(|_| !is_same) {
                            (entry.stamp, entry.cover) = (stamp, Cover::Replaced);
                            // Where it is not noted, the next to look judges the file.
                            let _ = sandbox.journal.replaced(path, stamp);
                        }
                    }
                    // Written from outside, through the name that is closed inside.
                    Cover::Covered if is_same => {}
                    Cover::Covered | Cover::Replaced => entry.cover = Cover::Doubtful,
                }
            }
        }
    }

    /// After something was not told: everything is looked at.
    fn look_again(&mut self) {
        let roots: BTreeSet<String> =
            self.sandboxes.values().flat_map(|sandbox| sandbox.roots.keys().cloned()).collect();
        self.sandboxes.values_mut().for_each(|sandbox| sandbox.uncovered = true);
        for root in roots {
            self.look(&root, Bounds::again());
        }
    }
}
