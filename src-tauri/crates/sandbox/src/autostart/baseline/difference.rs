//! Compares a file with the baseline of its root.
//!
//! - Distinguishes files that are certainly new from files that the walk for the baseline may have missed.

use rustix::fs::CWD;

use super::{Baseline, Cover};
use crate::{
    autostart::{
        ChangeKind,
        file_stamp::FileStamp,
        paths::{above, last},
    },
    place::is_below,
};

/// Difference between a file and its baseline.
pub(in crate::autostart) struct BaselineDifference {
    pub(in crate::autostart) change: ChangeKind,
    /// Previous content, if the baseline kept it.
    pub(in crate::autostart) before: Option<Vec<u8>>,
    /// `true` if the file is certainly new or changed. `false` if the walk for the baseline may have missed it.
    pub(in crate::autostart) is_known: bool,
}

impl Baseline {
    /// Compares the file `now` at `path` with the baseline. Returns `None` if the sandbox has not changed it. `named`
    /// marks a file that is writable even if it is closed. `is_config` marks a Git configuration, which git rewrites
    /// completely when any line changes.
    pub(in crate::autostart) fn difference<'a>(
        &self,
        path: &str,
        now: &FileStamp,
        content: &impl Fn() -> Option<&'a [u8]>,
        named: bool,
        is_config: bool,
    ) -> Option<BaselineDifference> {
        let before = self.entries.get(path).and_then(|entry| entry.content.as_deref());
        let differs = |change, is_known| {
            Some(BaselineDifference { change, before: before.map(<[u8]>::to_vec), is_known })
        };
        if let Some(entry) = self.entries.get(path) {
            let same = match entry.cover {
                Cover::Covered => entry.stamp.is_same_file(now),
                Cover::Replaced | Cover::None => entry.stamp == *now,
                Cover::Doubtful => false,
            };
            let is_same = same && !(named && entry.stamp != *now);
            // The content of a file that replaced a closed one proves nothing, because another sandbox may have written
            // it.
            let is_open = entry.cover == Cover::None;
            let reads_the_same = || is_open && before.is_some() && content() == before;
            return if is_same || reads_the_same() { None } else { differs(ChangeKind::Changed, true) };
        }
        if !named && self.is_below_cover(path) || self.was_elsewhere(now) {
            return None;
        }
        if self.whole || self.came_with_its_folder(path) {
            differs(ChangeKind::New, true)
        } else if now.changed < self.since {
            None
        } else if is_config || !self.is_written_since(path, now) {
            differs(ChangeKind::Changed, false)
        } else {
            differs(ChangeKind::New, true)
        }
    }

    /// Returns whether a file or its name was written since the baseline. Changes to metadata only, such as a new
    /// mode or a hard link that a backup creates, do not count.
    fn is_written_since(&self, path: &str, now: &FileStamp) -> bool {
        now.written >= self.since
            || now.born.is_some_and(|born| born >= self.since)
            || FileStamp::of(CWD, above(path)).is_ok_and(|folder| folder.changed >= self.since)
    }

    /// Returns whether a path is inside a folder that was read-only in the sandbox (covered) and still exists.
    fn is_below_cover(&self, path: &str) -> bool {
        path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at)).any(|above| {
            let here = FileStamp::of(CWD, above);
            let at_path = self.entries.get(above);
            let moved = || here.as_ref().is_ok_and(|here| self.was_elsewhere(here));
            at_path.is_some_and(|entry| {
                entry.cover == Cover::Covered
                    && here.as_ref().is_ok_and(|here| entry.stamp.is_same_file(here))
            }) || at_path.is_none() && moved()
        })
    }

    /// Returns whether the file or folder existed at another path, and the sandbox could not or did not change it
    /// there.
    fn was_elsewhere(&self, now: &FileStamp) -> bool {
        let before = self.files.get(&now.identity()).and_then(|path| self.entries.get(path));
        before.is_some_and(|entry| match entry.cover {
            Cover::Covered => true,
            Cover::None | Cover::Replaced | Cover::Doubtful => entry.stamp == *now && !now.is_dir,
        })
    }

    /// Returns whether a folder above a path was created or moved since the baseline. Changes inside a folder do not
    /// count, because git constantly writes to its own folder; the folder of hooks is an exception.
    fn came_with_its_folder(&self, path: &str) -> bool {
        let hooks = above(path);
        if last(hooks) == "hooks" && FileStamp::of(CWD, hooks).is_ok_and(|stamp| stamp.changed >= self.since)
        {
            return true;
        }
        self.came(above(path))
    }

    /// Returns whether a listed folder, and therefore everything in it, is new.
    pub(in crate::autostart) fn is_new_folder(&self, folder: &str) -> bool {
        let below = format!("{folder}/");
        let known = self.entries.range(below.clone()..).next();
        !known.is_some_and(|(path, _)| path.starts_with(&below)) && (self.whole || self.came(folder))
    }

    /// Returns whether the folder, or a folder above it, was created at or moved to its path since the baseline.
    pub(in crate::autostart) fn came(&self, folder: &str) -> bool {
        let ends = std::iter::once(folder.len()).chain(folder.rmatch_indices('/').map(|(at, _)| at));
        let folders = ends.filter_map(|end| folder.get(..end));
        folders.take_while(|folder| is_below(folder, &self.root)).any(|folder| {
            let is_born = |stamp: FileStamp| stamp.born.is_some_and(|born| born >= self.since);
            self.moved.contains(folder) || FileStamp::of(CWD, folder).is_ok_and(is_born)
        })
    }
}
