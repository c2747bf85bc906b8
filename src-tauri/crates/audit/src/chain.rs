//! The hash chain: each line ends in the SHA-256 of everything before that field, which includes the hash of
//! the line before. Checked on the bytes as they stand, so any edit shows.
//!
//! Not shown by the chain alone: lines cut off at the end of the log.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The hash before the first entry.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const HASH_FIELD: &str = ",\"hash\":\"";
const HASH_DIGITS: usize = 64;

/// Closes an entry's JSON text with its hash; gives the line and the hash.
pub(super) fn close(entry: &str) -> (String, String) {
    let open = entry.strip_suffix('}').unwrap_or(entry);
    let hash = hash_of(open.as_bytes());
    (format!("{open}{HASH_FIELD}{hash}\"}}\n"), hash)
}

/// Checks a line against the one before, which has the number `entries` and the hash `head`; gives its hash.
pub(super) fn follow(line: &[u8], entries: u64, head: &str) -> Result<String, &'static str> {
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
    if link.prev != head || link.seq != entries + 1 {
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
