//! Storage of checkpoints. Each checkpoint is a folder with the copied files and two records.

use crate::compare::{Changes, compare, differences_after_run};
use crate::copy_folder::copy_folder;
use crate::record::{After, Before, CheckpointInfo, NotCopied};
use crate::restore::{Restored, restore};
use crate::tree::Tree;
use crate::{Change, CheckpointError, MAX_CHECKPOINTS, io_error};
use ironcurtain_paths::{atomic_file, random_name};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use similar::TextDiff;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the record with the folder's state before the run.
const BEFORE_FILE: &str = "before.json";

/// Name of the record with the differences after the run.
const AFTER_FILE: &str = "after.json";

/// Name prefix of a checkpoint whose run has not started yet, or that is being removed.
const NEW_PREFIX: &str = "new-";

/// Maximum size of a file that is shown as a diff, in bytes.
const MAX_TEXT_LEN: u64 = 1 << 20;

/// Number of context lines in a diff.
const CONTEXT_LINES: usize = 3;

/// Folder that contains all checkpoints.
#[derive(Debug, Clone)]
pub struct Checkpoints(PathBuf);

/// An open checkpoint. Its lock prevents other processes from opening or removing it.
#[derive(Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    before: Before,
    _lock: File,
}

impl Checkpoints {
    /// Creates a handle to the checkpoints in a folder, which need not exist.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// Copies a folder.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the folder cannot be copied. No partial checkpoint is kept.
    pub fn create(&self, folder: &Path) -> Result<Checkpoint, CheckpointError> {
        let dir = self.0.join(new_name()?);
        let copies = dir.join("files");
        let lock = {
            // Prevents other processes from removing the new folder before it is locked.
            let _all = self.lock_all()?;
            DirBuilder::new().recursive(true).mode(0o700).create(&copies).map_err(io_error(&copies))?;
            try_lock(&dir)?.ok_or_else(|| CheckpointError::InUse(dir.display().to_string()))?
        };
        let copied = copy_folder(folder, &copies).and_then(|before| {
            write(&dir.join(BEFORE_FILE), &before)?;
            Ok(before)
        });
        match copied {
            Ok(before) => Ok(Checkpoint { dir, before, _lock: lock }),
            Err(problem) => {
                // Ignores this error: the first one is reported.
                let _ = std::fs::remove_dir_all(&dir);
                Err(problem)
            }
        }
    }

    /// Returns the id and description of each run's checkpoint, newest first.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<(String, CheckpointInfo)>, CheckpointError> {
        let mut all = Vec::new();
        for (name, info) in self.all()? {
            if !name.starts_with(NEW_PREFIX) {
                all.push((name, info));
            }
        }
        Ok(all)
    }

    /// Opens the checkpoint of a run.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the checkpoint does not exist, is damaged, or is in use.
    pub fn open(&self, id: &str) -> Result<Checkpoint, CheckpointError> {
        let unknown = || CheckpointError::Unknown(id.chars().take(100).collect());
        let is_name = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !is_name || id.starts_with(NEW_PREFIX) {
            return Err(unknown());
        }
        let dir = self.0.join(id);
        let lock = match try_lock(&dir) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(CheckpointError::InUse(id.to_owned())),
            Err(CheckpointError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(unknown());
            }
            Err(problem) => return Err(problem),
        };
        let before = read(&dir.join(BEFORE_FILE))?.ok_or_else(unknown)?;
        Ok(Checkpoint { dir, before, _lock: lock })
    }

    /// Returns all checkpoints, newest first. Damaged checkpoints come last.
    fn all(&self) -> Result<Vec<(String, CheckpointInfo)>, CheckpointError> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io_error(&self.0))?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io_error(&self.0))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let info = read::<CheckpointInfo>(&entry.path().join(BEFORE_FILE)).ok().flatten();
            all.push((name, info.unwrap_or(CheckpointInfo { folder: String::new(), taken_ms: 0 })));
        }
        all.sort_by_key(|(_, info)| std::cmp::Reverse(info.taken_ms));
        Ok(all)
    }

    /// Removes the oldest checkpoints, and those whose run never started because the process was killed.
    fn remove_old(&self) -> Result<(), CheckpointError> {
        let _all = self.lock_all()?;
        let (new, kept): (Vec<_>, Vec<_>) =
            self.all()?.into_iter().partition(|(name, _)| name.starts_with(NEW_PREFIX));
        for (name, _) in kept.into_iter().skip(MAX_CHECKPOINTS).chain(new) {
            let dir = self.0.join(name);
            // A locked checkpoint is in use.
            if let Some(_lock) = try_lock(&dir)? {
                remove(&dir)?;
            }
        }
        Ok(())
    }

    /// Locks the folder of checkpoints. Waits until no other process is creating or removing checkpoints.
    fn lock_all(&self) -> Result<File, CheckpointError> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(io_error(&self.0))?;
        let all = File::open(&self.0).map_err(io_error(&self.0))?;
        flock(&all, FlockOperation::LockExclusive).map_err(|error| io_error(&self.0)(error.into()))?;
        Ok(all)
    }
}

/// Locks a checkpoint. Returns `None` if another process has it open.
fn try_lock(dir: &Path) -> Result<Option<File>, CheckpointError> {
    let lock = File::open(dir).map_err(io_error(dir))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(io_error(dir)(error.into())),
    }
}

