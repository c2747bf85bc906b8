//! The one place that secrets are in here: the keyring, or the encrypted file that the person chose where there is none.
//!
//! - INVARIANT: the two are never mixed, and nobody changes from one to the other by themselves. While the file is there, it is
//!   the place, whatever answers on D-Bus.

use super::file::{OpenFile, is_there};
use super::{Keyring, Secret, SecretError, SecretFileError, SecretName, Shelf};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The secrets, and the passphrase of their file while somebody who typed it is here. All calls wait.
#[derive(Debug, Clone)]
pub struct SecretStore {
    path: PathBuf,
    open: Arc<Mutex<Option<OpenFile>>>,
}

/// The place that secrets are in.
#[derive(Debug)]
pub enum SecretPlace {
    /// The keyring.
    Keyring,
    /// The encrypted file.
    File {
        /// Nobody has typed its passphrase here.
        is_locked: bool,
    },
    /// None yet.
    Nowhere(SecretError),
}

impl SecretStore {
    /// The one of a state folder, locked.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        Self { path: state.join("secrets.age"), open: Arc::default() }
    }

    /// The encrypted file, whether it is there or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The encrypted file is the place: `true` while it is locked. Asks no keyring.
    ///
    /// # Errors
    /// [`SecretError`], where it cannot be seen.
    pub fn file_is_locked(&self) -> Result<Option<bool>, SecretError> {
        Ok(is_there(&self.path)?.then(|| match self.open.try_lock() {
            Ok(held) => held.is_none(),
            Err(TryLockError::Poisoned(held)) => held.into_inner().is_none(),
            // Who has it now waits for nothing but the file.
            Err(TryLockError::WouldBlock) => false,
        }))
    }

    /// The place that secrets are in now.
    ///
    /// # Errors
    /// [`SecretError`], where it cannot be seen.
    pub fn place(&self) -> Result<SecretPlace, SecretError> {
        if let Some(is_locked) = self.file_is_locked()? {
            return Ok(SecretPlace::File { is_locked });
        }
        Ok(match Keyring::open(Shelf::Secrets) {
            Ok(_) => SecretPlace::Keyring,
            Err(problem) => SecretPlace::Nowhere(problem),
        })
    }

    /// Makes the encrypted file, which is the place from then on, and is unlocked.
    ///
    /// # Errors
    /// [`SecretError`], where there is a keyring.
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

    /// Opens the encrypted file with its passphrase, until it is locked or this process ends.
    ///
    /// # Errors
    /// [`SecretError`]; then it is as it was.
    pub fn unlock(&self, passphrase: Secret) -> Result<(), SecretError> {
        if !is_there(&self.path)? {
            return Err(SecretFileError::None(self.path.clone()).into());
        }
        let open = OpenFile::open(&self.path, passphrase)?;
        *self.held() = Some(open);
        Ok(())
    }

    /// Forgets the passphrase and what it opened.
    pub fn lock(&self) {
        *self.held() = None;
    }

    /// The secret of this name.
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

    /// Keeps a secret, in the place of one of the same name.
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

    /// Keeps secrets under names that no others have, and makes sure that they are there: all of them, or it says which not.
    ///
    /// # Errors
    /// [`SecretError`], before anything is kept where a name is taken.
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

    /// The names of all secrets.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn list(&self) -> Result<Vec<SecretName>, SecretError> {
        if !is_there(&self.path)? {
            return Keyring::open(Shelf::Secrets)?.list();
        }
        self.in_file(|file| Ok(file.contents()?.keys().cloned().collect()))
    }

    /// Forgets a secret.
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
