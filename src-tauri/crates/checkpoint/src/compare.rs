//! Compares a folder with its checkpoint and determines which differences the run made.

use crate::record::{
    After, Before, CopiedEntry, NotCopied, Stamp, StateAfterRun, Uncovered, kind, permissions,
};
use crate::tree::{ListError, Tree};
use crate::{CheckpointError, MAX_BYTES, MAX_COMPARED, io_error};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Difference between a checkpoint and the folder's current state at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path relative to the folder.
    pub path: String,
    /// Kind of difference.
    pub kind: DifferenceKind,
    /// `true` unless the path is known to be in the state in which the run left it.
    pub is_later: bool,
    /// `true` if the path is a repository's own folder, such as `.git`, or below it.
    pub is_in_repository: bool,
    /// State of the path when it was compared.
    pub(crate) now: PathState,
}

/// Kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DifferenceKind {
    /// The path did not exist in the checkpoint.
    Created,
    /// The content, target, permissions or file type differs.
    Changed,
    /// The path no longer exists.
    Removed,
}

/// Result of a comparison.
#[derive(Debug)]
pub struct Changes {
    /// Differences, sorted by path.
    pub all: Vec<Change>,
    /// Paths that the checkpoint does not cover. Changes to them are unknown.
    pub not_copied: Vec<NotCopied>,
    /// Number of Git objects that the run created and that are not in `all`, because later commits may need them.
    pub kept_objects: usize,
    /// `true` if the end of the run was recorded. Otherwise, the run's changes cannot be distinguished from later ones.
    pub is_finished: bool,
}

/// State that a comparison found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathState {
    Missing,
    Present { file_type: FileType, mode: u32, stamp: Stamp },
}

impl PathState {
    pub(crate) fn from_stat(stat: Option<&Stat>) -> Self {
        stat.map_or(Self::Missing, |stat| {
            // Other entries in a folder may change concurrently, which changes its times.
            let stamp = if kind(stat) == FileType::Directory {
                Stamp::from_folder_stat(stat)
            } else {
                Stamp::from_stat(stat)
            };
            Self::Present { file_type: kind(stat), mode: permissions(stat), stamp }
        })
    }

    /// Returns `true` if `other` can be this file after a rename. A rename changes only the inode change time.
    pub(crate) fn is_renamed_to(&self, other: &Self) -> bool {
        let without_time = |seen: &Self| match seen.clone() {
            Self::Missing => Self::Missing,
            Self::Present { file_type, mode, stamp } => {
                Self::Present { file_type, mode, stamp: stamp.without_change() }
            }
        };
        without_time(self) == without_time(other)
    }
}

/// Returns the state of every path that differs from the checkpoint.
pub(crate) fn differences_after_run(
    tree: &Tree,
    before: &Before,
    copies: &Path,
) -> Result<After, CheckpointError> {
    let current = Current::list(tree, before)?;
    let mut left = BTreeMap::new();
    let mut not_copied = current.not_copied.clone();
    let mut comparison = Comparison { tree, before, copies, remaining_bytes: MAX_BYTES };
    for path in current.paths(before) {
        match comparison.difference(path, current.entries.get(path))? {
            Some(Ok(found)) => _ = left.insert(path.to_owned(), found),
            Some(Err(error)) => not_copied.push(NotCopied::from_error(path.to_owned(), error)),
            None => {}
        }
    }
    Ok(After { left, not_copied })
}

