//! Parts of paths, and what they mean by name alone.

use std::collections::BTreeSet;

use super::name_table::is_git_by_name;

/// True if git's own names count in a folder.
pub(super) fn is_git(git_dirs: &BTreeSet<String>, path: &str) -> bool {
    is_git_by_name(path) || git_dirs.contains(path)
}

/// The path of a name in a folder.
pub(super) fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// The last name of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The folder in which a path is.
pub(super) fn above(path: &str) -> &str {
    path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty()).unwrap_or("/")
}
