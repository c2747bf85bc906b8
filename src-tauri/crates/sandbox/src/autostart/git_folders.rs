//! Folders in which git keeps repositories, recognized by name or content.

use std::collections::BTreeSet;

use super::{
    name_table::is_git_by_name,
    paths::{above, last},
};
use crate::place::is_at_or_below;

/// A name in a folder, and whether it is a folder.
pub(super) type FolderName = (String, bool);

/// Names that make a folder a repository.
const SIGNS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Folders known to be repositories.
#[derive(Debug, Default)]
pub(super) struct GitFolders(BTreeSet<String>);

impl GitFolders {
    /// Returns true if git's own names count in a folder.
    pub(super) fn holds(&self, path: &str) -> bool {
        is_git_by_name(path) || self.0.contains(path)
    }

    /// Adds a repository folder, and returns whether it is new.
    pub(super) fn insert(&mut self, path: String) -> bool {
        self.0.insert(path)
    }

    /// Records a folder with these names if git considers it a repository, regardless of its name. Parts other than `HEAD` may be in
    /// another folder, which `commondir` names.
    pub(super) fn note(&mut self, path: &str, names: &[FolderName]) {
        let has = |sign: &str| names.iter().any(|(name, _)| name == sign);
        let has_signs = || has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        if last(path).eq_ignore_ascii_case(".git") || has_signs() {
            self.0.insert(path.to_owned());
        }
    }

    /// Returns true if creating this name may complete a repository in its folder, which was none before.
    pub(super) fn is_completed_by(&self, path: &str) -> bool {
        SIGNS.contains(&last(path)) && !self.holds(above(path))
    }

    /// Returns `true` if a folder is searched: not git's object stores, unless they contain a known
    /// repository. In a folder that is a repository only by its content, just the objects are
    /// skipped, because any folder can be made to resemble a repository.
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

/// Returns true if a name is one of git's 256 object folders.
pub(super) fn is_object_folder(folder: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    last(folder) == "objects" && name.len() == 2 && name.bytes().all(is_digit)
}
