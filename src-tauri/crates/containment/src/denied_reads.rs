//! Paths that a server's entry makes unreadable.

use super::profile::with_link_targets;
use super::resolve::{Profile, expand_home, normalize};
use ironcurtain_config::SandboxSettings;
use ironcurtain_paths::CanonicalPath;
use std::path::Path;

/// Paths that a server's entry makes unreadable (`sandbox.filesystem.denyRead`), and the paths inside them that the
/// entry makes accessible again. The deepest path decides.
///
/// A sandbox hides the unreadable paths inside a folder that it mounts. This type is for the accesses that would mount
/// such a path itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeniedReads {
    denied: Vec<String>,
    accessible: Vec<String>,
}

impl DeniedReads {
    /// Creates the paths of an entry. Relative paths are relative to the session's folder `session_dir`. Symlinks are
    /// resolved once.
    #[must_use]
    pub fn new(settings: &SandboxSettings, session_dir: &Path, home: &CanonicalPath) -> Self {
        let Profile { deny_read, allow_read, allow_write, .. } =
            Profile::new(settings, session_dir, home.as_path());
        let resolved = |paths: Vec<String>| {
            let absolute = |path: String| normalize(&expand_home(&path, home.as_path()), session_dir);
            with_link_targets(paths.into_iter().map(absolute), home)
        };
        let accessible = allow_read.into_iter().chain(allow_write).collect();
        Self { denied: resolved(deny_read.unwrap_or_default()), accessible: resolved(accessible) }
    }

    /// Returns `true` if the entry makes a path unreadable.
    #[must_use]
    pub fn covers(&self, path: &CanonicalPath) -> bool {
        let deepest = |paths: &[String]| {
            let above = paths.iter().map(Path::new).filter(|above| path.as_path().starts_with(above));
            above.map(|above| above.components().count()).max()
        };
        deepest(&self.denied) > deepest(&self.accessible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn at(folder: &Path, name: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(folder.join(name).to_str().unwrap()).unwrap()
    }

    #[test]
    fn the_deepest_path_decides() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let person = CanonicalPath::assume_canonical(home.to_str().unwrap()).unwrap();
        std::fs::create_dir_all(home.join("session/own")).unwrap();
        std::fs::create_dir_all(home.join("real")).unwrap();
        symlink("real", home.join("link")).unwrap();
        let settings = r#"{ "filesystem": { "denyRead": ["~/docs", "~/docs/open/closed", "own", "~/link"], "allowRead": ["~/docs/open"] } }"#;
        let settings = serde_json::from_str(settings).unwrap();
        let denied = DeniedReads::new(&settings, &home.join("session"), &person);
        for path in ["docs", "docs/a.txt", "docs/open/closed/b.txt", "session/own/c", "link", "real/d.txt"] {
            assert!(denied.covers(&at(&home, path)), "{path}");
        }
        for path in ["docs2", "docs/open", "docs/open/e.txt", "session", "other"] {
            assert!(!denied.covers(&at(&home, path)), "{path}");
        }
        assert!(!denied.covers(&person));
        assert!(!DeniedReads::default().covers(&at(&home, "docs")));
    }
}
