//! Lexical path operations.

/// Joins a folder and a name.
pub(super) fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// Returns the last component of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the parent folder of a path.
pub(super) fn above(path: &str) -> &str {
    path.rsplit_once('/').map(|(above, _)| above).filter(|above| !above.is_empty()).unwrap_or("/")
}
