//! The folders in which git keeps repositories: by their name, and by what is in them.

use std::collections::BTreeSet;

use super::{
    name_table::is_git_by_name,
    paths::{above, last},
};
use crate::place::is_at_or_below;

/// A name in a folder, and whether it is itself one.
pub(super) type FolderName = (String, bool);

/// The names by which a folder becomes a repository.
const SIGNS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// The folders that are known for repositories.
#[derive(Debug, Default)]
pub(super) struct GitFolders(BTreeSet<String>);

impl GitFolders {
    /// True if git's own names count in a folder.
    pub(super) fn holds(&self, path: &str) -> bool {
        is_git_by_name(path) || self.0.contains(path)
    }

    /// Has git's own names count in a folder; whether they did not before.
    pub(super) fn insert(&mut self, path: String) -> bool {
        self.0.insert(path)
    }

    /// Takes note of a folder with these names, if git takes that for a repository, whatever its name. What is missing beside
    /// `HEAD` may be in another folder, which `commondir` names.
    pub(super) fn note(&mut self, path: &str, names: &[FolderName]) {
        let has = |sign: &str| names.iter().any(|(name, _)| name == sign);
        let has_signs = || has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        if last(path).eq_ignore_ascii_case(".git") || has_signs() {
            self.0.insert(path.to_owned());
        }
    }

    /// True if a name may make a repository of its folder, which was none.
    pub(super) fn is_completed_by(&self, path: &str) -> bool {
        SIGNS.contains(&last(path)) && !self.holds(above(path))
    }

    /// True if a folder is looked into: not where git stores what it keeps, unless a repository is known to be there. A folder
    /// that is git's only by its content is looked into but for the objects, since anything can be made to look like it.
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

/// True if a name is one of the many folders by which git tells objects apart.
pub(super) fn is_object_folder(folder: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    last(folder) == "objects" && name.len() == 2 && name.bytes().all(is_digit)
}
