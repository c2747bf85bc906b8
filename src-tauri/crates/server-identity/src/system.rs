//! Finds paths that only root can change: every folder, symlink and file along them belongs to root, and no other user
//! can write to it.

use rustix::process::geteuid;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symlinks to follow.
const MAX_LINKS: usize = 40;

/// Folders for installed software. If the user is root, only files in these folders count as part of the operating
/// system.
const SOFTWARE: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/snap"];

/// Folders that belong to the operating system, and the user who owns them.
#[derive(Debug, Clone)]
pub(super) struct System {
    owner: u32,
    below: Vec<PathBuf>,
}

impl System {
    /// Returns this machine's operating system folders.
    pub(super) fn of_machine() -> Self {
        let below = if geteuid().is_root() { SOFTWARE.map(PathBuf::from).to_vec() } else { vec!["/".into()] };
        Self { owner: 0, below }
    }

    /// Creates an instance for tests, with `folder` as the operating system and this user as root.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Self {
        Self { owner: geteuid().as_raw(), below: vec![folder.to_path_buf()] }
    }

    /// Follows symlinks from `path` to the first path that only root can change. Returns `None` if the program is not
    /// part of the operating system.
    pub(super) fn path(&self, path: &Path) -> Option<PathBuf> {
        let mut at = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            let folder = at.parent()?.canonicalize().ok()?;
            let named = folder.join(at.file_name()?);
            if self.owns(&named) {
                return Some(named);
            }
            at = folder.join(std::fs::read_link(&named).ok()?);
        }
        None
    }

    /// Returns `true` if only root can change the file at an absolute path.
    fn owns(&self, path: &Path) -> bool {
        let mut todo: VecDeque<OsString> = names(path);
        let (mut at, mut links) = (PathBuf::from("/"), 0);
        if !self.is_root_only(&at) {
            return false;
        }
        while let Some(name) = todo.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(name);
            if !self.is_root_only(&next) {
                return false;
            }
            if let Ok(target) = std::fs::read_link(&next) {
                links += 1;
                if links > MAX_LINKS {
                    return false;
                }
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                names(&target).into_iter().rev().for_each(|name| todo.push_front(name));
                continue;
            }
            at = next;
        }
        self.below.iter().any(|below| at.starts_with(below)) && at.is_file()
    }

    fn is_root_only(&self, path: &Path) -> bool {
        const OTHERS_WRITE: u32 = 0o022;
        if !self.below.iter().any(|below| path.starts_with(below)) {
            return self.below.iter().any(|below| below.starts_with(path));
        }
        let Ok(found) = path.symlink_metadata() else { return false };
        found.uid() == self.owner && (found.is_symlink() || found.mode() & OTHERS_WRITE == 0)
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_file, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_system_path_requires_root_to_own_every_folder_link_and_file() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["sys/bin", "sys/lib", "user"] {
            create_dir_all(base.join(folder)).unwrap();
            set_permissions(base.join(folder), PermissionsExt::from_mode(0o755)).unwrap();
        }
        set_permissions(base.join("sys"), PermissionsExt::from_mode(0o755)).unwrap();
        let system = System::at(&base.join("sys"));
        for file in ["sys/lib/python3.12", "user/python"] {
            write(base.join(file), "").unwrap();
            set_permissions(base.join(file), PermissionsExt::from_mode(0o755)).unwrap();
        }
        symlink("../lib/python3.12", base.join("sys/bin/python3")).unwrap();
        symlink(base.join("sys/bin/python3"), base.join("user/link")).unwrap();
        symlink(base.join("user/python"), base.join("sys/bin/out")).unwrap();
        let path = |below: &str| system.path(&base.join(below));
        let python = Some(base.join("sys/bin/python3"));
        assert_eq!((path("sys/bin/python3"), path("user/link")), (python.clone(), python.clone()));
        // Simulates an update that points the symlink to another file.
        write(base.join("sys/lib/python3.13"), "newer").unwrap();
        set_permissions(base.join("sys/lib/python3.13"), PermissionsExt::from_mode(0o755)).unwrap();
        remove_file(base.join("sys/bin/python3")).unwrap();
        symlink("../lib/python3.13", base.join("sys/bin/python3")).unwrap();
        assert_eq!((path("sys/bin/python3"), path("user/link")), (python.clone(), python));
        assert_eq!((path("sys/bin/out"), path("user/python"), path("sys/bin/none")), (None, None, None));
        set_permissions(base.join("sys/lib"), PermissionsExt::from_mode(0o775)).unwrap();
        assert_eq!(path("sys/bin/python3"), None, "a group writes the folder");
    }
}
