//! Directories that the server is allowed to access, and checks of requested paths against them.
//!
//! - A path is allowed if both its text and its real path are in an allowed directory.
//! - A [`ResolvedPath`] can be opened only inside its allowed directory, so a symlink created after the check has no
//!   effect.
//! - A name matches only the entry with exactly that name. The reference server also accepts other Unicode forms of a
//!   name. A path could then refer to a different file than the one that the trusted process judged.
//! - An empty list allows nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::ToolError;
use crate::paths;
use crate::resolved_path::ResolvedPath;

/// Immutable set of allowed directories. A change to the roots replaces the whole set.
#[derive(Debug, Default)]
pub(crate) struct AllowedDirectories {
    directories: Vec<PathBuf>,
    is_narrowed: AtomicBool,
}

impl AllowedDirectories {
    /// Creates a set of these directories and everything below them. A directory whose path contains a symlink must
    /// also be listed under its real path.
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        Self { directories, is_narrowed: AtomicBool::new(false) }
    }

    /// Iterates over the allowed directories in their original order.
    pub(crate) fn directories(&self) -> impl Iterator<Item = String> {
        self.directories.iter().map(|directory| directory.to_string_lossy().into_owned())
    }

    /// Marks this set as replaced by `next`. If `next` lacks a directory of this set, running calls are cancelled.
    pub(crate) fn replace_with(&self, next: &Self) {
        if !self.directories.iter().all(|directory| next.directories.contains(directory)) {
            self.is_narrowed.store(true, Ordering::Release);
        }
    }

    /// Returns `true` if a directory of this set is no longer allowed.
    pub(crate) fn is_narrowed(&self) -> bool {
        self.is_narrowed.load(Ordering::Acquire)
    }

    /// Checks a path that an agent sent. The last components of the path need not exist.
    pub(crate) fn resolve(&self, requested: &str) -> Result<ResolvedPath, ToolError> {
        let home = paths::home();
        let expanded = paths::expand_home(requested, home.as_deref());
        if cfg!(not(windows)) && paths::is_windows_style(&expanded.to_string_lossy()) {
            return Err(ToolError::WindowsStyle(requested.to_owned()));
        }
        let absolute = self.absolute(&expanded);
        if requested.contains('\0') || !self.contains(&absolute) {
            return Err(ToolError::OutsideAllowed { path: lossy(&absolute), allowed: self.joined_list() });
        }
        let real = match fs::canonicalize(&absolute) {
            Ok(real) => self.check_real_path(real)?,
            Err(error) if error.kind() == ErrorKind::NotFound => self.resolve_missing(&absolute)?,
            Err(error) => return Err(ToolError::io(error, "realpath", &absolute)),
        };
        self.open_resolved(real)
    }

    /// Makes a path absolute. Joins a relative path to the first allowed directory for which the result is in an
    /// allowed directory, or to the first allowed directory if there is none.
    fn absolute(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            return paths::normalize(path);
        }
        let mut candidates = self.directories.iter().map(|base| paths::normalize(&base.join(path)));
        let Some(first) = candidates.next() else {
            return paths::normalize(&Path::new("/").join(path));
        };
        if self.contains(&first) {
            return first;
        }
        candidates.find(|candidate| self.contains(candidate)).unwrap_or(first)
    }

    /// Resolves the existing part of a path whose last components are missing.
    fn resolve_missing(&self, absolute: &Path) -> Result<PathBuf, ToolError> {
        let no_parent = || ToolError::NoParent(lossy(absolute.parent().unwrap_or(absolute)));
        let base = self
            .directories
            .iter()
            .filter(|directory| absolute.starts_with(directory))
            .max_by_key(|directory| directory.as_os_str().len())
            .ok_or_else(|| ToolError::OutsideAllowed {
                path: lossy(absolute),
                allowed: self.joined_list(),
            })?;
        let mut current = fs::canonicalize(base).map_err(|_| no_parent())?;
        let below = absolute.strip_prefix(base).unwrap_or(Path::new(""));
        let mut components = below.components();
        while let Some(component) = components.next() {
            let name = component.as_os_str();
            let child = current.join(name);
            match fs::symlink_metadata(&child) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    // Nothing exists below this point, so there are no symlinks left to resolve.
                    current.push(name);
                    current.extend(components);
                    return Ok(current);
                }
                Err(error) => return Err(ToolError::io(error, "lstat", &child)),
            }
            let real = fs::canonicalize(&child).map_err(|error| {
                if error.kind() == ErrorKind::NotFound {
                    no_parent()
                } else {
                    ToolError::io(error, "realpath", &child)
                }
            })?;
            current = self.check_real_path(real)?;
        }
        Ok(current)
    }

    fn check_real_path(&self, real: PathBuf) -> Result<PathBuf, ToolError> {
        if self.contains(&real) {
            Ok(real)
        } else {
            Err(ToolError::LinkTargetOutside { path: lossy(&real), allowed: self.joined_list() })
        }
    }

    fn open_resolved(&self, real: PathBuf) -> Result<ResolvedPath, ToolError> {
        let base = self
            .directories
            .iter()
            .filter(|directory| real.starts_with(directory))
            .max_by_key(|directory| directory.as_os_str().len());
        match base {
            Some(base) => ResolvedPath::open(base, real),
            None => Err(ToolError::LinkTargetOutside { path: lossy(&real), allowed: self.joined_list() }),
        }
    }

    /// Returns `true` if a path is in an allowed directory. Compares whole components: `/a/bc` is not below `/a/b`.
    fn contains(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(directory))
    }

    fn joined_list(&self) -> String {
        self.directories().collect::<Vec<_>>().join(", ")
    }
}

fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_is_allowed_by_text_and_by_its_real_path() {
        let (_keep, root) = tree();
        let allowed = AllowedDirectories::new(vec![root.join("in")]);
        let inside = root.join("in/file").to_string_lossy().into_owned();
        for requested in [inside.as_str(), "file", "./a/../file", "good", "absolute"] {
            let open_resolved = allowed.resolve(requested).expect(requested);
            assert_eq!(open_resolved.path(), root.join("in/file"), "{requested}");
        }
        let list = root.join("in").display().to_string();
        for (requested, real) in [("../out/secret", "out/secret"), ("../in2", "in2")] {
            assert_eq!(
                allowed.resolve(requested).expect_err(requested).to_string(),
                format!(
                    "Access denied - path outside allowed directories: {} not in {list}",
                    root.join(real).display()
                )
            );
        }
        for (requested, real) in [("bad", "out/secret"), ("badder/secret", "out/secret")] {
            assert_eq!(
                allowed.resolve(requested).expect_err(requested).to_string(),
                format!(
                    "Access denied - symlink target outside allowed directories: {} not in {list}",
                    root.join(real).display()
                )
            );
        }
    }

    #[test]
    fn missing_paths_may_be_created_but_not_through_a_link_that_leads_out() {
        let (_keep, root) = tree();
        let allowed = AllowedDirectories::new(vec![root.join("in")]);
        let open_resolved = allowed.resolve("new/deep/file").expect("allowed");
        assert_eq!(open_resolved.path(), root.join("in/new/deep/file"));
        assert!(matches!(allowed.resolve("dangling"), Err(ToolError::NoParent(_))));
        assert!(matches!(allowed.resolve("badder/new"), Err(ToolError::LinkTargetOutside { .. })));
        assert!(matches!(allowed.resolve("loop"), Err(ToolError::Io(_))));
    }

    #[test]
    fn a_name_in_another_unicode_form_is_a_different_name() {
        let (_keep, root) = tree();
        for name in ["e\u{301}t\u{e9}", "Keys", "\u{e5}"] {
            fs::write(root.join("in").join(name), "").expect("file");
        }
        let allowed = AllowedDirectories::new(vec![root.join("in")]);
        for name in ["\u{e9}te\u{301}", "\u{e9}t\u{e9}", "\u{212a}eys", "\u{212b}", "a\u{30a}"] {
            let open_resolved = allowed.resolve(name).expect("allowed");
            assert_eq!(open_resolved.path(), root.join("in").join(name));
            assert!(open_resolved.metadata().is_err(), "{name} exists");
        }
        let open_resolved = allowed.resolve("e\u{301}t\u{e9}").expect("allowed");
        assert!(open_resolved.metadata().is_ok_and(|child| child.is_file()));
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let nothing = AllowedDirectories::default();
        for requested in ["/", "/etc/passwd", "x", "", "~", "\0"] {
            assert!(matches!(nothing.resolve(requested), Err(ToolError::OutsideAllowed { .. })));
        }
        assert!(matches!(nothing.resolve("C:\\x"), Err(ToolError::WindowsStyle(_))));
    }

    #[test]
    fn a_link_that_replaces_an_allowed_directory_is_not_followed() {
        let (_keep, root) = tree();
        let nested = root.join("in/nested");
        fs::create_dir(&nested).expect("directory");
        fs::write(nested.join("secret"), "harmless").expect("file");
        let allowed = AllowedDirectories::new(vec![root.join("in"), nested.clone()]);
        allowed.resolve("nested/secret").expect("a real directory");
        // Replaces the directory with a symlink after the check.
        let open_resolved = |allowed: &AllowedDirectories| allowed.open_resolved(nested.join("secret"));
        fs::remove_dir_all(&nested).expect("removed");
        symlink(root.join("out"), &nested).expect("link");
        assert!(open_resolved(&allowed).is_err());
    }

    #[test]
    fn only_a_narrower_set_counts_as_narrowed() {
        let one = AllowedDirectories::new(vec!["/a".into()]);
        let two = AllowedDirectories::new(vec!["/b".into(), "/a".into()]);
        one.replace_with(&two);
        two.replace_with(&one);
        assert_eq!((one.is_narrowed(), two.is_narrowed()), (false, true));
    }

    /// Creates a temporary tree with the directories `in`, `in2` and `out`. Tests allow only `in`.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let keep = tempfile::tempdir().expect("temporary directory");
        let root = keep.path().canonicalize().expect("real path");
        for directory in ["in", "in/a", "in2", "out"] {
            fs::create_dir(root.join(directory)).expect("directory");
        }
        fs::write(root.join("in/file"), "").expect("file");
        fs::write(root.join("out/secret"), "").expect("file");
        for (target, link) in [
            (PathBuf::from("file"), "good"),
            (root.join("in/file"), "absolute"),
            (PathBuf::from("../out/secret"), "bad"),
            (PathBuf::from("../out"), "badder"),
            (PathBuf::from("missing"), "dangling"),
            (PathBuf::from("loop"), "loop"),
        ] {
            symlink(target, root.join("in").join(link)).expect("link");
        }
        (keep, root)
    }
}
