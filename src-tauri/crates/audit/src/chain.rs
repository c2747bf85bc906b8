//! The hash chain: each line ends in the SHA-256 of everything before that field, which includes the hash of
//! the line before. Checked on the bytes as they stand, so any edit shows.
//!
//! Not shown by the chain alone: lines cut off at the end of the log.

use ironcurtain_paths::bounded_read;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// What stands before the first entry.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const HASH_FIELD: &str = ",\"hash\":\"";
const HASH_DIGITS: usize = 64;

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
    /// Whether that problem is a last line without its line feed, as a crash leaves it.
    pub torn: bool,
}

impl Checked {
    /// A log without entries.
    pub(super) fn empty() -> Self {
        Self { entries: 0, head: GENESIS.to_owned(), length: 0, problem: None, torn: false }
    }

    /// Whether the whole log holds.
    #[must_use]
    pub fn intact(&self) -> bool {
        self.problem.is_none()
    }
}

/// What a writer has put into a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// How many entries.
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
        match follow(&line, &checked) {
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

/// Closes an entry's JSON text with its hash; gives the line and the hash.
pub(super) fn close(entry: &str) -> (String, String) {
    let open = entry.strip_suffix('}').unwrap_or(entry);
    let hash = hash_of(open.as_bytes());
    (format!("{open}{HASH_FIELD}{hash}\"}}\n"), hash)
}

fn follow(line: &[u8], before: &Checked) -> Result<String, &'static str> {
    #[derive(Deserialize)]
    struct Link {
        seq: u64,
        prev: String,
    }
    let text = line.strip_suffix(b"\n").ok_or("it is cut off")?;
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    let (open, rest) = text.rsplit_once(HASH_FIELD).ok_or("it has no hash")?;
    let hash = rest.strip_suffix("\"}").filter(|h| h.len() == HASH_DIGITS).ok_or("it has no hash")?;
    let link: Link = serde_json::from_str(text).map_err(|_| "it is not an entry")?;
    if link.prev != before.head || link.seq != before.entries + 1 {
        return Err("it does not follow the line before it");
    }
    if hash_of(open.as_bytes()) != hash {
        return Err("its content does not match its hash");
    }
    Ok(hash.to_owned())
}

/// SHA-256, in hexadecimal digits.
#[must_use]
pub fn hash_of(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(HASH_DIGITS);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
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
