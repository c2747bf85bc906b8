//! Bounded breadth-first folder walk.
//!
//! - INVARIANT: folders are opened relative to the root's descriptor, without following symlinks.

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
    reopened_folders::{ReopenedFolders, is_own_folder, open_folder, open_listed},
};

/// Breadth-first walk in progress.
#[derive(Debug)]
pub(super) struct FolderWalk {
    root: OwnedFd,
    base: String,
    waiting: VecDeque<String>,
    left: WalkBounds,
    until: Instant,
    /// Folders whose mode the walk changed in order to open them.
    reopened: Option<ReopenedFolders>,
    /// Reasons parts of the tree were skipped, at most [`MAX_REASONS`].
    pub(super) missed: Vec<String>,
}

/// Limits of a walk. Visiting a folder takes about as long as visiting 30 names.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkBounds {
    pub(super) names: usize,
    pub(super) folders: usize,
    pub(super) time: Duration,
}

/// Maximum number of reasons kept.
const MAX_REASONS: usize = 4;

impl FolderWalk {
    /// Starts a walk at `base`. If `reopens` is `true`, the walk makes the user's own inaccessible folders accessible
    /// by changing their mode, and restores the mode when it is dropped.
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

    /// Returns the next folder, or `None` at the end of the walk.
    pub(super) fn next(&mut self) -> Option<(String, OwnedFd)> {
        loop {
            let path = self.waiting.pop_front()?;
            if Instant::now() > self.until {
                self.waiting.clear();
                self.miss(format!("timed out searching `{}`", self.base));
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
                Err(error) => self.miss(format!("failed to list `{}`: {error}", shown(&path))),
            }
        }
    }

    /// Returns all names in a folder, and records the folder if it is a git repository. A folder is always read to the
    /// end, even beyond the limit. Git's object folders (at most 256) do not count towards the limit.
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
            self.miss(format!("failed to list `{}`: {error}", shown(path)));
        }
        let counted = names.iter().filter(|(name, is_dir)| !is_dir || !is_object_folder(path, name)).count();
        self.left.names = self.left.names.saturating_sub(counted);
        git.note(path, &names);
        names
    }

    /// Queues a folder, unless it is a git object store.
    pub(super) fn enter(&mut self, path: String, git: &GitFolders) {
        if !git.is_entered(&path) {
            return;
        }
        if self.left.names == 0 || self.left.folders == 0 {
            return self
                .miss(format!("`{}` has too many names, so only the nearest were checked", self.base));
        }
        self.left.folders -= 1;
        self.waiting.push_back(path);
    }

    fn miss(&mut self, reason: String) {
        if self.missed.len() < MAX_REASONS && !self.missed.contains(&reason) {
            self.missed.push(reason);
        }
    }
}

/// Formats a path for the user. Paths that are too long for any program are truncated.
pub(super) fn shown(path: &str) -> String {
    const MAX_COUNT: usize = 1024;
    if path.len() <= MAX_COUNT {
        return path.to_owned();
    }
    format!("{}...", path.get(..path.floor_char_boundary(MAX_COUNT)).unwrap_or_default())
}

/// Converts an error. If a kernel limit caused the error, the message names the limit to raise.
pub(super) fn limited(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => {
            io::Error::other(format!("limit `{limit}` reached; raise it with `sudo sysctl {limit}=...`"))
        }
        other => other.into(),
    }
}

/// Returns `true` if `name` in `dir` is a folder.
pub(super) fn is_folder(dir: &OwnedFd, name: &str) -> bool {
    FileStamp::of(dir, name).is_ok_and(|found| found.is_dir)
}

/// Returns `true` if the path no longer exists, is not a folder, or is an inaccessible folder of another user. The
/// sandbox cannot write to such a path either.
fn is_out_of_reach(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
}
