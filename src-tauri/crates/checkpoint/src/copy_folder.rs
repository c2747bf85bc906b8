//! Copies a folder into a checkpoint.

use crate::record::{Before, CheckpointInfo, CopiedEntry, NotCopied, Stamp, kind, permissions};
use crate::tree::{ListError, Tree};
use crate::{CheckpointError, MAX_BYTES, MAX_ENTRIES, io_error};
use rustix::fs::{FileType, Stat, fstat, ioctl_ficlone};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of attempts to copy a file that keeps changing.
const MAX_ATTEMPTS: usize = 3;

/// Copies the folder's files into `copies`.
pub(crate) fn copy_folder(folder: &Path, copies: &Path) -> Result<Before, CheckpointError> {
    // A trailing slash would follow a symbolic link.
    let folder = folder.components().as_path();
    let name = folder.to_str().ok_or_else(|| CheckpointError::NotUtf8(folder.to_owned()))?.to_owned();
    let failed = |error: Errno| io_error(folder)(error.into());
    let tree = Tree::open(folder).map_err(failed)?;
    let listing = tree.list(MAX_ENTRIES).map_err(|error| match error {
        ListError::TooMany => CheckpointError::TooMany(name.clone()),
        ListError::Io(error) => failed(error),
    })?;
    let mut not_copied = listing.not_copied;
    let (mut entries, mut number) = (BTreeMap::new(), 0);
    let mut copier = Copier { tree: &tree, copies, name: &name, remaining_bytes: MAX_BYTES };
    for (path, stat) in listing.entries {
        let copied = match kind(&stat) {
            FileType::Directory => Ok(CopiedEntry::Folder { mode: permissions(&stat) }),
            FileType::Symlink => tree.read_link(&path).map(|target| CopiedEntry::Link { target }),
            FileType::RegularFile => {
                number += 1;
                let copied = copier.copy(&path, number)?;
                copied.map(|stat| CopiedEntry::File {
                    mode: permissions(&stat),
                    group: Some(stat.st_gid),
                    copy: number,
                    stamp: Stamp::from_stat(&stat),
                })
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                not_copied.push(NotCopied::special(path));
                continue;
            }
        };
        match copied {
            Ok(copied) => _ = entries.insert(path, copied),
            // The path was removed concurrently.
            Err(Errno::NOENT) => {}
            Err(error) => not_copied.push(NotCopied::from_error(path, error)),
        }
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let taken_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let identity = tree.identity().map_err(failed)?;
    let file_system = Some(tree.file_system().map_err(failed)?);
    Ok(Before { info: CheckpointInfo { folder: name, taken_ms }, identity, file_system, entries, not_copied })
}

/// Copies files until a size limit is reached.
struct Copier<'a> {
    tree: &'a Tree,
    copies: &'a Path,
    /// Path of the folder, for error messages.
    name: &'a str,
    remaining_bytes: u64,
}

impl Copier<'_> {
    /// Copies a file. The inner error is an error from reading the file.
    fn copy(&mut self, path: &str, number: usize) -> Result<Result<Stat, Errno>, CheckpointError> {
        let copy = self.copies.join(number.to_string());
        for _ in 0..MAX_ATTEMPTS {
            let read = self.tree.read(path).and_then(|file| fstat(&file).map(|stat| (file, stat)));
            let (file, before) = match read {
                Ok(opened) => opened,
                Err(error) => return Ok(Err(error)),
            };
            let created = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&copy);
            let mut created = created.map_err(io_error(&copy))?;
            let size = copy_content(&file, &mut created, self.remaining_bytes).map_err(io_error(&copy))?;
            if size > self.remaining_bytes {
                return Err(CheckpointError::TooLarge(self.name.to_owned()));
            }
            let after = fstat(&file).map_err(|error| io_error(path)(error.into()))?;
            if Stamp::from_stat(&before) == Stamp::from_stat(&after) {
                self.remaining_bytes -= size;
                return Ok(Ok(after));
            }
        }
        // The copy may mix several states of the file.
        Ok(Err(Errno::AGAIN))
    }
}

/// Copies a file's content, sharing its blocks if the file system supports that. Stops after `max_bytes` bytes. Returns
/// the size.
fn copy_content(file: &File, copy: &mut File, max_bytes: u64) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size > max_bytes || ioctl_ficlone(&*copy, file).is_ok() {
        return Ok(size);
    }
    io::copy(&mut file.take(max_bytes + 1), copy)
}
