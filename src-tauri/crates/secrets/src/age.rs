//! The `age` file format, version 1, with a passphrase. `age --decrypt` can read the files.
//!
//! - Every byte of a file is authenticated, so a changed, truncated or extended file is rejected.
//! - Verifying a file's passphrase runs scrypt once, with a work factor of at most [`MAX_LOG_N`].
//! - Decrypted contents and the file key are overwritten in memory on drop.

use super::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{error::Unspecified, hkdf, hmac};
use zeroize::Zeroizing;

/// First line of every file.
const VERSION: &str = "age-encryption.org/v1";

/// Prefix of the salt so that the same passphrase yields different keys for other purposes.
const SALT_PREFIX: &[u8] = b"age-encryption.org/v1/scrypt";

/// Base-2 logarithm of the scrypt work factor of new files: 256 MiB and about a second per guess. This is the default
/// of `age`.
const DEFAULT_LOG_N: u8 = if cfg!(test) { 8 } else { 18 };

/// Base-2 logarithm of the maximum scrypt work factor: 1 GiB per attempt.
const MAX_LOG_N: u8 = 20;

/// Size of a chunk of the contents in bytes.
const CHUNK_LEN: usize = 64 * 1024;

/// Length of a chunk's authentication tag in bytes.
const TAG_LEN: usize = 16;

/// Reason a file cannot be decrypted or created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AgeError {
    /// The file is not in `age` format, or not encrypted with a passphrase.
    #[error("it is not an `age` file encrypted with a passphrase")]
    Format,
    /// The passphrase is wrong, or the header was changed.
    #[error("the passphrase is wrong, or the file was changed")]
    Passphrase,
    /// The header or the contents were changed.
    #[error("the file was modified or truncated after it was written")]
    Changed,
    /// The file's work factor exceeds `MAX_LOG_N`.
    #[error("it requires 2^{0} rounds of work; at most 2^{MAX_LOG_N} are allowed")]
    Work(u8),
    /// The operating system provides no random bytes.
    #[error("no random bytes are available")]
    Random,
}

/// Encrypts content with a passphrase and returns the file.
///
/// # Errors
/// Returns [`AgeError::Random`] if the operating system provides no random bytes.
pub(crate) fn encrypt(passphrase: &Secret, content: &[u8]) -> Result<Vec<u8>, AgeError> {
    encrypt_with_log_n(passphrase, content, DEFAULT_LOG_N)
}

fn encrypt_with_log_n(passphrase: &Secret, content: &[u8], log_n: u8) -> Result<Vec<u8>, AgeError> {
    let (file_key, salt, nonce) = (Zeroizing::new(random()?), random()?, random()?);
    // Reserving the full capacity avoids a reallocation, which would leave a copy of the key in memory.
    let mut wrapped_key = Zeroizing::new(Vec::with_capacity(file_key.len() + TAG_LEN));
    wrapped_key.extend_from_slice(file_key.as_slice());
    let wrapping = key(&wrapping_key(passphrase, &salt, log_n)?)?;
    wrapping
        .seal_in_place_append_tag(zero_nonce(), Aad::empty(), &mut *wrapped_key)
        .map_err(|_| AgeError::Format)?;
    let stanza = format!("-> scrypt {} {log_n}\n{}\n", base64_encode(&salt), base64_encode(&wrapped_key));
    let header = format!("{VERSION}\n{stanza}---");
    let mac = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, derive_key(file_key.as_slice(), &[], b"header")?.as_slice()),
        header.as_bytes(),
    );
    let mut file = format!("{header} {}\n", base64_encode(mac.as_ref())).into_bytes();
    file.extend_from_slice(&nonce);
    let content_key = key(&derive_key(file_key.as_slice(), &nonce, b"payload")?)?;
    let chunks = chunks(content, CHUNK_LEN);
    let last = chunks.len().saturating_sub(1);
    for (number, chunk) in chunks.into_iter().enumerate() {
        let mut sealed = Zeroizing::new(Vec::with_capacity(CHUNK_LEN + TAG_LEN));
        sealed.extend_from_slice(chunk);
        let nonce = chunk_nonce(number, number == last);
        content_key
            .seal_in_place_append_tag(nonce, Aad::empty(), &mut *sealed)
            .map_err(|_| AgeError::Format)?;
        file.extend_from_slice(&sealed);
    }
    Ok(file)
}

