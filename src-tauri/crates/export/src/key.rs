//! Device key, which signs the log's heads. The key that hashes paths is derived from the device key.
//!
//! - The caller stores the key in the keyring or in a file that only the user can read. The secret is never exported.

use crate::paths::PathKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ironcurtain_paths::{atomic_file, bounded_read};
use ironcurtain_secrets::{Secret, SecretError};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Length of the secret and of the public key, in bytes.
const KEY_LEN: usize = 32;

/// Error returned when the device key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceKeyError {
    /// The operating system provided no random bytes.
    #[error("failed to create a device key: the system provides no random numbers")]
    Random,
    /// The stored key is invalid.
    #[error("the stored device key is invalid; remove `{0}` and the key to create a new one")]
    Invalid(PathBuf),
    /// The stored key does not match the public key.
    #[error(
        "the device key does not match `{0}`; restore the matching key, or remove the file to use the new one"
    )]
    Mismatch(PathBuf),
    /// The public key's file exists, but the device key does not.
    #[error("the device key of `{0}` is missing; restore it, or remove the file to create a new key")]
    Missing(PathBuf),
    /// The keyring is locked.
    #[error("the keyring with the device key is locked; unlock it")]
    Locked,
    /// The keyring cannot be used.
    #[error(transparent)]
    Keyring(#[from] SecretError),
    /// Reading or writing a file failed.
    #[error("failed to access `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

/// Ed25519 key of this device.
pub struct DeviceKey {
    seed: Zeroizing<[u8; KEY_LEN]>,
    pair: Ed25519KeyPair,
}

/// Public part of a device key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl DeviceKey {
    /// Creates a key.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError::Random`] if the operating system provides no random bytes.
    pub fn generate() -> Result<Self, DeviceKeyError> {
        let mut seed = Zeroizing::new([0; KEY_LEN]);
        SystemRandom::new().fill(seed.as_mut()).map_err(|_| DeviceKeyError::Random)?;
        Self::from_seed(seed).ok_or(DeviceKeyError::Random)
    }

    /// Restores a key from [`Self::secret`]. Returns `None` if the secret is invalid.
    #[must_use]
    pub fn restore(secret: &Secret) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(secret.reveal().trim()).ok()?);
        Self::from_seed(Zeroizing::new(<[u8; KEY_LEN]>::try_from(bytes.as_slice()).ok()?))
    }

    fn from_seed(seed: Zeroizing<[u8; KEY_LEN]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()).ok()?;
        Some(Self { seed, pair })
    }

    /// Returns the secret in its stored form.
    #[must_use]
    pub fn secret(&self) -> Secret {
        Secret::new(URL_SAFE_NO_PAD.encode(self.seed.as_ref()))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.pair.public_key().as_ref().to_vec())
    }

    /// Returns the key that hashes paths.
    #[must_use]
    pub fn path_key(&self) -> PathKey {
        PathKey::derive(self.seed.as_ref())
    }

    /// Returns a seed for the key that is used in channels to other machines.
    #[must_use]
    pub fn channel_seed(&self) -> Zeroizing<[u8; KEY_LEN]> {
        let mut text = Zeroizing::new(b"ironcurtain channel key\n".to_vec());
        text.extend_from_slice(self.seed.as_ref());
        let hash = digest::digest(&digest::SHA256, &text);
        let mut seed = Zeroizing::new([0; KEY_LEN]);
        seed.copy_from_slice(hash.as_ref());
        seed
    }

    pub(crate) fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(message))
    }

    /// Reads a key from a file. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError`] if the file cannot be read or contains no valid key.
    pub fn read(file: &Path) -> Result<Option<Self>, DeviceKeyError> {
        let io = |source| DeviceKeyError::Io { path: file.to_path_buf(), source };
        let Some(text) = bounded_read::read_text(file).map_err(io)? else { return Ok(None) };
        let key = Self::restore(&Secret::new(text));
        key.map(Some).ok_or_else(|| DeviceKeyError::Invalid(file.to_path_buf()))
    }

    /// Writes the key to a file that only the user can read.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError::Io`] if the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), DeviceKeyError> {
        let io = |source| DeviceKeyError::Io { path: file.to_path_buf(), source };
        atomic_file::replace(file, self.secret().reveal()).map_err(io)
    }
}

/// Omits the secret.
impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey({})", self.public())
    }
}

impl PublicKey {
    /// Parses a public key. Returns `None` if the text is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
        (bytes.len() == KEY_LEN).then_some(Self(bytes))
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, &signature).is_ok()
    }
}

/// Formats the key as base64url.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn key_is_kept_privately_and_restored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("device-key");
        assert!(DeviceKey::read(&file).unwrap().is_none());
        let key = DeviceKey::generate().unwrap();
        key.write(&file).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let again = DeviceKey::read(&file).unwrap().unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(PublicKey::parse(&key.public().to_string()), Some(key.public()));
        assert!(key.public().verifies(b"text", &again.sign(b"text")));
        assert!(!key.public().verifies(b"texT", &again.sign(b"text")));
        assert!(!DeviceKey::generate().unwrap().public().verifies(b"text", &again.sign(b"text")));
        assert!(!format!("{key:?}").contains(key.secret().reveal()));
        std::fs::write(&file, "nonsense").unwrap();
        assert!(matches!(DeviceKey::read(&file), Err(DeviceKeyError::Invalid(_))));
    }
}
