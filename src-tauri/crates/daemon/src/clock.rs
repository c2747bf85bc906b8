//! The wall clock and random names: the two things judging never sees.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A name that nobody can guess: 80 bits from the kernel's random source, as lower-case letters and digits.
///
/// # Errors
/// When the kernel has no random bytes to give.
pub fn random_name() -> io::Result<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().filter_map(|b| ALPHABET.get(usize::from(b % 32))).map(|&b| char::from(b)).collect())
}