/// Compares the folder with its checkpoint.
pub(crate) fn compare(
    tree: &Tree,
    before: &Before,
    after: Option<&After>,
    copies: &Path,
) -> Result<Changes, CheckpointError> {
    let current = Current::list(tree, before)?;
    let mut not_copied = current.not_copied.clone();
    let mut all = Vec::new();
    let mut comparison = Comparison { tree, before, copies, remaining_bytes: MAX_BYTES };
    // A path that could not be read when the run ended is not in `after`, so its changes count as later ones.
    for path in current.paths(before) {
        let stat = current.entries.get(path);
        let found = match comparison.difference(path, stat)? {
            Some(Ok(found)) => found,
            Some(Err(error)) => {
                not_copied.push(NotCopied::from_error(path.to_owned(), error));
                continue;
            }
            None => continue,
        };
        let kind = match (before.entries.contains_key(path), stat) {
            (false, _) => DifferenceKind::Created,
            (true, Some(_)) => DifferenceKind::Changed,
            (true, None) => DifferenceKind::Removed,
        };
        let left = after.and_then(|after| after.left.get(path));
        all.push(Change {
            path: path.to_owned(),
            kind,
            is_later: !left.is_some_and(|left| *left == found),
            is_in_repository: path.split('/').any(|name| REPOSITORIES.contains(&name)),
            now: PathState::from_stat(stat),
        });
    }
    let kept_objects = keep_needed_objects(before, &mut all);
    Ok(Changes { all, not_copied, kept_objects, is_finished: after.is_some() })
}

/// Folders in which version control programs keep a repository.
const REPOSITORIES: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// Removes the Git objects that the run created from the changes, unless the run created the whole repository and nothing
/// in it has changed since. Later commits may need these objects, and objects that nothing needs are harmless. Returns the
/// number of removed changes.
fn keep_needed_objects(before: &Before, all: &mut Vec<Change>) -> usize {
    let later = all.iter().filter(|change| change.is_later);
    let changed: BTreeSet<String> =
        later.filter_map(|change| repository(&change.path)).map(|(folder, _)| folder.to_owned()).collect();
    let count = all.len();
    all.retain(|change| match repository(&change.path) {
        Some((folder, rest)) if change.kind == DifferenceKind::Created && is_object(rest) => {
            !before.entries.contains_key(folder) && !changed.contains(folder)
        }
        Some(_) | None => true,
    });
    count - all.len()
}

/// Splits a path into the folder of the outermost repository that contains it, such as `.git` or a bare repository, and the
/// rest. Returns `None` if the path is not in a repository.
fn repository(path: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for name in path.split('/') {
        end += name.len();
        if name.ends_with(".git") || REPOSITORIES.contains(&name) {
            return Some((path.get(..end)?, path.get(end..)?.trim_start_matches('/')));
        }
        end += 1;
    }
    None
}

/// Returns `true` if a path in a repository is in an object store, including those of submodules. A ref can have the same
/// name.
fn is_object(rest: &str) -> bool {
    rest.split('/').find(|name| ["objects", "refs", "logs"].contains(name)) == Some("objects")
}

/// Current entries in the folder.
struct Current {
    entries: BTreeMap<String, Stat>,
    not_copied: Vec<NotCopied>,
}

impl Current {
    fn list(tree: &Tree, before: &Before) -> Result<Self, CheckpointError> {
        let folder = &before.info.folder;
        let listing = tree.list(MAX_COMPARED).map_err(|error| match error {
            ListError::TooMany => CheckpointError::TooManyNow(folder.clone()),
            ListError::Io(error) => io_error(folder)(error.into()),
        })?;
        let mut not_copied = before.not_copied.clone();
        not_copied.extend(not_in(&listing.not_copied, &before.not_copied));
        Ok(Self { entries: listing.entries.into_iter().collect(), not_copied })
    }

    /// Returns the paths that exist now or are in the checkpoint. Without the content of a folder that cannot be read now,
    /// but with the folder itself, whose permissions can be restored.
    fn paths<'a>(&'a self, before: &'a Before) -> BTreeSet<&'a str> {
        let all = self.entries.keys().chain(before.entries.keys()).map(String::as_str);
        let uncovered = Uncovered::new(&self.not_copied);
        let is_copied_folder = |path: &str| {
            matches!(before.entries.get(path), Some(CopiedEntry::Folder { .. }))
                && self.entries.get(path).is_some_and(|stat| kind(stat) == FileType::Directory)
        };
        all.filter(|path| !uncovered.covers(path) || is_copied_folder(path)).collect()
    }
}

/// Returns the elements of `all` that are not in `others`.
fn not_in(all: &[NotCopied], others: &[NotCopied]) -> impl Iterator<Item = NotCopied> {
    let others: BTreeSet<&NotCopied> = others.iter().collect();
    all.iter().filter(move |one| !others.contains(one)).cloned()
}

