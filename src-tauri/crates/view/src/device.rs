//! Reads requests from the kernel and writes replies to it.

use std::{
    fs::File,
    io::{self, IoSlice, Read, Write},
};

use rustix::io::Errno;

/// FUSE connection to the kernel. Tests use a fake.
pub(crate) trait Device: Send + Sync {
    /// Reads one request, or returns `None` once the file system is unmounted.
    fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Writes one message, which is the concatenation of `parts`.
    fn write(&self, parts: &[&[u8]]) -> io::Result<()>;
}

/// `/dev/fuse` of a mounted file system.
impl Device for File {
    fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&mut &*self).read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NODEV) => return Ok(None),
                    // ENOENT: the request was interrupted before it was read.
                    Some(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
                    Some(_) | None => return Err(error),
                },
            }
        }
    }

    fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        (&mut &*self).write_vectored(&parts).map(drop)
    }
}
