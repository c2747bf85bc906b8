//! Digests of program files, and metadata that reveals later changes.
//!
//! - Digest and metadata come from the same open file, even if the path has since been changed to lead to another file.
//! - No program can set `ctime`, so equal metadata means equal content. A file that has just changed could change again
//!   within the same clock tick, so its digest is not cached.

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of cached digests. A full cache is cleared.
const MAX_COUNT: usize = 256;

/// Size of the read buffer, in bytes.
const CHUNK: usize = 256 * 1024;

/// Time in seconds after which any further change is certain to change `ctime`.
const TICK: i64 = 2;

/// File metadata that changes whenever the content changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Metadata of a file, with its digest if the metadata alone might miss a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    state: FileState,
    /// Digest of the content, if the file had changed less than [`TICK`] before it was read.
    fresh: Option<String>,
}

/// Cache of program file digests. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Digests(Arc<Mutex<HashMap<FileState, String>>>);

impl FileState {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    fn is_fresh(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        i64::try_from(now).map_or(true, |now| self.changed.0 + TICK >= now)
    }
}

impl Stamp {
    /// Returns the metadata of a file that cannot be read, both as text and as a stamp.
    pub(super) fn for_unreadable(path: &Path) -> io::Result<(String, Self)> {
        let state = FileState::of(&path.metadata()?);
        let FileState { inode, size, modified, changed, .. } = &state;
        let text = format!("{inode}-{size}-{}.{}-{}.{}", modified.0, modified.1, changed.0, changed.1);
        Ok((text, Self { state, fresh: None }))
    }

    /// Returns `true` if the path still leads to the same file with unchanged content.
    pub(super) fn is_unchanged(&self, path: &Path) -> bool {
        let Ok(found) = path.metadata() else { return false };
        if FileState::of(&found) != self.state {
            return false;
        }
        let Some(before) = &self.fresh else { return true };
        open(path).and_then(|mut file| read(&mut file)).is_ok_and(|now| now == *before)
    }
}

impl Digests {
    /// Returns the SHA-256 of a program file in hexadecimal, and a stamp that reveals later changes.
    ///
    /// # Errors
    /// Returns an error if the file is unreadable, not regular, or changes while it is read.
    pub(super) fn of(&self, path: &Path) -> io::Result<(String, Stamp)> {
        let mut file = open(path)?;
        let state = FileState::of(&file.metadata()?);
        if let Some(digest) = self.known(&state) {
            return Ok((digest, Stamp { state, fresh: None }));
        }
        let is_fresh = state.is_fresh();
        let digest = read(&mut file)?;
        if FileState::of(&file.metadata()?) != state {
            return Err(io::Error::other("the file changed while it was read"));
        }
        if !is_fresh {
            self.remember(&state, &digest);
        }
        let fresh = is_fresh.then(|| digest.clone());
        Ok((digest, Stamp { state, fresh }))
    }

    fn known(&self, state: &FileState) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(state).cloned()
    }

    fn remember(&self, state: &FileState, digest: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_COUNT {
            all.clear();
        }
        all.insert(state.clone(), digest.to_owned());
    }
}

/// Opens a regular file. Never blocks, even on a named pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Returns the SHA-256 of a string in hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    hexadecimal(Sha256::new_with_prefix(text))
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(file: &mut File) -> io::Result<String> {
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok(hexadecimal(hash));
        }
        hash.update(chunk.get(..count).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{FileTimes, rename, write};

    #[test]
    fn a_replaced_or_written_file_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        write(&file, "one").unwrap();
        let times = File::open(&file).unwrap().metadata().unwrap();
        let (digest, stamp) = Digests::default().of(&file).unwrap();
        assert!(stamp.is_unchanged(&file));
        // The same length and modification time.
        write(&file, "two").unwrap();
        let old = FileTimes::new().set_modified(times.modified().unwrap());
        OpenOptions::new().write(true).open(&file).unwrap().set_times(old).unwrap();
        assert!(!stamp.is_unchanged(&file));
        write(&file, "one").unwrap();
        write(dir.path().join("other"), "one").unwrap();
        rename(dir.path().join("other"), &file).unwrap();
        assert!(!stamp.is_unchanged(&file), "another file of the same content");
        assert_eq!(Digests::default().of(&file).unwrap().0, digest);
    }

    #[test]
    fn a_pipe_is_refused_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert_eq!(Digests::default().of(&pipe).unwrap_err().to_string(), "it is not a regular file");
    }
}
