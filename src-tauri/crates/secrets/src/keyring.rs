//! Access to the Secret Service of the user's desktop.
//!
//! - Every call can block while the desktop asks the user to unlock the keyring, so callers use `with_unlock_timeout`.

use super::{Secret, SecretError, SecretName};
use keyring_core::api::CredentialStoreApi;
use keyring_core::{Entry, Error as StoreError};
use secret_service::EncryptionType;
use secret_service::blocking::SecretService;
use std::collections::HashMap;
use std::sync::Arc;
use zbus_secret_service_keyring_store::Store;

/// Section of the keyring, by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyringSection {
    /// The user's secrets for servers.
    Secrets,
    /// IronCurtain's own data about the audit log.
    AuditLog,
}

impl KeyringSection {
    fn service(self) -> &'static str {
        match self {
            Self::Secrets => "ironcurtain",
            Self::AuditLog => "ironcurtain-record",
        }
    }
}

/// Connection to the keyring, limited to one section. All methods block.
#[derive(Debug)]
pub struct Keyring {
    store: Arc<Store>,
    section: KeyringSection,
}

impl Keyring {
    /// Connects to the keyring.
    ///
    /// # Errors
    /// Returns [`SecretError::NoKeyring`] if no Secret Service answers.
    pub fn open(section: KeyringSection) -> Result<Self, SecretError> {
        let store = Store::new().map_err(|problem| SecretError::NoKeyring(innermost(&problem)))?;
        Ok(Self { store, section })
    }

    /// Connects without prompting the user. Returns `None` if the keyring is locked.
    ///
    /// # Errors
    /// Returns [`SecretError::NoKeyring`] if no Secret Service answers.
    pub fn open_unlocked(section: KeyringSection) -> Result<Option<Self>, SecretError> {
        let no_keyring = |problem: secret_service::Error| SecretError::NoKeyring(problem.to_string());
        let service = SecretService::connect(EncryptionType::Plain).map_err(no_keyring)?;
        let collection = service.get_default_collection().map_err(no_keyring)?;
        let is_locked = collection.is_locked().map_err(no_keyring)?;
        if is_locked { Ok(None) } else { Self::open(section).map(Some) }
    }

    /// Asks the user to unlock the keyring if it is locked. Does nothing if it has no collection yet.
    ///
    /// # Errors
    /// Returns [`SecretError::NoKeyring`] if no Secret Service answers, or [`SecretError::Locked`] if the user did not unlock
    /// the keyring.
    pub fn unlock() -> Result<(), SecretError> {
        let no_keyring = |problem: secret_service::Error| SecretError::NoKeyring(problem.to_string());
        let locked = |problem: secret_service::Error| SecretError::Locked(problem.to_string());
        let service = SecretService::connect(EncryptionType::Plain).map_err(no_keyring)?;
        let Ok(collection) = service.get_default_collection() else { return Ok(()) };
        if collection.is_locked().map_err(locked)? {
            collection.unlock().map_err(locked)?;
        }
        Ok(())
    }

    /// Returns the secret with this name.
    ///
    /// # Errors
    /// Returns [`SecretError::Missing`] if the name is not in use, or another error if the keyring cannot be accessed.
    pub fn get(&self, name: &SecretName) -> Result<Secret, SecretError> {
        let bytes = self.entry(name)?.get_secret().map_err(|problem| access_error(problem, name))?;
        String::from_utf8(bytes).map(Secret::new).map_err(|_| SecretError::NotUtf8(name.clone()))
    }

    /// Stores a secret, replacing any secret with the same name.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the keyring cannot be accessed.
    pub fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), SecretError> {
        let set = self.entry(name)?.set_secret(secret.reveal().as_bytes());
        set.map_err(|problem| access_error(problem, name))
    }

    /// Stores secrets under names that are not in use and verifies each secret by reading it back.
    ///
    /// # Errors
    /// Returns [`SecretError::NameInUse`], without storing anything, if a different secret has one of the names. Also
    /// returns errors that occur while storing.
    pub fn add<'a>(
        &self,
        secrets: impl Iterator<Item = (&'a SecretName, &'a Secret)> + Clone,
    ) -> Result<(), SecretError> {
        for (name, secret) in secrets.clone() {
            match self.get(name) {
                Ok(existing) if existing != *secret => return Err(SecretError::NameInUse(name.clone())),
                Ok(_) | Err(SecretError::Missing(_)) => {}
                Err(problem) => return Err(problem),
            }
        }
        for (name, secret) in secrets {
            self.set(name, secret)?;
            if self.get(name)? != *secret {
                return Err(SecretError::Failed(format!("it returned a different value for `{name}`")));
            }
        }
        Ok(())
    }

    /// Returns the names of all secrets in the section, sorted.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the keyring cannot be accessed.
    pub fn list(&self) -> Result<Vec<SecretName>, SecretError> {
        let found = self.store.search(&HashMap::from([("service", self.section.service())]));
        let found = found.map_err(|problem| convert_error(&problem))?;
        let name = |entry: &Entry| SecretName::try_from(entry.get_specifiers()?.1.as_str()).ok();
        let mut names: Vec<SecretName> = found.iter().filter_map(name).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Removes all secrets with this name.
    ///
    /// # Errors
    /// Returns [`SecretError::Missing`] if the name is not in use, or another error if the keyring cannot be accessed.
    pub fn remove(&self, name: &SecretName) -> Result<(), SecretError> {
        match self.entry(name)?.delete_credential() {
            Err(StoreError::Ambiguous(all)) => all
                .iter()
                .try_for_each(|one| one.delete_credential().map_err(|problem| access_error(problem, name))),
            removed => removed.map_err(|problem| access_error(problem, name)),
        }
    }

    fn entry(&self, name: &SecretName) -> Result<Entry, SecretError> {
        let label = format!("IronCurtain: {name}");
        let label = HashMap::from([("label", label.as_str())]);
        let entry = self.store.build(self.section.service(), name.as_str(), Some(&label));
        entry.map_err(|problem| convert_error(&problem))
    }
}

fn access_error(problem: StoreError, name: &SecretName) -> SecretError {
    if let StoreError::NoEntry = problem {
        return SecretError::Missing(name.clone());
    }
    if let StoreError::Ambiguous(_) = problem {
        return SecretError::Duplicate(name.clone());
    }
    convert_error(&problem)
}

/// Converts an error. Drops the secret bytes that an encoding error contains.
fn convert_error(problem: &StoreError) -> SecretError {
    let message = innermost(problem);
    if let StoreError::NoStorageAccess(_) = problem {
        SecretError::Locked(message)
    } else {
        SecretError::Failed(message)
    }
}

/// Returns the message of the innermost source of an error.
fn innermost(problem: &StoreError) -> String {
    let mut innermost: &dyn std::error::Error = problem;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
