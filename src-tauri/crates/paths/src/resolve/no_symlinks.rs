//! Resolves paths without symlinks in a single system call.
//!
//! - For such a path, `openat2` reports whether it exists, does not exist, or continues below a file. None of these
//!   cases needs the walk.
//! - A magic link does not lead to the path in its text. Only the kernel knows whether a symlink is a magic link.
//! - For a path with a symlink, a path that is not canonical, or any other error, the result is `None` and the path
//!   is walked instead.

use super::unicode_twins::may_have_twin;
use super::{PathKind, Resolution};
use crate::CanonicalPath;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Resolves a path without symlinks. Returns `None` if the path must be walked instead.
pub(super) fn resolve(absolute: &str) -> Option<Resolution> {
    let path = CanonicalPath::assume_canonical(absolute).ok()?;
    let target = match open_path(absolute) {
        Ok(found) => target(&found)?,
        Err(error) => proves_missing(error, absolute).then_some(PathKind::Missing)?,
    };
    Some(Resolution { path, links: Vec::new(), target })
}

/// Returns `true` if `link` is or leads to a magic link, which leads to an open file regardless of its text. The kernel
/// can reject magic links alone, but it reports a symlink loop with the same error. If the result is ambiguous, every
/// symlink in `/proc` counts as a magic link.
pub(super) fn is_magic_link(link: &str) -> bool {
    let follow = |flags| openat2(CWD, link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), flags);
    match follow(ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::LOOP) => follow(ResolveFlags::empty()).map_or_else(|error| error != Errno::LOOP, |_| true),
        Err(Errno::NOSYS | Errno::PERM) => link.starts_with("/proc/"),
        Ok(_) | Err(_) => false,
    }
}

/// Opens a path with `O_PATH`, failing if it contains a symlink.
fn open_path(absolute: &str) -> Result<OwnedFd, Errno> {
    openat2(CWD, absolute, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Returns `true` if the error shows that the path does not exist and contains no symlink. A symlink would have caused
/// `ELOOP`.
///
/// With `ENOENT`, the name may exist in a different Unicode form. The walk checks for that. With `ENOTDIR`, nothing can
/// exist below the file.
fn proves_missing(error: Errno, absolute: &str) -> bool {
    error == Errno::NOTDIR || (error == Errno::NOENT && !may_have_twin(absolute))
}

fn target(found: &OwnedFd) -> Option<PathKind> {
    let found = fstat(found).ok()?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Some(PathKind::Folder),
        FileType::RegularFile => Some(PathKind::File { bytes: u64::try_from(found.st_size).ok()? }),
        FileType::Symlink => None,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Some(PathKind::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::Walk;
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// Creates a folder that contains every type of file and returns it with its path.
    fn ground() -> (TempDir, String) {
        let mut folders = std::iter::repeat_with(|| tempfile::tempdir().unwrap());
        let kept = folders.find(|folder| !may_have_twin(folder.path().to_str().unwrap())).unwrap();
        let base = kept.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("folder")).unwrap();
        std::fs::write(base.join("file"), "text").unwrap();
        std::fs::write(base.join("folder/file"), "").unwrap();
        std::fs::write(base.join("K"), "").unwrap();
        std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
        for (link, target) in [("link", "file"), ("way", "folder"), ("dangling", "none"), ("loop", "loop")] {
            symlink(target, base.join(link)).unwrap();
        }
        symlink("..", base.join("folder/link")).unwrap();
        (kept, base.to_str().unwrap().to_owned())
    }

    #[test]
    fn paths_without_symlinks_take_the_fast_path() {
        let (_kept, base) = ground();
        let existing = ["folder", "file", "socket", "folder/file", "K"];
        let missing = [
            "missing",
            "folder/missing",
            "missing/a/b/c",
            "file/x",
            "file/x/y",
            "socket/x",
            "file/K;",
            "K/x",
        ];
        let ours = existing.iter().chain(&missing).map(|name| format!("{base}/{name}"));
        for path in ours.chain(["/", "/dev/null", "/missing"].map(str::to_owned)) {
            let walked = Walk::new(&path).run(&path).unwrap();
            assert_eq!(resolve(&path), Some(walked), "{path}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_walk() {
        let (_kept, base) = ground();
        let linked = ["link", "link/x", "way", "way/file", "way/missing", "dangling", "dangling/x", "loop/x"];
        let spelled = ["folder/../folder", "missing/../folder", "folder/", "folder/./file"];
        let long = "n".repeat(256);
        let ours = linked.iter().chain(&spelled).copied().chain([long.as_str()]);
        let ours = ours.map(|name| format!("{base}/{name}"));
        for path in ours.chain(["/proc/self", "/proc/self/status", "/proc/self/none"].map(str::to_owned)) {
            assert_eq!(resolve(&path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn fast_path_and_walk_agree(all in prop::collection::vec(below(), 64)) {
            let (_kept, base) = ground();
            for path in all.iter().map(|below| format!("{base}/{below}")) {
                let Some(short) = resolve(&path) else { continue };
                prop_assert_eq!(short, Walk::new(&path).run(&path).unwrap());
            }
        }
    }

    fn below() -> impl Strategy<Value = String> {
        let names = ["folder", "file", "socket", "link", "way", "dangling", "loop", "missing", "..", "."];
        prop::collection::vec(prop::sample::select(names.to_vec()), 1..5).prop_map(|names| names.join("/"))
    }

    #[test]
    fn opened_descriptors_are_not_inherited() {
        let (_kept, base) = ground();
        for path in ["/", "/proc/version", &base, &format!("{base}/file")] {
            let found = open_path(path).unwrap();
            assert_eq!(rustix::io::fcntl_getfd(&found).unwrap(), rustix::io::FdFlags::CLOEXEC, "{path}");
        }
    }
}
