//! Going through a folder, nearest first, and no further than a bound.
//!
//! - INVARIANT: folders are opened below the root by descriptor, and no symlink is followed on the way.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, Dir, FileType, ResolveFlags},
    io::Errno,
};

use super::{
    file_stamp::FileStamp,
    git_folders::{FolderName, GitFolders, is_object_folder},
    name_text::text,
    reopened::{ReopenedFolders, is_own_folder, open_folder, open_listed},
};

/// A walk under way.
#[derive(Debug)]
pub(super) struct FolderWalk {
    root: OwnedFd,
    base: String,
    waiting: VecDeque<String>,
    left: WalkBounds,
    until: Instant,
    /// The folders that it opens for itself.
    reopened: Option<ReopenedFolders>,
    /// The reasons why not everything was looked at, the first few of them.
    pub(super) missed: Vec<String>,
}

/// The bounds of a walk. A folder takes about as long as thirty names.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkBounds {
    pub(super) names: usize,
    pub(super) folders: usize,
    pub(super) time: Duration,
}

/// The number of reasons that are kept.
const MOST_REASONS: usize = 4;

impl FolderWalk {
    /// Through the folder at `base`. If `reopens`, folders of one's own that are shut by their mode are opened while it lasts.
    pub(super) fn new(base: &str, bounds: WalkBounds, reopens: bool) -> Result<Self, Errno> {
        let mut reopened = reopens.then(ReopenedFolders::default);
        let root = match &mut reopened {
            Some(reopened) => reopened.open(CWD, base, ResolveFlags::empty())?,
            None => open_folder(base)?,
        };
        let waiting = VecDeque::from([base.to_owned()]);
        let until = Instant::now() + bounds.time;
        Ok(Self { root, base: base.to_owned(), waiting, left: bounds, until, reopened, missed: vec![] })
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
            let below = if below.is_empty() { "." } else { below };
            let opened = match &mut self.reopened {
                Some(reopened) => reopened.open(&self.root, below, ResolveFlags::BENEATH),
                None => open_listed(&self.root, below, ResolveFlags::BENEATH),
            };
            match opened {
                Ok(dir) => return Some((path, dir)),
                Err(error) if is_out_of_reach(error) && !is_own_folder(&self.root, below) => {}
                Err(error) => self.miss(format!("`{}` could not be looked into: {error}", shown(&path))),
            }
        }
    }

    /// The names in a folder, which is noted if it is a repository's. The last folder is read whole. The folders of git's objects
    /// do not count, which are 256 at most.
    pub(super) fn names(&mut self, path: &str, dir: &OwnedFd, git: &mut GitFolders) -> Vec<FolderName> {
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
        git.note(path, &names);
        names
    }

    /// Has a folder looked into later, unless git stores there what it keeps.
    pub(super) fn enter(&mut self, path: String, git: &GitFolders) {
        if !git.is_entered(&path) {
            return;
        }
        if self.left.names == 0 || self.left.folders == 0 {
            return self.miss(format!("`{}` has too many names: only the nearest were looked at", self.base));
        }
        self.left.folders -= 1;
        self.waiting.push_back(path);
    }

    fn miss(&mut self, reason: String) {
        if self.missed.len() < MOST_REASONS && !self.missed.contains(&reason) {
            self.missed.push(reason);
        }
    }
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

/// True if a name in a folder is a folder.
pub(super) fn is_folder(dir: &OwnedFd, name: &str) -> bool {
    FileStamp::of(dir, name).is_ok_and(|found| found.is_dir)
}

/// Gone, no folder any more, or perhaps another user's: the sandbox could not make anything there either.
fn is_out_of_reach(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
}
