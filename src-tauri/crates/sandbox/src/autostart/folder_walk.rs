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
    name_text::from_os_bytes,
    reopened_folders::{ReopenedFolders, is_own_folder, open_folder, open_listed},
};

/// Breadth-first walk in progress.
#[derive(Debug)]
pub(super) struct FolderWalk {
    root: OwnedFd,
    root_path: String,
    queue: VecDeque<String>,
    remaining: WalkBounds,
    deadline: Instant,
    /// Folders whose mode the walk changed in order to open them.
    reopened: Option<ReopenedFolders>,
    /// Reasons parts of the tree were skipped, at most [`MAX_REASONS`].
    pub(super) skipped: Vec<String>,
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
    /// Starts a walk at `root_path`. If `reopen` is `true`, the walk makes the user's own inaccessible folders
    /// accessible by changing their mode, and restores the mode when it is dropped.
    pub(super) fn new(root_path: &str, bounds: WalkBounds, reopen: bool) -> Result<Self, Errno> {
        let mut reopened = reopen.then(ReopenedFolders::default);
        let root = match &mut reopened {
            Some(reopened) => reopened.open(CWD, root_path, ResolveFlags::empty())?,
            None => open_folder(root_path)?,
        };
        let queue = VecDeque::from([root_path.to_owned()]);
        let deadline = Instant::now() + bounds.time;
        Ok(Self {
            root,
            root_path: root_path.to_owned(),
            queue,
            remaining: bounds,
            deadline,
            reopened,
            skipped: vec![],
        })
    }

    /// Returns the next folder, or `None` at the end of the walk.
    pub(super) fn next(&mut self) -> Option<(String, OwnedFd)> {
        loop {
            let path = self.queue.pop_front()?;
            if Instant::now() > self.deadline {
                self.queue.clear();
                self.record_skipped(format!("timed out searching `{}`", self.root_path));
                return None;
            }
            let below = path.strip_prefix(&self.root_path).unwrap_or_default().trim_start_matches('/');
            let below = if below.is_empty() { "." } else { below };
            let opened = match &mut self.reopened {
                Some(reopened) => reopened.open(&self.root, below, ResolveFlags::BENEATH),
                None => open_listed(&self.root, below, ResolveFlags::BENEATH),
            };
            match opened {
                Ok(dir) => return Some((path, dir)),
                Err(error) if is_inaccessible(error) && !is_own_folder(&self.root, below) => {}
                Err(error) => {
                    self.record_skipped(format!("failed to list `{}`: {error}", display_path(&path)))
                }
            }
        }
    }

    /// Returns all names in a folder and records the folder if it is a git repository. A folder is always read to the
    /// end, even beyond the limit. Git's object folders (at most 256) do not count towards the limit.
    pub(super) fn list_names(&mut self, path: &str, dir: &OwnedFd, git: &mut GitFolders) -> Vec<FolderName> {
        let mut names = Vec::new();
        let read = Dir::read_from(dir).and_then(|entries| {
            for entry in entries {
                let entry = entry?;
                let (name, kind) = (from_os_bytes(entry.file_name().to_bytes()), entry.file_type());
                if name != "." && name != ".." {
                    let is_dir = kind.is_dir() || kind == FileType::Unknown && is_folder(dir, &name);
                    names.push((name, is_dir));
                }
            }
            Ok(())
        });
        if let Err(error) = read {
            self.record_skipped(format!("failed to list `{}`: {error}", display_path(path)));
        }
        let counted = names.iter().filter(|(name, is_dir)| !is_dir || !is_object_folder(path, name)).count();
        self.remaining.names = self.remaining.names.saturating_sub(counted);
        git.record(path, &names);
        names
    }

    /// Queues a folder, unless it is a git object store.
    pub(super) fn enqueue(&mut self, path: String, git: &GitFolders) {
        if !git.should_enter(&path) {
            return;
        }
        if self.remaining.names == 0 || self.remaining.folders == 0 {
            return self.record_skipped(format!(
                "`{}` has too many names, so only the nearest were checked",
                self.root_path
            ));
        }
        self.remaining.folders -= 1;
        self.queue.push_back(path);
    }

    fn record_skipped(&mut self, reason: String) {
        if self.skipped.len() < MAX_REASONS && !self.skipped.contains(&reason) {
            self.skipped.push(reason);
        }
    }
}

/// Formats a path for the user. Paths that are too long for any program are truncated.
pub(super) fn display_path(path: &str) -> String {
    const MAX_COUNT: usize = 1024;
    if path.len() <= MAX_COUNT {
        return path.to_owned();
    }
    format!("{}...", path.get(..path.floor_char_boundary(MAX_COUNT)).unwrap_or_default())
}

/// Converts an error. If a kernel limit caused the error, the message names the limit to raise.
pub(super) fn explain_limit(error: Errno, limit: &str) -> io::Error {
    match error {
        Errno::MFILE | Errno::NOSPC => {
            io::Error::other(format!("limit `{limit}` reached; raise it with `sudo sysctl {limit}=...`"))
        }
        other => other.into(),
    }
}

/// Returns `true` if `name` in `dir` is a folder.
pub(super) fn is_folder(dir: &OwnedFd, name: &str) -> bool {
    FileStamp::at(dir, name).is_ok_and(|found| found.is_dir)
}

/// Returns `true` if the path no longer exists, is not a folder, or is an inaccessible folder of another user. The
/// sandbox cannot write to such a path either.
fn is_inaccessible(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
}
