//! Parts of paths, by name alone.

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
