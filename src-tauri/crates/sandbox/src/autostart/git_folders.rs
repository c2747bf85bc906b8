//! Git folders (`.git` or a bare repository), recognized by name or content.

use std::collections::BTreeSet;

use super::{
    name_table::is_git_by_name,
    paths::{file_name, parent},
};
use crate::nofollow::is_at_or_below;

/// Entry name, and `true` if the entry is a folder.
pub(super) type FolderName = (String, bool);

/// Entry names by which git recognizes a repository.
const MARKERS: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// Paths of known git folders.
#[derive(Debug, Default)]
pub(super) struct GitFolders(BTreeSet<String>);

impl GitFolders {
    /// Returns `true` if git treats the folder as a repository and therefore reads `hooks` and `config` in it.
    pub(super) fn contains(&self, path: &str) -> bool {
        is_git_by_name(path) || self.0.contains(path)
    }

    /// Adds a git folder. Returns `true` if it is new.
    pub(super) fn insert(&mut self, path: String) -> bool {
        self.0.insert(path)
    }

    /// Records the folder at `path` if its own name or its entries `names` make it a git folder. If a folder contains
    /// `commondir`, everything except `HEAD` can be elsewhere.
    pub(super) fn record(&mut self, path: &str, names: &[FolderName]) {
        let has = |marker: &str| names.iter().any(|(name, _)| name == marker);
        let has_markers = || has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        if file_name(path).eq_ignore_ascii_case(".git") || has_markers() {
            self.0.insert(path.to_owned());
        }
    }

    /// Returns `true` if creating this path can turn its parent into a git folder.
    pub(super) fn is_completed_by(&self, path: &str) -> bool {
        MARKERS.contains(&file_name(path)) && !self.contains(parent(path))
    }

    /// Returns `true` if a folder must be searched. Git's object, ref and log folders are skipped unless they contain
    /// a known repository. In a folder recognized only by its content, only the objects are skipped, because a sandbox
    /// can make any folder look like a repository.
    pub(super) fn should_enter(&self, path: &str) -> bool {
        let (folder, name) = (parent(path), file_name(path));
        let is_store = file_name(folder).eq_ignore_ascii_case(".git") && ["logs", "refs"].contains(&name)
            || is_object_folder(folder, name) && self.contains(parent(folder));
        !is_store || self.0.iter().any(|dir| is_at_or_below(dir, path))
    }

    pub(super) fn retain(&mut self, is_needed: impl Fn(&str) -> bool) {
        self.0.retain(|path| is_needed(path));
    }
}

/// Returns `true` if a name is one of git's 256 object folders.
pub(super) fn is_object_folder(folder: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    file_name(folder) == "objects" && name.len() == 2 && name.bytes().all(is_digit)
}
