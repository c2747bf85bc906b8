//! Storage of secrets: the keyring, or an encrypted file that the user created in the absence of a keyring.
//!
//! - INVARIANT: the two are never mixed, and only the user switches between them. While the file exists, it is used,
//!   even if a keyring becomes available on D-Bus.

use super::file::{OpenFile, is_there};
use super::{Keyring, Secret, SecretError, SecretFileError, SecretName, Shelf};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Handle to the secrets, with the file's passphrase once it was entered. All calls block.
#[derive(Debug, Clone)]
pub struct SecretStore {
    path: PathBuf,
    open: Arc<Mutex<Option<OpenFile>>>,
}

/// Place of the secrets.
#[derive(Debug)]
pub enum SecretPlace {
    /// The keyring.
    Keyring,
    /// The encrypted file.
    File {
        /// True if the passphrase has not been entered in this process.
        is_locked: bool,
    },
    /// No place yet, for this reason.
    Nowhere(SecretError),
}

impl SecretStore {
    /// Creates a locked store for a state folder.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { path: state.join("secrets.age"), open: Arc::default() }
    }

    /// Returns the path of the encrypted file, which may not exist.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the encrypted file is locked, or `None` if it does not exist. Does not query the keyring.
    ///
    /// # Errors
    /// Returns a [`SecretError`] if this cannot be determined.
    pub fn file_is_locked(&self) -> Result<Option<bool>, SecretError> {
        Ok(is_there(&self.path)?.then(|| match self.open.try_lock() {
            Ok(held) => held.is_none(),
            Err(TryLockError::Poisoned(held)) => held.into_inner().is_none(),
            // Another thread holds the open file.
            Err(TryLockError::WouldBlock) => false,
        }))
    }

    /// Returns the current place of the secrets.
    ///
    /// # Errors
    /// Returns a [`SecretError`] if this cannot be determined.
    pub fn place(&self) -> Result<SecretPlace, SecretError> {
        if let Some(is_locked) = self.file_is_locked()? {
            return Ok(SecretPlace::File { is_locked });
        }
        Ok(match Keyring::open(Shelf::Secrets) {
            Ok(_) => SecretPlace::Keyring,
            Err(problem) => SecretPlace::Nowhere(problem),
        })
    }

    /// Creates the encrypted file and unlocks it; secrets go there from then on.
    ///
    /// # Errors
    /// Returns a [`SecretError`] if there is a keyring.
    pub fn make(&self, passphrase: Secret) -> Result<(), SecretError> {
        match self.place()? {
            SecretPlace::Keyring => Err(SecretFileError::KeyringThere.into()),
            SecretPlace::File { .. } => Err(SecretFileError::There(self.path.clone()).into()),
            SecretPlace::Nowhere(_) => {
                *self.held() = Some(OpenFile::make(&self.path, passphrase)?);
                Ok(())
            }
        }
    }

    /// Unlocks the encrypted file until it is locked or this process exits.
    ///
    /// # Errors
    /// Returns a [`SecretError`] and leaves the store unchanged.
    pub fn unlock(&self, passphrase: Secret) -> Result<(), SecretError> {
        if !is_there(&self.path)? {
            return Err(SecretFileError::None(self.path.clone()).into());
        }
        let open = OpenFile::open(&self.path, passphrase)?;
        *self.held() = Some(open);
        Ok(())
    }

    /// Drops the passphrase and the decrypted secrets.
    pub fn lock(&self) {
        *self.held() = None;
    }

    /// Returns the secret with this name.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn get(&self, name: &SecretName) -> Result<Secret, SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.get(name);
        }
        let missing = || SecretFileError::Missing(name.clone());
        self.in_file(|file| file.contents()?.get(name).cloned().ok_or_else(missing))
    }

    /// Stores a secret, replacing one with the same name.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.set(name, secret);
        }
        self.in_file(|file| {
            file.change(|all| {
                all.insert(name.clone(), secret.clone());
                Ok(())
            })
        })
    }

    /// Stores secrets under unused names and verifies that they were stored.
    ///
    /// # Errors
    /// Returns a [`SecretError`] before storing anything if a name is in use.
    pub fn add<'a>(
        &self,
        secrets: impl Iterator<Item = (&'a SecretName, &'a Secret)> + Clone,
    ) -> Result<(), SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.add(secrets);
        }
        self.in_file(|file| {
            file.change(|all| {
                for (name, secret) in secrets {
                    match all.get(name) {
                        Some(there) if there != secret => return Err(SecretFileError::Taken(name.clone())),
                        Some(_) => {}
                        None => drop(all.insert(name.clone(), secret.clone())),
                    }
                }
                Ok(())
            })
        })
    }

    /// Returns the names of all secrets.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn list(&self) -> Result<Vec<SecretName>, SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.list();
        }
        self.in_file(|file| Ok(file.contents()?.keys().cloned().collect()))
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn remove(&self, name: &SecretName) -> Result<(), SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.remove(name);
        }
        let missing = || SecretFileError::Missing(name.clone());
        self.in_file(|file| file.change(|all| all.remove(name).map(drop).ok_or_else(missing)))
    }

    fn in_file<T>(
        &self,
        ask: impl FnOnce(&mut OpenFile) -> Result<T, SecretFileError>,
    ) -> Result<T, SecretError> {
        let locked = || SecretFileError::Locked(self.path.clone());
        Ok(ask(self.held().as_mut().ok_or_else(locked)?)?)
    }

    fn held(&self) -> MutexGuard<'_, Option<OpenFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
