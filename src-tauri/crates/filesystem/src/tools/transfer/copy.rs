//! Moves files between file systems or mounts: copies them, syncs, and removes the source.
//!
//! - Modes and modification times are preserved, and symlinks are copied as symlinks.
//! - Named pipes, sockets and devices are rejected before anything is removed.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_std::fs::{Dir, Metadata, OpenOptions};

use super::Failure;
use crate::error::ToolError;
use crate::tools::{Call, list};

/// Maximum depth of a directory tree.
const DEPTH_LIMIT: usize = 200;

/// Moves `from/from_name` to `to/to_name`, which must not exist.
pub(super) fn move_across(
    from: &Dir,
    from_name: &OsStr,
    to: &Dir,
    to_name: &OsStr,
    path: &Path,
    call: &Call<'_>,
) -> Result<(), Failure> {
    let mut copy = Copy { call, is_destination_created: false };
    if let Err(failure) = copy.entry(from, from_name, to, to_name, path, 0) {
        if copy.is_destination_created {
            // Keep the copy error if removing the partial copy also fails.
            let _ = remove(to, to_name);
        }
        return Err(failure);
    }
    if let Err(error) = remove(from, from_name) {
        // A file that cannot be removed, such as a mount point, is still intact, so the copy is removed.
        if !from.symlink_metadata(from_name)?.is_dir() {
            remove(to, to_name)?;
        }
        return Err(error.into());
    }
    Ok(())
}

struct Copy<'a> {
    call: &'a Call<'a>,
    /// `true` once this move has created the destination.
    is_destination_created: bool,
}

impl Copy<'_> {
    fn entry(
        &mut self,
        from: &Dir,
        from_name: &OsStr,
        to: &Dir,
        to_name: &OsStr,
        path: &Path,
        depth: usize,
    ) -> Result<(), Failure> {
        self.call.check().map_err(Failure::Tool)?;
        if depth > DEPTH_LIMIT {
            let path = path.display().to_string();
            return Err(Failure::Tool(ToolError::TooDeep { path, limit: DEPTH_LIMIT }));
        }
        let metadata = from.symlink_metadata(from_name)?;
        if metadata.is_symlink() {
            copy_link(from, from_name, to, to_name)?;
            self.is_destination_created = true;
            return Ok(());
        }
        if metadata.is_dir() {
            return self.directory(from, from_name, to, to_name, path, depth, &metadata);
        }
        if !metadata.is_file() {
            return Err(Failure::Tool(ToolError::NotRegular(path.display().to_string())));
        }
        self.file(from, from_name, to, to_name, &metadata)
    }

    #[expect(clippy::too_many_arguments, reason = "source, destination, path for messages, and depth")]
    fn directory(
        &mut self,
        from: &Dir,
        from_name: &OsStr,
        to: &Dir,
        to_name: &OsStr,
        path: &Path,
        depth: usize,
        metadata: &Metadata,
    ) -> Result<(), Failure> {
        to.create_dir(to_name)?;
        self.is_destination_created = true;
        let source = from.open_dir(from_name)?;
        let target = to.open_dir(to_name)?;
        for entry in list::entries(&source)? {
            let name = &entry.file_name;
            self.entry(&source, name, &target, name, &path.join(name), depth.saturating_add(1))?;
        }
        // The mode is set last, because it may prevent writing.
        target.set_permissions(".", metadata.permissions())?;
        target.try_clone()?.into_std_file().sync_all().or_else(unsupported)?;
        Ok(())
    }

    fn file(
        &mut self,
        from: &Dir,
        from_name: &OsStr,
        to: &Dir,
        to_name: &OsStr,
        metadata: &Metadata,
    ) -> Result<(), Failure> {
        let mut source = from.open(from_name)?.into_std();
        let options = OpenOptions::new().write(true).create_new(true).clone();
        let mut target = to.open_with(to_name, &options)?.into_std();
        self.is_destination_created = true;
        io::copy(&mut source, &mut target)?;
        target.set_permissions(source.metadata()?.permissions())?;
        if let Ok(modified) = metadata.modified() {
            target.set_modified(modified.into_std())?;
        }
        target.sync_all()?;
        Ok(())
    }
}

#[cfg(unix)]
fn copy_link(from: &Dir, from_name: &OsStr, to: &Dir, to_name: &OsStr) -> io::Result<()> {
    to.symlink_contents(from.read_link_contents(from_name)?, to_name)
}

#[cfg(not(unix))]
fn copy_link(_from: &Dir, _from_name: &OsStr, _to: &Dir, _to_name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Ignores errors from syncing a directory that was opened only for lookups.
fn unsupported(error: io::Error) -> io::Result<()> {
    let bad_descriptor = error.raw_os_error() == Some(9);
    let harmless = [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported];
    if bad_descriptor || harmless.contains(&error.kind()) { Ok(()) } else { Err(error) }
}

fn remove(directory: &Dir, name: &OsStr) -> io::Result<()> {
    if directory.symlink_metadata(name)?.is_dir() {
        directory.remove_dir_all(name)
    } else {
        directory.remove_file(name)
    }
}