/// Removes a checkpoint. If the removal is interrupted, the next checkpoint completes it.
fn remove(dir: &Path) -> Result<(), CheckpointError> {
    let removed = dir.with_file_name(new_name()?);
    std::fs::rename(dir, &removed).map_err(io_error(dir))?;
    std::fs::remove_dir_all(&removed).map_err(io_error(removed))
}

/// Returns a random name for a checkpoint without a run.
fn new_name() -> Result<String, CheckpointError> {
    random_name().map(|name| format!("{NEW_PREFIX}{name}")).map_err(io_error(NEW_PREFIX))
}

impl Checkpoint {
    /// Returns the folder of the checkpoint, and the time at which the folder was copied.
    #[must_use]
    pub fn info(&self) -> &CheckpointInfo {
        &self.before.info
    }

    /// Returns the paths that were not copied.
    #[must_use]
    pub fn not_copied(&self) -> &[NotCopied] {
        &self.before.not_copied
    }

    /// Assigns the checkpoint to the run with this id, and removes the oldest checkpoints.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the checkpoint cannot be renamed.
    pub fn assign_to_run(&mut self, run: &str) -> Result<(), CheckpointError> {
        self.rename(run)?;
        if let Some(all) = self.dir.parent() {
            // If this fails, the next checkpoint removes the rest.
            let _ = Checkpoints(all.to_owned()).remove_old();
        }
        Ok(())
    }

    /// Keeps the checkpoint without a run, and returns its id. Keeps the other checkpoints too.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the checkpoint cannot be renamed.
    pub fn keep(&mut self) -> Result<String, CheckpointError> {
        let id = random_name().map_err(io_error(&self.dir))?;
        self.rename(&id)?;
        Ok(id)
    }

    fn rename(&mut self, id: &str) -> Result<(), CheckpointError> {
        let dir = self.dir.with_file_name(id);
        std::fs::rename(&self.dir, &dir).map_err(io_error(&dir))?;
        self.dir = dir;
        Ok(())
    }

    /// Records the differences at the end of the run.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if writing fails. The run's changes then cannot be distinguished from later ones.
    pub fn finish(&self) -> Result<(), CheckpointError> {
        write(
            &self.dir.join(AFTER_FILE),
            &differences_after_run(&self.tree()?, &self.before, &self.copies())?,
        )
    }

    /// Returns the current differences from the checkpoint.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the folder or the checkpoint cannot be read.
    pub fn changes(&self) -> Result<Changes, CheckpointError> {
        let after = read::<After>(&self.dir.join(AFTER_FILE))?;
        compare(&self.tree()?, &self.before, after.as_ref(), &self.copies())
    }

    /// Restores the given paths. Skips a path that has changed since the comparison.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if the folder cannot be opened. Errors at individual paths are in the result.
    pub fn restore(&self, changes: &[Change]) -> Result<Restored, CheckpointError> {
        Ok(restore(&self.tree()?, &self.before, changes, &self.copies()))
    }

    /// Returns the difference that restoring a file would undo, in unified diff format without the header. Returns
    /// `None` unless both versions are short UTF-8 files.
    #[must_use]
    pub fn diff(&self, change: &Change) -> Option<String> {
        let text = |file: File| {
            let mut text = String::new();
            let count = file.take(MAX_TEXT_LEN + 1).read_to_string(&mut text).ok()?;
            (u64::try_from(count).ok()? <= MAX_TEXT_LEN).then_some(text)
        };
        let before = match self.before.copy_of(&change.path) {
            Some(copy) => text(File::open(self.copies().join(copy.to_string())).ok()?)?,
            None => String::new(),
        };
        let now = match self.tree().ok()?.read(&change.path) {
            Ok(file) => text(file)?,
            Err(Errno::NOENT) => String::new(),
            Err(_) => return None,
        };
        let diff = TextDiff::from_lines(before, now).unified_diff().context_radius(CONTEXT_LINES).to_string();
        (!diff.is_empty()).then_some(diff)
    }

    /// Removes the checkpoint.
    ///
    /// # Errors
    /// Returns [`CheckpointError`] if a file cannot be removed.
    pub fn remove(self) -> Result<(), CheckpointError> {
        remove(&self.dir)
    }

    fn copies(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Opens the folder. Fails if it is not the folder that was copied.
    fn tree(&self) -> Result<Tree, CheckpointError> {
        let folder = &self.before.info.folder;
        let failed = |error: Errno| io_error(folder)(error.into());
        let tree = Tree::open(Path::new(folder)).map_err(failed)?;
        let (identity, file_system) = (tree.identity().map_err(failed)?, tree.file_system().map_err(failed)?);
        if !self.before.is_folder(identity, file_system) {
            return Err(CheckpointError::DifferentFolder(folder.clone()));
        }
        Ok(tree)
    }
}

fn write(path: &Path, record: &impl Serialize) -> Result<(), CheckpointError> {
    let text = serde_json::to_vec(record).map_err(|error| io_error(path)(error.into()))?;
    atomic_file::replace_bytes(path, &text).map_err(io_error(path))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CheckpointError> {
    match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => {
            let parsed = serde_json::from_slice(&read.map_err(io_error(path))?);
            parsed.map(Some).map_err(|source| CheckpointError::Damaged { path: path.to_owned(), source })
        }
    }
}
