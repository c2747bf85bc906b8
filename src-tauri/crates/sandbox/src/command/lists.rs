//! Combines the settings and the paths that no command may read into the four path lists of a view.
//!
//! - A path that is hidden by default becomes visible only if the settings name exactly that path. IronCurtain's own
//!   directories are never visible.

use std::{fs, path::PathBuf};

use ironcurtain_paths::{CanonicalPath, protected::secrets};
use ironcurtain_srt_settings::{ListKind, PathBase, PathEntry, PathEntryError, SrtSettingsFile, is_pattern};

use crate::{
    mount_plan::{LayoutError, canonicalize},
    nofollow::is_at_or_below,
};

/// Path lists of a view.
#[derive(Debug, Default)]
pub(super) struct PathLists {
    pub(super) deny_read: Vec<String>,
    pub(super) allow_read: Vec<String>,
    pub(super) allow_write: Vec<String>,
    pub(super) deny_write: Vec<String>,
    /// Notes for the user about entries that have no effect on this platform.
    pub(super) notes: Vec<String>,
}

/// Reason an entry of the settings is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    #[error("{key}: `{entry}`: {problem}")]
    Entry { key: &'static str, entry: String, problem: PathEntryError },
    #[error("{key}: `{path}` belongs to IronCurtain, and commands cannot access it")]
    OwnDirectory { key: &'static str, path: String },
    #[error(transparent)]
    Resolve(#[from] LayoutError),
}

impl PathLists {
    /// Creates the lists from the settings. `own` contains IronCurtain's directories.
    pub(super) fn from_settings(
        settings: &SrtSettingsFile,
        base: &PathBase,
        own: &[PathBuf],
    ) -> Result<Self, ListError> {
        let files = &settings.filesystem;
        let mut lists = Self::default();
        let mut read = |key, entries: &[PathEntry], list| lists.read(base, key, entries, list);
        let deny_read = read("filesystem.denyRead", &files.deny_read, ListKind::DenyRead)?;
        let allow_read = read("filesystem.allowRead", &files.allow_read, ListKind::AllowRead)?;
        let allow_write = read("filesystem.allowWrite", &files.allow_write, ListKind::AllowWrite)?;
        let deny_write = read("filesystem.denyWrite", &files.deny_write, ListKind::DenyWrite)?;
        let credentials: Vec<PathEntry> =
            settings.credentials.files.iter().map(|file| file.path.clone()).collect();
        let credentials = read("credentials.files", &credentials, ListKind::DenyRead)?;

        let own: Vec<String> =
            own.iter().filter_map(|dir| Some(dir.canonicalize().ok()?.to_str()?.to_owned())).collect();
        for (key, paths) in [("filesystem.allowRead", &allow_read), ("filesystem.allowWrite", &allow_write)] {
            if let Some(path) = paths.iter().find(|path| own.iter().any(|own| is_at_or_below(path, own))) {
                return Err(ListError::OwnDirectory { key, path: path.clone() });
            }
        }
        // At the same path, an allowed entry takes precedence over a denied entry, as in `srt`, and over a path that is
        // hidden by default.
        let contains_path = |paths: &[String], path: &str| -> Result<bool, LayoutError> {
            let found = canonicalize(path)?;
            Ok(paths.iter().any(|allowed| allowed == path || Some(allowed) == found.as_ref()))
        };
        let mut denied = credentials;
        denied.extend(own);
        for path in deny_read {
            if !contains_path(&allow_read, &path)? {
                denied.push(path);
            }
        }
        for path in always_hidden(&base.home) {
            if !contains_path(&allow_read, &path)? && !contains_path(&allow_write, &path)? {
                denied.push(path);
            }
        }
        denied.sort();
        denied.dedup();
        Ok(Self { deny_read: denied, allow_read, allow_write, deny_write, ..lists })
    }

    fn read(
        &mut self,
        base: &PathBase,
        key: &'static str,
        entries: &[PathEntry],
        list: ListKind,
    ) -> Result<Vec<String>, ListError> {
        let mut paths = Vec::new();
        for entry in entries {
            let problem = |problem| ListError::Entry { key, entry: entry.path.clone(), problem };
            let expanded = base.paths(entry, list).map_err(problem)?;
            if expanded.is_empty()
                && list == ListKind::AllowWrite
                && !entry.literal
                && is_pattern(&entry.path)
            {
                self.notes.push(format!(
                    "{key}: `{}` is a pattern, but writable paths cannot be patterns; list the directory \
                     instead",
                    entry.path
                ));
            }
            paths.extend(expanded);
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Returns `true` if a directory is visible. The deepest entry that contains the directory decides.
    pub(super) fn is_visible(&self, dir: &str) -> Result<bool, LayoutError> {
        let covers = |path: &String| is_at_or_below(dir, path).then_some(path.len());
        let allowed = self.allow_read.iter().chain(&self.allow_write).filter_map(covers).max();
        let mut denied = None;
        for path in &self.deny_read {
            denied = denied.max(canonicalize(path)?.as_ref().and_then(covers));
        }
        Ok(denied <= allowed)
    }
}

/// Returns the paths on this machine and in the home directory that no command may read. Excludes the kernel's file
/// systems, because every sandbox has its own instances.
fn always_hidden(home: &str) -> Vec<String> {
    let Ok(home) = CanonicalPath::assume_canonical(home) else { return vec![] };
    let paths = secrets(&home).into_iter().map(|path| path.as_str().to_owned());
    let is_kernel_path = |path: &String| ["/proc", "/dev", "/sys"].contains(&path.as_str());
    // Most of these paths do not exist, and hiding a missing path has no effect.
    paths.filter(|path| !is_kernel_path(path) && fs::symlink_metadata(path).is_ok()).collect()
}
