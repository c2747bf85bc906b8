//! Reads and writes the content of open files.

use std::{fs::File, io::IoSlice, os::unix::fs::FileExt};

use rustix::{
    fs::{FallocateFlags, fallocate, fdatasync, fsync},
    io::{Errno, ReadWriteFlags, pwritev2},
};

use super::{Incomplete, Reply};
use crate::{
    nodes::ContentStamp,
    open_files::OpenFile,
    real_tree::{errno, metadata},
    server::Server,
    wire::{self, MAX_WRITE, SeekFrom},
};

impl Server {
    pub(super) fn read(&self, handle: u64, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let open = self.files.get(handle)?;
        let file = open.to_read()?;
        let mut content = vec![0; usize::try_from(size.min(MAX_WRITE)).unwrap_or(0)];
        let mut filled = 0;
        // Reads in a loop, because the kernel interprets a short read as EOF.
        while let Some(rest) = content.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let position = offset.saturating_add(u64::try_from(filled).unwrap_or(0));
            match file.read_at(rest, position).map_err(|error| errno(&error)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    pub(super) fn write(
        &self,
        handle: u64,
        offset: u64,
        (from_cache, append): (bool, bool),
        data: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        let open = self.files.get(handle)?;
        let file = open.to_write(from_cache)?;
        let count = if append && !from_cache {
            // Requests appending for each write. If the descriptor had `O_APPEND`, pages that are written back would be
            // appended too.
            let count = pwritev2(file, &[IoSlice::new(data)], 0, ReadWriteFlags::APPEND)?;
            let end = metadata(file)?.len();
            if end != offset.saturating_add(u64::try_from(count).unwrap_or(0)) {
                self.invalidations.drop_pages(open.node);
            }
            count
        } else {
            file.write_at(data, offset).map_err(|error| errno(&error))?
        };
        self.record_stamp(&open, file);
        Ok(wire::written(count))
    }

    pub(super) fn sync(&self, handle: u64, data_only: bool) -> Result<Reply, Incomplete> {
        let open = self.files.get(handle)?;
        let file = open.to_read()?;
        if data_only {
            fdatasync(file)?
        } else {
            fsync(file)?
        }
        Ok(Reply::Empty)
    }

    pub(super) fn allocate(
        &self,
        handle: u64,
        offset: u64,
        length: u64,
        mode: FallocateFlags,
    ) -> Result<Reply, Incomplete> {
        let open = self.files.get(handle)?;
        let file = open.to_write(false)?;
        fallocate(file, mode, offset, length)?;
        self.record_stamp(&open, file);
        Ok(Reply::Empty)
    }

    pub(super) fn seek(&self, handle: u64, offset: u64, whence: SeekFrom) -> Result<Vec<u8>, Errno> {
        let open = self.files.get(handle)?;
        let position = match whence {
            SeekFrom::Data => rustix::fs::SeekFrom::Data(offset),
            SeekFrom::Hole => rustix::fs::SeekFrom::Hole(offset),
        };
        Ok(wire::seek(rustix::fs::seek(open.to_read()?, position)?))
    }

    pub(super) fn release(&self, handle: u64) -> Result<Reply, Incomplete> {
        let node = self.files.remove(handle)?;
        self.locks.release_handle(handle);
        self.nodes.remove_handle(node);
        Ok(Reply::Empty)
    }

    /// Records a file's state after the run has changed it so that the kernel's cached pages stay valid at the next
    /// open.
    pub(super) fn record_stamp(&self, open: &OpenFile, file: &File) {
        if let Ok(stat) = metadata(file) {
            self.nodes.update_stamp(open.node, ContentStamp::new(&stat));
        }
    }
}
