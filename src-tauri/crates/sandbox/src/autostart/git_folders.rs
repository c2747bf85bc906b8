//! Folders in which git keeps a repository, recognized by name or content.

use std::collections::BTreeSet;

use super::{
    name_table::is_git_by_name,
    paths::{above, last},
};
use crate::place::is_at_or_below;

/// Name of a folder's entry, and `true` if the entry is a folder.
pub(super) type FolderName = (String, bool);

/// Names that make git recognize a folder as a repository.
const SIGNS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Paths of known repositories.
#[derive(Debug, Default)]
pub(super) struct GitFolders(BTreeSet<String>);

impl GitFolders {
    /// Returns whether git treats the folder as a repository, in which names such as `hooks` and `config` are
    /// significant.
    pub(super) fn holds(&self, path: &str) -> bool {
        is_git_by_name(path) || self.0.contains(path)
    }

    /// Adds a repository. Returns whether it is new.
    pub(super) fn insert(&mut self, path: String) -> bool {
        self.0.insert(path)
    }

    /// Records the folder at `path`, which contains `names`, if its own name or these names make it a repository. If
    /// it contains `commondir`, everything except `HEAD` may be in another folder.
    pub(super) fn note(&mut self, path: &str, names: &[FolderName]) {
        let has = |sign: &str| names.iter().any(|(name, _)| name == sign);
        let has_signs = || has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        if last(path).eq_ignore_ascii_case(".git") || has_signs() {
            self.0.insert(path.to_owned());
        }
    }

    /// Returns whether the appearance of this path may turn its folder into a repository.
    pub(super) fn is_completed_by(&self, path: &str) -> bool {
        SIGNS.contains(&last(path)) && !self.holds(above(path))
    }

    /// Returns whether a folder must be searched. Git's object, ref and log folders are skipped, unless they contain
    /// a known repository. If a folder is a repository only by its content, just the objects are skipped, because any
    /// folder can be made to look like a repository.
    pub(super) fn is_entered(&self, path: &str) -> bool {
        let (folder, name) = (above(path), last(path));
        let is_store = last(folder).eq_ignore_ascii_case(".git") && ["logs", "refs"].contains(&name)
            || is_object_folder(folder, name) && self.holds(above(folder));
        !is_store || self.0.iter().any(|dir| is_at_or_below(dir, path))
    }

    pub(super) fn retain(&mut self, is_needed: impl Fn(&str) -> bool) {
        self.0.retain(|path| is_needed(path));
    }
}

/// Returns whether a name is one of git's 256 object folders.
pub(super) fn is_object_folder(folder: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    last(folder) == "objects" && name.len() == 2 && name.bytes().all(is_digit)
}
