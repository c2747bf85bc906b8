//! Converts path entries in the settings to paths in the sandbox's view.
//!
//! - A deny entry with several interpretations applies to all of them. An allow entry applies only to interpretations
//!   without symlinks.

use std::{fs, path::Path};

use crate::pattern::{PathPatternError, PatternPurpose, expand, is_pattern};
use crate::settings::PathEntry;

/// List that contains a path entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    DenyRead,
    AllowRead,
    AllowWrite,
    DenyWrite,
}

/// Reason a path entry is not supported.
#[derive(Debug, thiserror::Error)]
pub enum PathEntryError {
    #[error(transparent)]
    Pattern(#[from] PathPatternError),
    #[error("it has a `..` that cannot be resolved; write the full path")]
    UnresolvedParent,
    #[error("`{0}` cannot be denied, because every sandbox has its own")]
    SandboxPrivate(&'static str),
    #[error("paths below `/sys` belong to the kernel")]
    KernelPath,
    #[error("`{0}` is not UTF-8")]
    NotUtf8(String),
    #[error("failed to list `/`: {0}")]
    ListRoot(std::io::Error),
}

/// Folders relative to which `~` and relative paths are resolved.
#[derive(Debug, Clone)]
pub struct PathBase {
    pub cwd: String,
    pub home: String,
}

impl PathBase {
    /// Returns the absolute, normalized paths that an entry refers to. The list is empty if the entry is a pattern
    /// without matches.
    pub fn paths(&self, entry: &PathEntry, list: ListKind) -> Result<Vec<String>, PathEntryError> {
        let (base, written) = self.split(&entry.path);
        let mut found = Vec::new();
        let pattern = if entry.literal { written } else { written.strip_suffix("/**").unwrap_or(written) };
        let text = format!("{base}/{pattern}");
        if entry.literal || !is_pattern(pattern) {
            found.push(normalize(&text)?);
        } else {
            let is_deny = matches!(list, ListKind::DenyRead | ListKind::DenyWrite);
            // An existing path can look like a pattern, such as `[draft]`. The entry then refers to that path too.
            if fs::symlink_metadata(&text).is_ok() && (is_deny || is_canonical(&text)) {
                found.push(normalize(&text)?);
            }
            // `allowWrite` accepts only literal paths. Patterns are ignored, as in `srt` on Linux.
            let matching = if list == ListKind::AllowWrite {
                vec![]
            } else {
                expand(base, pattern, if is_deny { PatternPurpose::Deny } else { PatternPurpose::Allow })?
            };
            // Allow entries do not follow symlinks, because another process may have created them.
            for path in matching.iter().filter(|path| is_deny || is_canonical(path)) {
                found.push(utf8_path(path)?);
            }
        }
        let mut paths = Vec::new();
        for path in found {
            if path == "/" { paths.extend(root_entries()?) } else { paths.push(path) }
        }
        paths.iter().try_for_each(|path| reject_kernel_paths(path, list))?;
        if list == ListKind::AllowWrite || list == ListKind::AllowRead {
            paths.retain(|path| !is_at_or_below(path, "/dev") && !is_at_or_below(path, "/proc"));
        }
        Ok(paths)
    }

    /// Splits a path into its starting folder and the rest.
    fn split<'a>(&'a self, path: &'a str) -> (&'a str, &'a str) {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (&self.home, rest),
            Some(_) | None if path.starts_with('/') => ("", path),
            Some(_) | None => (&self.cwd, path),
        }
    }
}

/// Rejects paths in the kernel's file systems. Every sandbox has its own, so denying a path of the host would have no
/// effect.
fn reject_kernel_paths(path: &str, list: ListKind) -> Result<(), PathEntryError> {
    let is_in = |folder: &&str| is_at_or_below(path, folder);
    match list {
        ListKind::AllowWrite if is_at_or_below(path, "/sys") => Err(PathEntryError::KernelPath),
        ListKind::AllowWrite | ListKind::AllowRead => Ok(()),
        ListKind::DenyRead | ListKind::DenyWrite => ["/dev", "/proc"]
            .into_iter()
            .find(is_in)
            .map_or(Ok(()), |folder| Err(PathEntryError::SandboxPrivate(folder))),
    }
}

