//! Finds the differences from a checkpoint, and which of them a run made.

use crate::record::{After, Before, Copied, Left, NotCopied, Stamp, kind, permissions};
use crate::tree::{ListError, Tree};
use crate::{CheckpointError, MOST_ENTRIES, at};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Difference between a checkpoint and the current folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path relative to the folder.
    pub path: String,
    /// Kind of difference.
    pub kind: DifferenceKind,
    /// `true` unless the path is exactly as the run left it.
    pub is_later: bool,
    /// `true` for a repository's own state: `.git` and everything below it.
    pub is_in_git: bool,
    /// State of the path at the time of the comparison.
    pub(crate) now: Seen,
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

/// All differences.
#[derive(Debug)]
pub struct Changes {
    /// The differences, in the order of their paths.
    pub all: Vec<Change>,
    /// Paths that the checkpoint does not cover, so their differences are unknown.
    pub not_copied: Vec<NotCopied>,
    /// `false` if the end of the run is not recorded, so its changes cannot be distinguished from later ones.
    pub is_finished: bool,
}

/// State that a comparison found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Something { file_type: FileType, mode: u32, stamp: Stamp },
}

impl Seen {
    pub(crate) fn of(stat: Option<&Stat>) -> Self {
        stat.map_or(Self::Nothing, |stat| {
            // Other entries of a folder may change meanwhile.
            let stamp =
                if kind(stat) == FileType::Directory { Stamp::of_folder(stat) } else { Stamp::of(stat) };
            Self::Something { file_type: kind(stat), mode: permissions(stat), stamp }
        })
    }
}

/// Records the state of every path that differs.
pub(crate) fn left_by_run(tree: &Tree, before: &Before, copies: &Path) -> Result<After, CheckpointError> {
    let current = Current::list(tree, before)?;
    let mut left = BTreeMap::new();
    let mut not_copied = current.not_copied.clone();
    for path in current.paths(before) {
        let stat = current.entries.get(path);
        match difference(tree, before, (path, stat), copies)? {
            Some(Ok(found)) => _ = left.insert(path.to_owned(), found),
            Some(Err(error)) => not_copied.push(NotCopied::of(path.to_owned(), error)),
            None => {}
        }
    }
    Ok(After { left, not_copied })
}

/// Compares the current folder with a checkpoint.
pub(crate) fn compare(
    tree: &Tree,
    before: &Before,
    after: Option<&After>,
    copies: &Path,
) -> Result<Changes, CheckpointError> {
    let current = Current::list(tree, before)?;
    let mut not_copied = current.not_copied.clone();
    let unknown = after.map(|after| after.not_copied.as_slice()).unwrap_or_default();
    not_copied.extend(unknown.iter().filter(|one| !current.not_copied.contains(one)).cloned());
    let mut all = Vec::new();
    for path in current.paths(before).into_iter().filter(|path| !unknown.iter().any(|one| one.covers(path))) {
        let stat = current.entries.get(path);
        let found = match difference(tree, before, (path, stat), copies)? {
            Some(Ok(found)) => found,
            Some(Err(error)) => {
                not_copied.push(NotCopied::of(path.to_owned(), error));
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
            is_in_git: path.split('/').any(|name| name == ".git"),
            now: Seen::of(stat),
        });
    }
    Ok(Changes { all, not_copied, is_finished: after.is_some() })
}

/// Current content of the folder, without paths that the checkpoint does not cover.
struct Current {
    entries: BTreeMap<String, Stat>,
    not_copied: Vec<NotCopied>,
}

impl Current {
    fn list(tree: &Tree, before: &Before) -> Result<Self, CheckpointError> {
        let folder = &before.info.folder;
        let listing = tree.list(MOST_ENTRIES).map_err(|error| match error {
            ListError::TooMany => CheckpointError::TooMany(folder.clone()),
            ListError::Io(error) => at(folder)(error.into()),
        })?;
        let mut not_copied = before.not_copied.clone();
        not_copied.extend(listing.not_copied.into_iter().filter(|one| !before.not_copied.contains(one)));
        let is_covered = |path: &str| !not_copied.iter().any(|one| one.covers(path));
        let entries = listing.entries.into_iter().filter(|(path, _)| is_covered(path)).collect();
        Ok(Self { entries, not_copied })
    }

    /// Returns the paths that exist now or existed before.
    fn paths<'a>(&'a self, before: &'a Before) -> BTreeSet<&'a str> {
        let all = self.entries.keys().chain(before.entries.keys()).map(String::as_str);
        all.filter(|path| !self.not_copied.iter().any(|one| one.covers(path))).collect()
    }
}

/// Returns the current state of a path, unless it equals the checkpoint. The inner error is that of reading the path.
fn difference(
    tree: &Tree,
    before: &Before,
    (path, stat): (&str, Option<&Stat>),
    copies: &Path,
) -> Result<Option<Result<Left, Errno>>, CheckpointError> {
    let copied = before.entries.get(path);
    let found = match (stat, copied) {
        (Some(stat), Some(Copied::File { stamp, .. })) if Stamp::of(stat) == *stamp => return Ok(None),
        (None, _) => Ok(Left::Nothing),
        (Some(stat), _) => found(tree, path, stat),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => return Ok(Some(Err(error))),
    };
    let is_same = match (&found, copied) {
        (Left::Nothing, None) => true,
        (Left::Folder { mode }, Some(Copied::Folder { mode: was })) => mode == was,
        (Left::Link { target }, Some(Copied::Link { target: was })) => target == was,
        (Left::File { mode, sha256 }, Some(Copied::File { mode: was, copy, .. })) => {
            let copy = copies.join(copy.to_string());
            let hashed = File::open(&copy).and_then(hash);
            mode == was && *sha256 == hashed.map_err(at(copy))?
        }
        (Left::Nothing | Left::Folder { .. } | Left::File { .. } | Left::Link { .. } | Left::Other, _) => {
            false
        }
    };
    Ok((!is_same).then_some(Ok(found)))
}

/// Returns the current state of a path.
fn found(tree: &Tree, path: &str, stat: &Stat) -> Result<Left, Errno> {
    let mode = permissions(stat);
    match kind(stat) {
        FileType::Directory => Ok(Left::Folder { mode }),
        FileType::Symlink => tree.link(path).map(|target| Left::Link { target }),
        FileType::RegularFile => {
            let file = tree.read(path)?;
            let sha256 = hash(file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            Ok(Left::File { mode, sha256 })
        }
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Ok(Left::Other),
    }
}

/// Returns the hash of a file's content.
fn hash(mut file: File) -> io::Result<String> {
    let (mut hasher, mut piece) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => hasher.update(piece.get(..count).unwrap_or_default()),
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
