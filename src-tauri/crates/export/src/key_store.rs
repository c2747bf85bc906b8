//! Storage of the device key: the keyring or, if there is no keyring, a file that only the user can read.
//!
//! - The file with the public key records that a key exists, so a locked keyring does not lead to a second key.

use crate::key::{DeviceKey, DeviceKeyError, PublicKey};
use ironcurtain_paths::{atomic_file, bounded_read};
use ironcurtain_secrets::{Keyring, KeyringSection, SecretError, SecretName};
use ring::digest;
use std::path::{Path, PathBuf};

/// Storage of one state directory's device key. All methods block.
#[derive(Debug, Clone)]
pub struct KeyStore {
    dir: PathBuf,
    has_keyring: bool,
}

impl KeyStore {
    /// Creates the storage for a state directory. If `has_keyring` is `false`, the key is always in a file.
    #[must_use]
    pub fn new(dir: &Path, has_keyring: bool) -> Self {
        Self { dir: dir.to_path_buf(), has_keyring }
    }

    /// Returns the path of the file with the public key.
    #[must_use]
    pub fn public_file(&self) -> PathBuf {
        self.dir.join("device-key.pub")
    }

    /// Returns the public key, or `None` if there is no key yet.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError`] if the file cannot be read or is malformed.
    pub fn public(&self) -> Result<Option<PublicKey>, DeviceKeyError> {
        let file = self.public_file();
        let text = bounded_read::read_text(&file)
            .map_err(|source| DeviceKeyError::Io { path: file.clone(), source })?;
        let parse = |text: String| PublicKey::parse(&text).ok_or(DeviceKeyError::Invalid(file));
        text.map(parse).transpose()
    }

    /// Returns the key, creating it on the first call. Never prompts to unlock the keyring.
    ///
    /// # Errors
    /// Returns [`DeviceKeyError`] if the key is missing, locked or invalid, or cannot be stored.
    pub fn open_or_create(&self) -> Result<DeviceKey, DeviceKeyError> {
        let secret = self.dir.join("device-key");
        let public = self.public()?;
        let in_file = DeviceKey::read(&secret)?;
        let keyring = if in_file.is_none() && self.has_keyring { self.keyring()? } else { None };
        let in_keyring = match &keyring {
            Some(keyring) => self.load_from_keyring(keyring)?,
            None => None,
        };
        if let Some(key) = in_file.or(in_keyring) {
            return match public {
                Some(public) if public != key.public() => Err(DeviceKeyError::Mismatch(self.public_file())),
                Some(_) => Ok(key),
                // The file can be missing if the process was killed between the two steps below.
                None => self.write_public(&key.public()).map(|()| key),
            };
        }
        if public.is_some() {
            return Err(DeviceKeyError::Missing(self.public_file()));
        }
        let key = DeviceKey::generate()?;
        match &keyring {
            Some(keyring) => keyring.set(&self.name()?, &key.secret())?,
            None => key.write(&secret)?,
        }
        self.write_public(&key.public())?;
        Ok(key)
    }

    /// Opens the keyring. Returns `None` if no keyring is available.
    fn keyring(&self) -> Result<Option<Keyring>, DeviceKeyError> {
        match Keyring::open_unlocked(KeyringSection::AuditLog) {
            Ok(Some(keyring)) => Ok(Some(keyring)),
            Ok(None) => Err(DeviceKeyError::Locked),
            Err(SecretError::NoKeyring(_)) => Ok(None),
            Err(problem) => Err(problem.into()),
        }
    }

    fn load_from_keyring(&self, keyring: &Keyring) -> Result<Option<DeviceKey>, DeviceKeyError> {
        match keyring.get(&self.name()?) {
            Ok(secret) => {
                let key = DeviceKey::restore(&secret);
                key.map(Some).ok_or_else(|| DeviceKeyError::Invalid(self.public_file()))
            }
            Err(SecretError::Missing(_)) => Ok(None),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Returns the key's name in the keyring. The name is unique for each state directory.
    fn name(&self) -> Result<SecretName, DeviceKeyError> {
        let dir_hash = digest::digest(&digest::SHA256, self.dir.as_os_str().as_encoded_bytes());
        let dir_hash: String = dir_hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(SecretName::try_from(format!("device-key-{dir_hash}").as_str()).map_err(SecretError::from)?)
    }

    fn write_public(&self, key: &PublicKey) -> Result<(), DeviceKeyError> {
        let file = self.public_file();
        let written = atomic_file::replace(&file, &format!("{key}\n"));
        written.map_err(|source| DeviceKeyError::Io { path: file, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_created_and_a_lost_one_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = KeyStore::new(dir.path(), false);
        assert_eq!(store.public().unwrap(), None);
        let key = store.open_or_create().unwrap();
        assert_eq!(store.public().unwrap(), Some(key.public()));
        assert_eq!(store.open_or_create().unwrap().public(), key.public());
        std::fs::remove_file(store.public_file()).unwrap();
        assert_eq!(store.open_or_create().unwrap().public(), key.public());
        // The public key that the user wrote down would not verify heads signed with a different key.
        DeviceKey::generate().unwrap().write(&dir.path().join("device-key")).unwrap();
        assert!(matches!(store.open_or_create(), Err(DeviceKeyError::Mismatch(_))));
        key.write(&dir.path().join("device-key")).unwrap();
        assert_eq!(store.open_or_create().unwrap().public(), key.public());
        std::fs::remove_file(dir.path().join("device-key")).unwrap();
        assert!(matches!(store.open_or_create(), Err(DeviceKeyError::Missing(_))));
        std::fs::remove_file(store.public_file()).unwrap();
        assert_ne!(store.open_or_create().unwrap().public(), key.public());
    }
}