/// Decrypts a file and returns its contents.
///
/// # Errors
/// Returns [`AgeError`] if the file is invalid or the passphrase is wrong. No part of the contents is then returned.
pub(crate) fn decrypt(passphrase: &Secret, file: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let Header { salt, log_n, mut wrapped_key, authenticated, mac, rest } =
        Header::read(file).ok_or(AgeError::Format)?;
    if log_n > MAX_LOG_N {
        return Err(AgeError::Work(log_n));
    }
    let wrapping = key(&wrapping_key(passphrase, &salt, log_n)?)?;
    let file_key = wrapping.open_in_place(zero_nonce(), Aad::empty(), wrapped_key.as_mut_slice());
    let file_key = Zeroizing::new(file_key.map_err(|_| AgeError::Passphrase)?.to_vec());
    let mac_key = hmac::Key::new(hmac::HMAC_SHA256, derive_key(&file_key, &[], b"header")?.as_slice());
    hmac::verify(&mac_key, authenticated, &mac).map_err(|_| AgeError::Changed)?;
    let (nonce, sealed) = rest.split_at_checked(16).ok_or(AgeError::Changed)?;
    let content_key = key(&derive_key(&file_key, nonce, b"payload")?)?;
    let mut content = Zeroizing::new(Vec::with_capacity(sealed.len()));
    let chunks = chunks(sealed, CHUNK_LEN + TAG_LEN);
    let last = chunks.len().saturating_sub(1);
    for (number, chunk) in chunks.into_iter().enumerate() {
        let mut chunk = Zeroizing::new(chunk.to_vec());
        let nonce = chunk_nonce(number, number == last);
        let open = content_key.open_in_place(nonce, Aad::empty(), &mut chunk);
        let open = open.map_err(|_| AgeError::Changed)?;
        // An empty chunk would be a second encoding of the same contents.
        if open.is_empty() && number > 0 {
            return Err(AgeError::Changed);
        }
        content.extend_from_slice(open);
    }
    Ok(content)
}

struct Header<'a> {
    salt: [u8; 16],
    log_n: u8,
    wrapped_key: Zeroizing<[u8; 32]>,
    authenticated: &'a [u8],
    mac: [u8; 32],
    rest: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(file: &'a [u8]) -> Option<Self> {
        let mut lines = file.splitn(5, |byte| *byte == b'\n');
        let mut line = || std::str::from_utf8(lines.next()?).ok();
        let (version, stanza, body, end) = (line()?, line()?, line()?, line()?);
        let rest = lines.next()?;
        let [salt, log_n] =
            stanza.strip_prefix("-> scrypt ")?.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let mac = base64_decode(end.strip_prefix("--- ")?)?;
        // Rejects other spellings of the same number.
        let log_n: u8 = Some(log_n)
            .filter(|log_n| log_n.bytes().all(|b| b.is_ascii_digit()) && !log_n.starts_with('0'))?
            .parse()
            .ok()?;
        let authenticated = file.get(..version.len() + stanza.len() + body.len() + 3 + "---".len())?;
        (version == VERSION).then_some(())?;
        Some(Self {
            salt: base64_decode(salt)?,
            log_n,
            wrapped_key: Zeroizing::new(base64_decode(body)?),
            authenticated,
            mac,
            rest,
        })
    }
}

fn wrapping_key(passphrase: &Secret, salt: &[u8; 16], log_n: u8) -> Result<Zeroizing<[u8; 32]>, AgeError> {
    let cost = scrypt::Params::new(log_n, 8, 1).map_err(|_| AgeError::Work(log_n))?;
    let mut key = Zeroizing::new([0; 32]);
    let salt = [SALT_PREFIX, salt].concat();
    scrypt::scrypt(passphrase.reveal().as_bytes(), &salt, &cost, key.as_mut_slice())
        .map_err(|_| AgeError::Format)?;
    Ok(key)
}

struct Len32;

impl hkdf::KeyType for Len32 {
    fn len(&self) -> usize {
        32
    }
}

fn derive_key(file_key: &[u8], salt: &[u8], purpose: &[u8]) -> Result<Zeroizing<[u8; 32]>, AgeError> {
    let mut key = Zeroizing::new([0; 32]);
    let from = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(file_key);
    let filled = from.expand(&[purpose], Len32).and_then(|out| out.fill(key.as_mut_slice()));
    filled.map_err(|Unspecified| AgeError::Format)?;
    Ok(key)
}

fn key(bytes: &Zeroizing<[u8; 32]>) -> Result<LessSafeKey, AgeError> {
    UnboundKey::new(&CHACHA20_POLY1305, bytes.as_slice())
        .map(LessSafeKey::new)
        .map_err(|Unspecified| AgeError::Format)
}

/// Returns the nonce for a key that encrypts a single message.
fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// Returns the nonce of a chunk. It contains the chunk's number and a flag for the last chunk so that chunks cannot be
/// removed, added or moved.
fn chunk_nonce(number: usize, is_last: bool) -> Nonce {
    let [a, b, c, d, e, f, g, h] = (number as u64).to_be_bytes();
    Nonce::assume_unique_for_key([0, 0, 0, a, b, c, d, e, f, g, h, u8::from(is_last)])
}

/// Splits bytes into chunks of `size`. Returns at least one chunk, which may be empty.
fn chunks(bytes: &[u8], size: usize) -> Vec<&[u8]> {
    if bytes.is_empty() { vec![bytes] } else { bytes.chunks(size).collect() }
}

fn random() -> Result<[u8; 16], AgeError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|Unspecified| AgeError::Random)?;
    Ok(bytes)
}

fn base64_encode(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

fn base64_decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD_NO_PAD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests;
