//! Finds the project that contains a path: the nearest folder with a repository.
//!
//! - Blocking. The result can become outdated at any time.

use ironcurtain_paths::CanonicalPath;

/// File names that mark the root folder of a repository.
const MARKS: [&str; 3] = [".git", ".jj", ".hg"];

/// Returns the project that contains all paths: the nearest repository root that is or contains each of them. Returns
/// `None` if a path is in no project or the paths are in different projects.
#[must_use]
pub fn project_around<'a>(mut paths: impl Iterator<Item = &'a CanonicalPath>) -> Option<CanonicalPath> {
    let first = nearest(paths.next()?)?;
    paths.all(|path| nearest(path).as_ref() == Some(&first)).then_some(first)
}

fn nearest(path: &CanonicalPath) -> Option<CanonicalPath> {
    let is_marked = |folder: &CanonicalPath| MARKS.iter().any(|mark| folder.as_path().join(mark).exists());
    let mut folder = Some(path.clone());
    while let Some(here) = folder {
        if is_marked(&here) {
            return Some(here);
        }
        folder = here.parent();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_nearest_marked_folder_around_all_paths() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| CanonicalPath::assume_canonical(base.join(name).to_str().unwrap()).unwrap();
        for (project, mark) in [("app", ".git"), ("app/vendor/lib", ".hg"), ("other", ".jj")] {
            std::fs::create_dir_all(base.join(project).join(mark)).unwrap();
        }
        // In a worktree, `.git` is a file.
        std::fs::create_dir(base.join("tree")).unwrap();
        std::fs::write(base.join("tree/.git"), "gitdir: /x").unwrap();
        let around = |names: &[&str]| {
            let paths: Vec<CanonicalPath> = names.iter().map(|name| at(name)).collect();
            project_around(paths.iter())
        };
        assert_eq!(around(&["app/src/new/main.rs"]), Some(at("app")));
        assert_eq!(around(&["app"]), Some(at("app")));
        assert_eq!(around(&["app/vendor/lib/a.c"]), Some(at("app/vendor/lib")));
        assert_eq!(around(&["tree/a"]), Some(at("tree")));
        assert_eq!(around(&["app/a", "app/src/b"]), Some(at("app")));
        assert_eq!(around(&["app/a", "other/b"]), None);
        assert_eq!(around(&["app/a", "app/vendor/lib/b"]), None);
        assert_eq!(around(&["loose/a"]), None);
        assert_eq!(around(&[]), None);
    }
}
