//! The short way: asks the kernel whether an existing path has no symlink in it, in one call.
//!
//! - `None` when it has, when it does not exist, when its spelling is not canonical, and when the kernel cannot tell:
//!   then the walk finds out.

use super::{Resolution, Target};
use crate::CanonicalPath;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use std::os::fd::OwnedFd;

/// Where the path leads and what is there.
pub(super) fn resolve(absolute: &str) -> Option<Resolution> {
    let (path, found) = open(absolute)?;
    let found = fstat(&found).ok()?;
    let target = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Target::Folder,
        FileType::RegularFile => Target::File { bytes: u64::try_from(found.st_size).ok()? },
        FileType::Symlink => return None,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Target::Special,
    };
    Some(Resolution { path, links: Vec::new(), target })
}

/// Where the path leads.
pub(super) fn locate(absolute: &str) -> Option<CanonicalPath> {
    open(absolute).map(|(path, _)| path)
}

/// Opens what the path names, which fails when a component of it is a symlink, the last one included.
fn open(absolute: &str) -> Option<(CanonicalPath, OwnedFd)> {
    let path = CanonicalPath::assume_canonical(absolute).ok()?;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(CWD, absolute, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
    Some((path, found))
}

#[cfg(test)]
mod tests {
    use super::super::walk::Walk;
    use super::*;

    #[test]
    fn the_short_way_and_the_walk_agree() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| base.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for path in ["/".to_owned(), "/dev/null".to_owned(), at("folder"), at("file"), at("socket")] {
            let walked = Walk::new(&path).run(&path).unwrap();
            assert_eq!(locate(&path).as_ref(), Some(&walked.path));
            assert_eq!(resolve(&path).unwrap(), walked);
        }
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("folder", at("way")).unwrap();
        std::fs::write(at("folder/file"), "").unwrap();
        let ours =
            [at("link"), at("way/file"), at("missing"), at("file/x"), at("folder/../file"), at("folder/")];
        for path in ours.iter().map(String::as_str).chain(["/proc/self", "/proc/self/status"]) {
            assert_eq!(locate(path), None, "{path}");
            assert_eq!(resolve(path), None, "{path}");
        }
    }
}
