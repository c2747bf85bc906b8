//! Storage of secrets: the keyring, or an encrypted file if the user created one because there was no keyring.
//!
//! - INVARIANT: only one of the two is used, and only the user switches between them. If the file exists, it is used
//!   even if a keyring becomes available.

use super::file::{OpenFile, file_exists};
use super::{Keyring, KeyringSection, Secret, SecretError, SecretFileError, SecretName};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Handle to the stored secrets. Contains the file's passphrase once the user has entered it. All methods block.
/// Clones share the state.
#[derive(Debug, Clone)]
pub struct SecretStore {
    path: PathBuf,
    open: Arc<Mutex<Option<OpenFile>>>,
}

/// Storage that is in use.
#[derive(Debug)]
pub enum SecretBackend {
    /// The keyring of the desktop.
    Keyring,
    /// The encrypted file.
    File {
        /// `true` if the passphrase has not been entered in this process.
        is_locked: bool,
    },
    /// No storage: the file does not exist, and the keyring cannot be used. Contains the reason.
    Unavailable(SecretError),
}

impl SecretStore {
    /// Creates a handle for a state directory. If the encrypted file exists, it is locked.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { path: state.join("secrets.age"), open: Arc::default() }
    }

    /// Returns the path of the encrypted file, which may not exist.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if the encrypted file is locked, or `None` if the file does not exist. Does not access the
    /// keyring.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the path cannot be accessed.
    pub fn file_is_locked(&self) -> Result<Option<bool>, SecretError> {
        Ok(file_exists(&self.path)?.then(|| match self.open.try_lock() {
            Ok(open) => open.is_none(),
            Err(TryLockError::Poisoned(open)) => open.into_inner().is_none(),
            // Another thread is using the file, so the file is reported as unlocked.
            Err(TryLockError::WouldBlock) => false,
        }))
    }

    /// Returns the storage that is in use.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the path of the file cannot be accessed.
    pub fn backend(&self) -> Result<SecretBackend, SecretError> {
        if let Some(is_locked) = self.file_is_locked()? {
            return Ok(SecretBackend::File { is_locked });
        }
        Ok(match Keyring::open(KeyringSection::Secrets) {
            Ok(_) => SecretBackend::Keyring,
            Err(problem) => SecretBackend::Unavailable(problem),
        })
    }

    /// Creates the encrypted file and unlocks it. Secrets are stored there from then on.
    ///
    /// # Errors
    /// Returns [`SecretError`] if a keyring is available, the file exists, or the passphrase is too short.
    pub fn create_file(&self, passphrase: Secret) -> Result<(), SecretError> {
        match self.backend()? {
            SecretBackend::Keyring => Err(SecretFileError::KeyringAvailable.into()),
            SecretBackend::File { .. } => Err(SecretFileError::AlreadyExists(self.path.clone()).into()),
            SecretBackend::Unavailable(_) => {
                *self.lock_open_file() = Some(OpenFile::create(&self.path, passphrase)?);
                Ok(())
            }
        }
    }

    /// Unlocks the encrypted file until [`Self::lock`] is called or the process exits.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the file cannot be read or the passphrase is wrong. The state is then unchanged.
    pub fn unlock(&self, passphrase: Secret) -> Result<(), SecretError> {
        if !file_exists(&self.path)? {
            return Err(SecretFileError::NotFound(self.path.clone()).into());
        }
        let open = OpenFile::open(&self.path, passphrase)?;
        *self.lock_open_file() = Some(open);
        Ok(())
    }

    /// Drops the passphrase and the decrypted secrets.
    pub fn lock(&self) {
        *self.lock_open_file() = None;
    }

    /// Asks the user to unlock the keyring if it is locked. Does nothing if the encrypted file is used.
    ///
    /// # Errors
    /// Returns [`SecretError`] if there is no keyring, or if the user did not unlock it.
    pub(super) fn unlock_keyring(&self) -> Result<(), SecretError> {
        if file_exists(&self.path)? { Ok(()) } else { Keyring::unlock() }
    }

    /// Returns the secret with this name.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the name is not in use, or if the storage is locked or cannot be accessed.
    pub fn get(&self, name: &SecretName) -> Result<Secret, SecretError> {
        if !file_exists(&self.path)? {
            return Keyring::open(KeyringSection::Secrets)?.get(name);
        }
        let missing = || SecretFileError::Missing(name.clone());
        self.in_file(|file| file.contents()?.get(name).cloned().ok_or_else(missing))
    }

    /// Stores a secret, replacing any secret with the same name.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the storage is locked or cannot be accessed.
    pub fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), SecretError> {
        if !file_exists(&self.path)? {
            return Keyring::open(KeyringSection::Secrets)?.set(name, secret);
        }
        self.in_file(|file| {
            file.change(|all| {
                all.insert(name.clone(), secret.clone());
                Ok(())
            })
        })
    }

    /// Stores secrets under names that are not in use.
    ///
    /// # Errors
    /// Returns [`SecretError`], without storing anything, if a different secret has one of the names.
    pub fn add<'a>(
        &self,
        secrets: impl Iterator<Item = (&'a SecretName, &'a Secret)> + Clone,
    ) -> Result<(), SecretError> {
        if !file_exists(&self.path)? {
            return Keyring::open(KeyringSection::Secrets)?.add(secrets);
        }
        self.in_file(|file| {
            file.change(|all| {
                for (name, secret) in secrets {
                    match all.get(name) {
                        Some(existing) if existing != secret => {
                            return Err(SecretFileError::NameInUse(name.clone()));
                        }
                        Some(_) => {}
                        None => drop(all.insert(name.clone(), secret.clone())),
                    }
                }
                Ok(())
            })
        })
    }

    /// Returns the names of all secrets, sorted.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the storage is locked or cannot be accessed.
    pub fn list(&self) -> Result<Vec<SecretName>, SecretError> {
        if !file_exists(&self.path)? {
            return Keyring::open(KeyringSection::Secrets)?.list();
        }
        self.in_file(|file| Ok(file.contents()?.keys().filter(|name| !name.is_login()).cloned().collect()))
    }

    /// Removes the secret with this name.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the name is not in use, or if the storage is locked or cannot be accessed.
    pub fn remove(&self, name: &SecretName) -> Result<(), SecretError> {
        if !file_exists(&self.path)? {
            return Keyring::open(KeyringSection::Secrets)?.remove(name);
        }
        let missing = || SecretFileError::Missing(name.clone());
        self.in_file(|file| file.change(|all| all.remove(name).map(drop).ok_or_else(missing)))
    }

    fn in_file<T>(
        &self,
        ask: impl FnOnce(&mut OpenFile) -> Result<T, SecretFileError>,
    ) -> Result<T, SecretError> {
        let locked = || SecretFileError::Locked(self.path.clone());
        Ok(ask(self.lock_open_file().as_mut().ok_or_else(locked)?)?)
    }

    fn lock_open_file(&self) -> MutexGuard<'_, Option<OpenFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
