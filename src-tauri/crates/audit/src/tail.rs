//! The first and the last lines of a file, without reading what is between.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The number of bytes that are read at first.
const STEP: u64 = 64 * 1024;

/// The number of bytes that are read at most.
pub(super) const MOST: u64 = 32 * 1024 * 1024;

/// The first line with its line feed, where there is one within the bytes that are read.
pub(super) fn first_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len().min(MOST);
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

/// The last line that has its line feed.
pub(super) fn last_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    Ok(last_lines(file, 1)?.pop())
}

/// The last lines that have their line feed, in order: all that were read, which are `count` or more unless there are fewer
/// in [`MOST`] bytes.
pub(super) fn last_lines(file: &File, count: usize) -> io::Result<Vec<Vec<u8>>> {
    let length = file.metadata()?.len();
    let mut read = STEP.min(length);
    loop {
        let bytes = block(file, length - read, read)?;
        let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        if lines.last().is_some_and(|line| line.last() != Some(&b'\n')) {
            lines.pop();
        }
        // What was read begins somewhere in a line.
        let whole = if read == length { lines.len() } else { lines.len().saturating_sub(1) };
        if whole >= count || read == length || read >= MOST {
            return Ok(lines.split_off(lines.len() - whole));
        }
        read = (read * 8).min(length).min(MOST);
    }
}

fn block(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
