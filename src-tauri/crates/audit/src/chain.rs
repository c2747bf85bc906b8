//! Hash chain. The last field of each line is the SHA-256 of the previous line's hash, followed by the line itself up
//! to that field. Verification hashes the stored bytes, so it detects every edit.
//!
//! - The first line of a file contains the last hash of the preceding file.
//! - Earlier versions wrote the previous hash into every line and hashed only the line itself. Such lines are also
//!   accepted.
//! - The chain alone does not detect lines missing from the end of the log (see [`crate::head`]).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Value used as the previous hash of the first entry.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Prefix of a line's last field, and the length of its base64url hash.
const LINK: (&str, usize) = (",\"link\":\"", 43);

/// Prefix of a line's last field in earlier versions, and the length of its hexadecimal hash.
const HASH: (&str, usize) = (",\"hash\":\"", 64);

/// Position in the chain after an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPosition {
    /// Number of entries before this position.
    pub entries: u64,
    /// Hash of the last entry before this position.
    pub head: String,
}

impl ChainPosition {
    /// Returns the position before the first entry.
    pub(super) fn start() -> Self {
        Self { entries: 0, head: GENESIS.to_owned() }
    }
}

/// Fields of a line that link it to the previous one.
#[derive(Deserialize)]
struct LinkFields {
    seq: u64,
    prev: Option<String>,
}

/// Appends the hash and the closing brace to the line that starts at `begin` and returns the hash.
pub(super) fn append_hash(line: &mut String, begin: usize, prev: &str) -> String {
    let link = link_hash(prev, line.get(begin..).unwrap_or_default());
    line.push_str(LINK.0);
    line.push_str(&link);
    line.push_str("\"}\n");
    link
}

/// Verifies that a line continues the chain after `before` and returns its hash.
pub(super) fn verify_line(line: &[u8], before: &ChainPosition) -> Result<String, &'static str> {
    let text = line.strip_suffix(b"\n").ok_or("it is cut off")?;
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?;
    let fields: Option<LinkFields> = serde_json::from_str(text).ok();
    let last = |(field, digits): (&str, usize)| {
        let (unhashed, rest) = text.rsplit_once(field)?;
        rest.strip_suffix("\"}").filter(|hash| hash.len() == digits).map(|hash| (unhashed, hash))
    };
    let (hash, expected) = match (last(LINK), last(HASH)) {
        (Some((unhashed, hash)), _) => (hash, link_hash(&before.head, unhashed)),
        (None, Some((unhashed, hash))) => (hash, hash_of(unhashed.as_bytes())),
        (None, None) => return Err("it has no hash"),
    };
    let fields = fields.ok_or("it is not an entry")?;
    let is_unlinked = last(LINK).is_none() && fields.prev.is_none();
    if is_unlinked || fields.seq != before.entries + 1 || fields.prev.is_some_and(|prev| prev != before.head)
    {
        return Err("it does not follow the line before it");
    }
    if hash != expected {
        return Err("its content does not match its hash");
    }
    Ok(hash.to_owned())
}

/// Returns the position before a line, as recorded in the line. Returns `None` if the line does not record it.
pub(super) fn position_before(line: &[u8]) -> Option<ChainPosition> {
    let fields: LinkFields = serde_json::from_slice(line).ok()?;
    Some(ChainPosition { entries: fields.seq.checked_sub(1)?, head: fields.prev? })
}

/// Returns the position after a line, as recorded in the line.
pub(super) fn position_after(line: &[u8]) -> Option<ChainPosition> {
    #[derive(Deserialize)]
    struct Last {
        seq: u64,
        #[serde(alias = "hash")]
        link: String,
    }
    let last: Last = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    Some(ChainPosition { entries: last.seq, head: last.link })
}

fn link_hash(prev: &str, unhashed: &str) -> String {
    let digest = Sha256::new().chain_update(prev).chain_update(unhashed).finalize();
    URL_SAFE_NO_PAD.encode(digest)
}

/// Returns the SHA-256 as hexadecimal digits.
#[must_use]
pub fn hash_of(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(HASH.1);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Returns `true` if a line is UTF-8 and contains this text.
pub(super) fn contains(line: &[u8], text: &str) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(text))
}