/// Normalizes a path lexically or, if it contains `..`, on disk.
fn normalize(path: &str) -> Result<String, PathEntryError> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return utf8_path(&fs::canonicalize(path).map_err(|_| PathEntryError::UnresolvedParent)?);
    }
    Ok(format!("/{}", parts.join("/")))
}

/// Returns the paths that the entry `/` refers to: everything in the root directory except the kernel's file systems
/// and symlinks. The targets of the symlinks are listed themselves.
fn root_entries() -> Result<Vec<String>, PathEntryError> {
    let mut entries = Vec::new();
    for entry in fs::read_dir("/").map_err(PathEntryError::ListRoot)? {
        let entry = entry.map_err(PathEntryError::ListRoot)?;
        let link = entry.file_type().map_err(PathEntryError::ListRoot)?.is_symlink();
        let path = utf8_path(&entry.path())?;
        if !link && !matches!(path.as_str(), "/proc" | "/dev" | "/sys") {
            entries.push(path);
        }
    }
    entries.sort();
    Ok(entries)
}

/// Returns `true` if a normalized path is `folder` or below it.
fn is_at_or_below(path: &str, folder: &str) -> bool {
    Path::new(path).starts_with(folder)
}

fn is_canonical(path: impl AsRef<Path>) -> bool {
    fs::canonicalize(&path).is_ok_and(|real| real == path.as_ref())
}

fn utf8_path(path: &Path) -> Result<String, PathEntryError> {
    path.to_str().map(str::to_owned).ok_or_else(|| PathEntryError::NotUtf8(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(path: &str, list: ListKind) -> Result<Vec<String>, String> {
        let base = PathBase { cwd: "/nonexistent/w".into(), home: "/nonexistent/h".into() };
        base.paths(&PathEntry { path: path.into(), literal: false }, list).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_starts_at_its_base() {
        for (written, expected) in [
            (".", "/nonexistent/w"),
            ("./a//b/", "/nonexistent/w/a/b"),
            ("~", "/nonexistent/h"),
            ("~/.x", "/nonexistent/h/.x"),
            ("~x", "/nonexistent/w/~x"),
            ("/a/./b", "/a/b"),
            ("src/**", "/nonexistent/w/src"),
        ] {
            assert_eq!(paths(written, ListKind::AllowWrite), Ok(vec![expected.to_owned()]), "{written}");
        }
        let base = PathBase { cwd: "/nonexistent/w".into(), home: "/nonexistent/h".into() };
        let marked = PathEntry { path: "*.env".into(), literal: true };
        assert_eq!(base.paths(&marked, ListKind::DenyWrite).unwrap(), ["/nonexistent/w/*.env"]);
    }

    #[test]
    fn the_root_expands_to_its_entries() {
        let entries = paths("/", ListKind::DenyRead).unwrap();
        assert!(entries.contains(&"/usr".to_owned()) && entries.contains(&"/etc".to_owned()));
        assert!(!entries.contains(&"/proc".to_owned()) && !entries.contains(&"/dev".to_owned()));
        assert_eq!(paths("/**", ListKind::AllowWrite).unwrap(), entries);
    }

    #[test]
    fn entries_without_effect_are_refused() {
        assert_eq!(paths("*.log", ListKind::AllowWrite), Ok(vec![]));
        assert!(paths("/dev/shm", ListKind::DenyRead).unwrap_err().contains("`/dev` cannot be denied"));
        assert!(paths("/sys/fs", ListKind::AllowWrite).unwrap_err().contains("kernel"));
        assert!(paths("../x", ListKind::AllowWrite).unwrap_err().contains("`..` that cannot be resolved"));
        assert_eq!(paths("/dev/null", ListKind::AllowWrite), Ok(vec![]));
    }
}
