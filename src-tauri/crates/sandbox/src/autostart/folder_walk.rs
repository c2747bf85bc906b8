//! Going through a folder, nearest first, and no further than a bound.
//!
//! - INVARIANT: folders are opened below the root by descriptor, and no symlink is followed on the way.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    os::fd::OwnedFd,
    time::Instant,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx},
    io::Errno,
    process::getuid,
};

use super::{
    name_text::{raw, text},
    paths::{above, is_git, last},
    reopened::{ReopenedFolders, open_reopening},
};
use crate::place::is_at_or_below;

/// A walk under way.
#[derive(Debug)]
pub(super) struct FolderWalk {
    root: OwnedFd,
    base: String,
    waiting: VecDeque<String>,
    left: WalkBounds,
    until: Instant,
    /// The folders that it opens for itself.
    shut: Option<ReopenedFolders>,
    /// The reasons why not everything was looked at, the first few of them.
    pub(super) missed: Vec<String>,
}

/// The bounds of a walk. A folder takes about as long as thirty names.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkBounds {
    pub(super) names: usize,
    pub(super) folders: usize,
}

/// A name in a folder, and whether it is itself one.
pub(super) type FolderName = (String, bool);

/// The number of reasons that are kept.
const MOST_REASONS: usize = 4;

impl FolderWalk {
    /// Through the folder at `base`.
    pub(super) fn new(base: &str, most: WalkBounds, until: Instant) -> Result<Self, Errno> {
        Ok(Self::of(open_folder(base)?, base, most, until, None))
    }

    /// As [`FolderWalk::new`], and folders of one's own that are shut by their mode are opened while it lasts.
    pub(super) fn opening(base: &str, most: WalkBounds, until: Instant) -> Result<Self, Errno> {
        let (root, shut) = open_reopening(base)?;
        Ok(Self::of(root, base, most, until, Some(shut)))
    }

    fn of(
        root: OwnedFd,
        base: &str,
        left: WalkBounds,
        until: Instant,
        shut: Option<ReopenedFolders>,
    ) -> Self {
        let waiting = VecDeque::from([base.to_owned()]);
        Self { root, base: base.to_owned(), waiting, left, until, shut, missed: vec![] }
    }

    /// The next folder.
    pub(super) fn next(&mut self) -> Option<(String, OwnedFd)> {
        loop {
            let path = self.waiting.pop_front()?;
            if Instant::now() > self.until {
                self.waiting.clear();
                self.miss(format!("`{}` takes too long to be looked at", self.base));
                return None;
            }
            let below = path.strip_prefix(&self.base).unwrap_or_default().trim_start_matches('/');
            let flags =
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let below = if below.is_empty() { "." } else { below };
            let opened = match &mut self.shut {
                Some(shut) => shut.open(&self.root, below, ResolveFlags::BENEATH),
                None => openat2(&self.root, &*raw(below), flags, Mode::empty(), resolve),
            };
            match opened {
                Ok(dir) => return Some((path, dir)),
                Err(error) if is_out_of_reach(error) && !self.is_shut(below) => {}
                Err(error) => self.miss(format!("`{}` could not be looked into: {error}", shown(&path))),
            }
        }
    }

    /// The names in a folder. The last folder is read whole. The folders of git's objects do not count, which are 256 at most.
    pub(super) fn names(&mut self, path: &str, dir: &OwnedFd) -> Vec<FolderName> {
        let mut names = Vec::new();
        let read = Dir::read_from(dir).and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                let (name, kind) = (text(entry.file_name().to_bytes()), entry.file_type());
                if name != "." && name != ".." {
                    let is_dir = kind.is_dir() || kind == FileType::Unknown && is_folder(dir, &name);
                    names.push((name, is_dir));
                }
            }
            Ok(())
        });
        if let Err(error) = read {
            self.miss(format!("`{}` could not be looked into: {error}", shown(path)));
        }
        let counted = names.iter().filter(|(name, is_dir)| !is_dir || !is_object_folder(path, name)).count();
        self.left.names = self.left.names.saturating_sub(counted);
        names
    }

    /// Has a folder looked into later.
    pub(super) fn enter(&mut self, path: String) {
        if self.left.names == 0 || self.left.folders == 0 {
            return self.miss(format!("`{}` has too many names: only the nearest were looked at", self.base));
        }
        self.left.folders -= 1;
        self.waiting.push_back(path);
    }

    /// True for a folder of one's own, which whoever put something in it may have closed by its mode.
    fn is_shut(&self, below: &str) -> bool {
        let about =
            statx(&self.root, &*raw(below), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE | StatxFlags::UID);
        about.is_ok_and(|about| {
            FileType::from_raw_mode(about.stx_mode.into()).is_dir() && about.stx_uid == getuid().as_raw()
        })
    }

    fn miss(&mut self, reason: String) {
        if self.missed.len() < MOST_REASONS && !self.missed.contains(&reason) {
            self.missed.push(reason);
        }
    }
}

/// Opens a folder at a path in which no symlink is.
pub(super) fn open_folder(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    openat2(CWD, &*raw(path), flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// True if git takes a folder with these names for a repository, whatever its name. What is missing beside `HEAD` may
/// be in another folder, which `commondir` names.
pub(super) fn has_signs(names: &[FolderName]) -> bool {
    let has = |sign: &str| names.iter().any(|(name, _)| name == sign);
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// True if a folder is looked into: not where git stores what it keeps, unless a repository is known to be there. A folder
/// that is git's only by its content is looked into but for the objects, since anything can be made to look like it.
pub(super) fn is_entered(git_dirs: &BTreeSet<String>, path: &str) -> bool {
    let (folder, name) = (above(path), last(path));
    let is_store = last(folder).eq_ignore_ascii_case(".git") && ["logs", "refs"].contains(&name)
        || is_object_folder(folder, name) && is_git(git_dirs, above(folder));
    !is_store || git_dirs.iter().any(|dir| is_at_or_below(dir, path))
}

/// True if a name is one of the many folders by which git tells objects apart.
fn is_object_folder(folder: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    last(folder) == "objects" && name.len() == 2 && name.bytes().all(is_digit)
}

/// A path for people. One can be longer than any that a program takes, and is cut then.
pub(super) fn shown(path: &str) -> String {
    const MOST: usize = 1024;
    if path.len() <= MOST {
        return path.to_owned();
    }
    format!("{}...", path.get(..path.floor_char_boundary(MOST)).unwrap_or_default())
}

/// A limit of the kernel's that a person can raise, by its name.
pub(super) fn limited(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => io::Error::other(format!(
            "the limit `{limit}` is reached: raise it with `sudo sysctl {limit}=...`"
        )),
        other => other.into(),
    }
}

fn is_folder(dir: &OwnedFd, name: &str) -> bool {
    statx(dir, &*raw(name), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE)
        .is_ok_and(|about| FileType::from_raw_mode(about.stx_mode.into()).is_dir())
}

/// Gone, no folder any more, or perhaps another user's: the sandbox could not make anything there either.
fn is_out_of_reach(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
}
