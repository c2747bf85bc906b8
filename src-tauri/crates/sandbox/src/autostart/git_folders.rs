//! Folders in which git keeps a repository, recognized by name or content.

use std::collections::BTreeSet;

use super::{
    name_table::is_git_by_name,
    paths::{above, last},
};
use crate::place::is_at_or_below;

/// Name in a folder, and `true` if it is a folder itself.
pub(super) type FolderName = (String, bool);

/// Names that make git recognize a folder as a repository.
const SIGNS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Folders that are known to be repositories.
#[derive(Debug, Default)]
pub(super) struct GitFolders(BTreeSet<String>);

impl GitFolders {
    /// Returns whether the names that git uses in a repository are significant in a folder.
    pub(super) fn holds(&self, path: &str) -> bool {
        is_git_by_name(path) || self.0.contains(path)
    }

    /// Adds a repository. Returns whether it is new.
    pub(super) fn insert(&mut self, path: String) -> bool {
        self.0.insert(path)
    }

    /// Records a folder with these names if its name or its content makes it a repository. Everything except
    /// `HEAD` may be in another folder, to which `commondir` refers.
    pub(super) fn note(&mut self, path: &str, names: &[FolderName]) {
        let has = |sign: &str| names.iter().any(|(name, _)| name == sign);
        let has_signs = || has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        if last(path).eq_ignore_ascii_case(".git") || has_signs() {
            self.0.insert(path.to_owned());
        }
    }

    /// Returns whether creating this name may turn its folder into a repository.
    pub(super) fn is_completed_by(&self, path: &str) -> bool {
        SIGNS.contains(&last(path)) && !self.holds(above(path))
    }

    /// Returns whether a folder must be searched. Git's object stores need not be, unless they contain a known
    /// repository. If a folder is a repository only by its content, just the objects are skipped, because any folder
    /// can be made to look like a repository.
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
