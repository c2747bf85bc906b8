//! Compares a file with the baseline of its root.
//!
//! - Distinguishes files that are certainly new from files that the baseline walk may have missed.

use rustix::fs::CWD;

use super::{Baseline, CoverState};
use crate::{
    autostart::{
        ChangeKind,
        file_stamp::FileStamp,
        paths::{file_name, parent},
    },
    nofollow::is_below,
};

/// Difference between a file and the baseline.
pub(in crate::autostart) struct BaselineDifference {
    pub(in crate::autostart) change: ChangeKind,
    /// Previous content, or `None` if the baseline did not keep it.
    pub(in crate::autostart) before: Option<Vec<u8>>,
    /// `true` if the file is certainly new or changed, `false` if the baseline walk may have missed it.
    pub(in crate::autostart) is_certain: bool,
}

impl Baseline {
    /// Compares the file `now` at `path` with the baseline. Returns `None` if the sandbox did not change it.
    /// `is_approved` is `true` if the user approved writing to this protected file. `is_config` is `true` for a git
    /// configuration: git rewrites the whole file on any change.
    pub(in crate::autostart) fn difference<'a>(
        &self,
        path: &str,
        now: &FileStamp,
        content: &impl Fn() -> Option<&'a [u8]>,
        is_approved: bool,
        is_config: bool,
    ) -> Option<BaselineDifference> {
        let before = self.entries.get(path).and_then(|entry| entry.content.as_deref());
        let differs = |change, is_certain| {
            Some(BaselineDifference { change, before: before.map(<[u8]>::to_vec), is_certain })
        };
        if let Some(entry) = self.entries.get(path) {
            let same = match entry.cover {
                CoverState::Covered => entry.stamp.is_same_file(now),
                CoverState::Replaced | CoverState::None => entry.stamp == *now,
                CoverState::Doubtful => false,
            };
            let is_same = same && !(is_approved && entry.stamp != *now);
            // Identical content proves nothing if the file replaced a protected file, because another sandbox may have
            // written it.
            let is_open = entry.cover == CoverState::None;
            let has_same_content = || is_open && before.is_some() && content() == before;
            return if is_same || has_same_content() { None } else { differs(ChangeKind::Changed, true) };
        }
        if !is_approved && self.is_below_protected_folder(path) || self.was_moved_unchanged(now) {
            return None;
        }
        if self.is_complete || self.is_in_new_folder(path) {
            differs(ChangeKind::New, true)
        } else if now.changed < self.since {
            None
        } else if is_config || !self.is_written_since(path, now) {
            differs(ChangeKind::Changed, false)
        } else {
            differs(ChangeKind::New, true)
        }
    }

    /// Returns `true` if a file's content or its folder has changed since the baseline. Changes to the file's metadata,
    /// such as a new mode or a backup program's hard link, do not count.
    fn is_written_since(&self, path: &str, now: &FileStamp) -> bool {
        now.written >= self.since
            || now.born.is_some_and(|born| born >= self.since)
            || FileStamp::at(CWD, parent(path)).is_ok_and(|folder| folder.changed >= self.since)
    }

    /// Returns `true` if a path is inside a folder that was covered (read-only in the sandbox) and still exists.
    fn is_below_protected_folder(&self, path: &str) -> bool {
        path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at)).any(|above| {
            let here = FileStamp::at(CWD, above);
            let at_path = self.entries.get(above);
            let moved = || here.as_ref().is_ok_and(|here| self.was_moved_unchanged(here));
            at_path.is_some_and(|entry| {
                entry.cover == CoverState::Covered
                    && here.as_ref().is_ok_and(|here| entry.stamp.is_same_file(here))
            }) || at_path.is_none() && moved()
        })
    }

    /// Returns `true` if the file or folder was moved here from another path in the baseline, and the sandbox has not
    /// changed it.
    fn was_moved_unchanged(&self, now: &FileStamp) -> bool {
        let before = self.files.get(&now.identity()).and_then(|path| self.entries.get(path));
        before.is_some_and(|entry| match entry.cover {
            CoverState::Covered => true,
            CoverState::None | CoverState::Replaced | CoverState::Doubtful => {
                entry.stamp == *now && !now.is_dir
            }
        })
    }

    /// Returns `true` if a folder above a path was created or moved since the baseline. Changes inside the parent
    /// folder count only for `hooks`, because git constantly writes to its own folders.
    fn is_in_new_folder(&self, path: &str) -> bool {
        let hooks = parent(path);
        if file_name(hooks) == "hooks"
            && FileStamp::at(CWD, hooks).is_ok_and(|stamp| stamp.changed >= self.since)
        {
            return true;
        }
        self.is_new_or_moved(parent(path))
    }

    /// Returns `true` if a listed folder and everything in it are new.
    pub(in crate::autostart) fn is_new_folder(&self, folder: &str) -> bool {
        let below = format!("{folder}/");
        let known = self.entries.range(below.clone()..).next();
        !known.is_some_and(|(path, _)| path.starts_with(&below))
            && (self.is_complete || self.is_new_or_moved(folder))
    }

    /// Returns `true` if the folder, or a folder above it, was created or moved to its path since the baseline.
    pub(in crate::autostart) fn is_new_or_moved(&self, folder: &str) -> bool {
        let ends = std::iter::once(folder.len()).chain(folder.rmatch_indices('/').map(|(at, _)| at));
        let folders = ends.filter_map(|end| folder.get(..end));
        folders.take_while(|folder| is_below(folder, &self.root)).any(|folder| {
            let is_born = |stamp: FileStamp| stamp.born.is_some_and(|born| born >= self.since);
            self.moved_folders.contains(folder) || FileStamp::at(CWD, folder).is_ok_and(is_born)
        })
    }
}
