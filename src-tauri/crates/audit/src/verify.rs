//! Checking a log from its beginning, whoever wrote it.

use crate::chain::{GENESIS, follow};
use ironcurtain_paths::bounded_read;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Result of reading a whole log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Entries that hold, up to the first problem.
    pub entries: u64,
    /// Hash of the last entry that holds.
    pub head: String,
    /// Length in bytes of what holds.
    pub length: u64,
    /// The first problem, with its line.
    pub problem: Option<String>,
    /// The problem is a last line without its line feed, as a crash leaves it.
    pub torn: bool,
}

impl Checked {
    /// A log without entries.
    pub(super) fn empty() -> Self {
        Self { entries: 0, head: GENESIS.to_owned(), length: 0, problem: None, torn: false }
    }

    /// Returns `true` if the whole log holds.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.problem.is_none()
    }
}

/// The extent of what a writer has put into a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The number of entries.
    pub entries: u64,
    /// Hash of the last one.
    pub head: String,
}

/// Reads a log as [`check`] does. What was written must be in it, and more may follow.
///
/// # Errors
/// When the file cannot be read.
pub fn check_written(log: &Path, written: &Written) -> io::Result<Checked> {
    let mut last = (written.entries == 0).then(|| GENESIS.to_owned());
    let mut checked = walk(log, |so_far| {
        if so_far.entries == written.entries {
            last = Some(so_far.head.clone());
        }
    })?;
    if checked.intact() && last.as_ref() != Some(&written.head) {
        checked.problem = Some(match last {
            None => format!("it ends after {} of {} entries", checked.entries, written.entries),
            Some(_) => format!("line {}: it is not the one that was written", written.entries),
        });
    }
    Ok(checked)
}

/// Reads a log from its beginning and follows the chain. A log that does not exist is empty and intact.
///
/// # Errors
/// When the file cannot be read.
pub fn check(log: &Path) -> io::Result<Checked> {
    walk(log, |_| ())
}

/// Follows the chain, and shows what holds after each entry.
fn walk(log: &Path, mut see: impl FnMut(&Checked)) -> io::Result<Checked> {
    let mut checked = Checked::empty();
    let mut reader = match bounded_read::open(log) {
        Ok(file) => BufReader::new(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(checked),
        Err(e) => return Err(e),
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(checked);
        }
        match follow(&line, checked.entries, &checked.head) {
            Ok(hash) => {
                checked.entries += 1;
                checked.length += line.len() as u64;
                checked.head = hash;
                see(&checked);
            }
            Err(problem) => {
                checked.torn = line.last() != Some(&b'\n');
                checked.problem = Some(format!("line {}: {problem}", checked.entries + 1));
                return Ok(checked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_version_without_grounds_holds() {
        let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/without-grounds.jsonl");
        let checked = check(&log).unwrap();
        assert_eq!((checked.problem, checked.entries), (None, 20));
    }
}
