//! The difference between a file and what was there when its root became writable.
//!
//! - A file that nobody had come to then, and that may have been there as it is, is told from one that is certainly new.

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

/// The difference of a file to what was there.
pub(in crate::autostart) struct BaselineDifference {
    pub(in crate::autostart) change: ChangeKind,
    /// The content that was there, if it was kept.
    pub(in crate::autostart) before: Option<Vec<u8>>,
    /// It is certain that there is one, and what it is.
    pub(in crate::autostart) is_known: bool,
}

impl Baseline {
    /// The difference between `now`, at `path`, and what was there; none where the sandbox made none. `named` paths can be written whatever is closed around
    /// them; `is_config` says that it is a configuration of git's, which is written anew whenever a line of it changes.
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
            // Another file in the place of a closed one says nothing by its content: that may be of another sandbox's making.
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

    /// True if a file or its name was written since. That something has merely touched it, as a backup does with a hard link
    /// or a program with its mode, says less.
    fn is_written_since(&self, path: &str, now: &FileStamp) -> bool {
        now.written >= self.since
            || now.born.is_some_and(|born| born >= self.since)
            || FileStamp::of(CWD, above(path)).is_ok_and(|folder| folder.changed >= self.since)
    }

    /// True if a path lies in a folder that was closed and is still there.
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

    /// True if a file or folder came from another path, where it was closed or is known as it is.
    fn was_elsewhere(&self, now: &FileStamp) -> bool {
        let before = self.files.get(&now.identity()).and_then(|path| self.entries.get(path));
        before.is_some_and(|entry| match entry.cover {
            Cover::Covered => true,
            Cover::None | Cover::Replaced | Cover::Doubtful => entry.stamp == *now && !now.is_dir,
        })
    }

    /// True if a folder that a path is in was made since, or moved to where it is. That something in it has changed says
    /// nothing: git writes in its own all the time, but for the one with hooks.
    fn came_with_its_folder(&self, path: &str) -> bool {
        let hooks = above(path);
        if last(hooks) == "hooks" && FileStamp::of(CWD, hooks).is_ok_and(|stamp| stamp.changed >= self.since)
        {
            return true;
        }
        self.came(above(path))
    }

    /// Returns whether a folder of the list, or all that it has in it, came since.
    pub(in crate::autostart) fn is_new_folder(&self, folder: &str) -> bool {
        let below = format!("{folder}/");
        let known = self.entries.range(below.clone()..).next();
        !known.is_some_and(|(path, _)| path.starts_with(&below)) && (self.whole || self.came(folder))
    }

    /// True if a folder, or one around it, was made since or moved to where it is.
    pub(in crate::autostart) fn came(&self, folder: &str) -> bool {
        let ends = std::iter::once(folder.len()).chain(folder.rmatch_indices('/').map(|(at, _)| at));
        let folders = ends.filter_map(|end| folder.get(..end));
        folders.take_while(|folder| is_below(folder, &self.root)).any(|folder| {
            let is_born = |stamp: FileStamp| stamp.born.is_some_and(|born| born >= self.since);
            self.moved.contains(folder) || FileStamp::of(CWD, folder).is_ok_and(is_born)
        })
    }
}
