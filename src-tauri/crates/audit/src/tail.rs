//! Reads the first or last lines of a file without reading the rest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Initial number of bytes to read. It grows until enough lines are found.
const STEP: u64 = 64 * 1024;

/// Maximum number of bytes to read from one end of a file.
pub(super) const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Returns the first line with its line feed, or `None` if it does not end within [`MAX_BYTES`] bytes.
pub(super) fn first_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len().min(MAX_BYTES);
    let mut read = STEP.min(length);
    loop {
        let mut bytes = block(file, 0, read)?;
        if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            bytes.truncate(end + 1);
            return Ok(Some(bytes));
        }
        if read == length {
            return Ok(None);
        }
        read = (read * 8).min(length);
    }
}

/// Returns the last line that ends in a line feed, if any.
pub(super) fn last_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    Ok(last_lines(file, 1)?.pop())
}

/// Returns the last lines that end in a line feed, in order. Returns at least `count` lines, unless the last
/// [`MAX_BYTES`] bytes contain fewer.
pub(super) fn last_lines(file: &File, count: usize) -> io::Result<Vec<Vec<u8>>> {
    lines_before(file, complete_length(file)?, count, STEP)
}

/// Returns the lines that end at or before `offset`, in order. Reads `least` bytes. If these contain fewer than `count`
/// lines, reads up to [`MAX_BYTES`] bytes.
pub(super) fn lines_before(file: &File, offset: u64, count: usize, least: u64) -> io::Result<Vec<Vec<u8>>> {
    let mut read = least.min(offset);
    loop {
        let bytes = block(file, offset - read, read)?;
        let lines = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec);
        // The first piece may be the end of a longer line.
        let lines: Vec<Vec<u8>> = lines.skip(usize::from(read < offset)).collect();
        if lines.len() >= count || read == offset || read >= MAX_BYTES {
            return Ok(lines);
        }
        read = (read * 8).min(offset).min(MAX_BYTES);
    }
}

/// Returns the length of the file up to its last line feed.
pub(super) fn complete_length(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut read = STEP.min(length);
    loop {
        let bytes = block(file, length - read, read)?;
        if let Some(end) = bytes.iter().rposition(|b| *b == b'\n') {
            return Ok(length - read + end as u64 + 1);
        }
        if read == length {
            return Ok(0);
        }
        read = (read * 8).min(length);
    }
}

fn block(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
