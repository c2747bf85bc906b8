//! Path operations that do not access the disk.
//!
//! - `allowed_directories` resolves symlinks.

use std::path::{Component, Path, PathBuf};

/// Resolves `.` and `..` lexically. The parent of the root is the root.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                normal.push(component);
            }
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
        }
    }
    normal
}

/// Replaces the tilde in `~` and `~/x` with the home directory, if it is known.
pub(crate) fn expand_home(path: &str, home: Option<&Path>) -> PathBuf {
    let (Some(rest), Some(home)) = (path.strip_prefix('~'), home) else {
        return PathBuf::from(path);
    };
    if rest.is_empty() {
        home.to_path_buf()
    } else if let Some(below) = rest.strip_prefix('/') {
        home.join(below.trim_start_matches('/'))
    } else {
        PathBuf::from(path)
    }
}

/// Returns the absolute path of the user's home directory, if it is known.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// Returns `true` if a path starts with a Windows drive.
pub(crate) fn is_windows_style(path: &str) -> bool {
    let mut characters = path.chars();
    characters.next().is_some_and(|drive| drive.is_ascii_alphabetic())
        && characters.next() == Some(':')
        && matches!(characters.next(), None | Some('/' | '\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_by_text() {
        for (given, normal) in
            [("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/../../b", "/b"), ("/a//b/", "/a/b"), ("/", "/")]
        {
            assert_eq!(normalize(Path::new(given)), Path::new(normal), "{given}");
        }
    }

    #[test]
    fn only_the_users_own_tilde_is_expanded() {
        let home = Some(Path::new("/home/ann"));
        assert_eq!(expand_home("~", home), Path::new("/home/ann"));
        assert_eq!(expand_home("~/x", home), Path::new("/home/ann/x"));
        assert_eq!(expand_home("~//etc", home), Path::new("/home/ann/etc"));
        assert_eq!(expand_home("~bob/x", home), Path::new("~bob/x"));
        assert_eq!(expand_home("a~", home), Path::new("a~"));
        assert_eq!(expand_home("~/x", None), Path::new("~/x"));
    }

    #[test]
    fn drives_are_recognized() {
        assert!(is_windows_style("C:\\x") && is_windows_style("c:/x") && is_windows_style("C:"));
        assert!(!is_windows_style("C:x") && !is_windows_style("/C:/x") && !is_windows_style(""));
    }
}
