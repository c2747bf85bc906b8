//! Random names for files and ids.

use std::io;

/// Returns an unguessable name of lower-case letters and digits, with 80 bits from the kernel's random number
/// generator.
///
/// # Errors
/// Returns an error if the kernel provides no random bytes.
pub fn random_name() -> io::Result<String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    Ok(random_bytes()?
        .iter()
        .filter_map(|b| ALPHABET.get(usize::from(b % 32)))
        .map(|&b| char::from(b))
        .collect())
}

#[cfg(target_os = "linux")]
fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(not(target_os = "linux"))]
fn random_bytes() -> io::Result<[u8; 16]> {
    Err(io::ErrorKind::Unsupported.into())
}