/// State for comparing individual paths.
struct Comparison<'a> {
    tree: &'a Tree,
    before: &'a Before,
    copies: &'a Path,
    /// Number of bytes that may still be read from files that are new or have a different size.
    remaining_bytes: u64,
}

impl Comparison<'_> {
    /// Returns the current state of a path, or `None` if it equals the checkpoint. The inner error is an error from
    /// reading the path.
    fn difference(
        &mut self,
        path: &str,
        stat: Option<&Stat>,
    ) -> Result<Option<Result<StateAfterRun, Errno>>, CheckpointError> {
        let copied = self.before.entries.get(path);
        let copy = match (stat, copied) {
            (Some(stat), Some(CopiedEntry::File { stamp, .. })) if Stamp::from_stat(stat) == *stamp => {
                return Ok(None);
            }
            (Some(stat), Some(CopiedEntry::File { copy, .. })) => self.copy_of_size(*copy, size(stat))?,
            (Some(_) | None, _) => None,
        };
        let found = match stat {
            None => StateAfterRun::Nothing,
            Some(stat) => match self.current_state(path, stat, copy.is_some()) {
                Ok(found) => found,
                // It can be restored without being read.
                Err(_) if copied.is_some() => {
                    StateAfterRun::Unread { mode: permissions(stat), stamp: Stamp::from_stat(stat) }
                }
                Err(error) => return Ok(Some(Err(error))),
            },
        };
        let is_same = match (&found, copied) {
            (StateAfterRun::Nothing, None) => true,
            (StateAfterRun::Folder { mode }, Some(CopiedEntry::Folder { mode: before_run })) => {
                mode == before_run
            }
            (StateAfterRun::Link { target }, Some(CopiedEntry::Link { target: before_run })) => {
                target == before_run
            }
            (StateAfterRun::File { mode, sha256 }, Some(CopiedEntry::File { mode: before_run, .. })) => {
                match copy {
                    Some((path, file)) => {
                        mode == before_run && *sha256 == hash(file).map_err(io_error(path))?
                    }
                    None => false,
                }
            }
            (
                StateAfterRun::Nothing
                | StateAfterRun::Folder { .. }
                | StateAfterRun::File { .. }
                | StateAfterRun::Unread { .. }
                | StateAfterRun::Link { .. }
                | StateAfterRun::Other,
                _,
            ) => false,
        };
        Ok((!is_same).then_some(Ok(found)))
    }

    /// Opens a file's copy if it has this size. Returns `None` if the sizes differ.
    fn copy_of_size(&self, copy: usize, size: u64) -> Result<Option<(PathBuf, File)>, CheckpointError> {
        let path = self.copies.join(copy.to_string());
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(io_error(&path))?;
        Ok((length == size).then_some((path, file)))
    }

    /// Returns the current state of a path.
    fn current_state(
        &mut self,
        path: &str,
        stat: &Stat,
        has_size_of_copy: bool,
    ) -> Result<StateAfterRun, Errno> {
        let mode = permissions(stat);
        match kind(stat) {
            FileType::Directory => Ok(StateAfterRun::Folder { mode }),
            FileType::Symlink => self.tree.read_link(path).map(|target| StateAfterRun::Link { target }),
            FileType::RegularFile => {
                let file = self.tree.read(path)?;
                if !has_size_of_copy {
                    match self.remaining_bytes.checked_sub(size(stat)) {
                        Some(left) => self.remaining_bytes = left,
                        None => return Ok(StateAfterRun::Unread { mode, stamp: Stamp::from_stat(stat) }),
                    }
                }
                // The file may grow concurrently.
                let hashed = hash(file.take(size(stat)));
                let sha256 = hashed.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
                Ok(StateAfterRun::File { mode, sha256 })
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(StateAfterRun::Other),
        }
    }
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Returns the SHA-256 hash of a file's content in hexadecimal.
fn hash(mut file: impl Read) -> io::Result<String> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => hasher.update(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
