//! Logins to remote servers: tokens, which are stored as secrets, and a list of the servers with a login. The list
//! contains no secrets.
//!
//! - The list is authoritative: without an entry there is no login, so removing an entry logs the user out even if the
//!   keyring is locked. Tokens are valid only if their id equals the entry's id.
//! - A process holds a server's [`LoginLock`] while it changes the tokens, so only one process changes them at a time.
//! - Settings cannot refer to a login's secret, because its name contains a colon.

use super::error::in_thread;
use super::file::lock_folder;
use super::{Secret, SecretError, SecretFileError, SecretName, SecretStore};
use base64::engine::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ironcurtain_paths::{atomic_file, bounded_read};
use ring::digest::{SHA256, digest};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Logins to all servers. All methods except [`Self::lock`] block.
#[derive(Debug, Clone)]
pub struct Logins {
    list: PathBuf,
    /// List of the servers that have refused a request because the user must log in, with their URLs.
    required: PathBuf,
    store: SecretStore,
}

/// Entry in the list of logins. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginRecord {
    /// Random id of the login.
    pub id: String,
    /// URL of the server.
    pub url: String,
    /// Issuer of the authorization server.
    pub issuer: String,
    /// Scopes of the tokens.
    pub scopes: Vec<String>,
    /// Time at which the user must log in again, in seconds since the Unix epoch, or `None` if the login can be renewed
    /// or does not expire.
    #[serde(rename = "endsAt", default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// `true` if the authorization server refused to renew the login.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_expired: bool,
}

/// Exclusive lock on one server's tokens. Dropping it releases the lock.
#[derive(Debug)]
pub struct LoginLock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

impl LoginRecord {
    /// Creates the entry for a new login that can be renewed or does not expire.
    #[must_use]
    pub fn new(id: &str, url: &str, issuer: &str, scopes: &[String]) -> Self {
        let [id, url, issuer] = [id, url, issuer].map(str::to_owned);
        Self { id, url, issuer, scopes: scopes.to_vec(), expires_at: None, is_expired: false }
    }

    /// Returns `true` if the login has expired at this time.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        self.is_expired || self.expires_at.is_some_and(|at| at <= now)
    }
}

impl Logins {
    /// Returns the logins whose tokens are in this store.
    #[must_use]
    pub fn of(store: &SecretStore) -> Self {
        let [list, required] =
            ["logins.json", "logins-required.json"].map(|name| store.path().with_file_name(name));
        Self { list, required, store: store.clone() }
    }

    /// Returns all logins, keyed by server.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be read.
    pub fn all(&self) -> Result<BTreeMap<String, LoginRecord>, SecretError> {
        Ok(read(&self.list)?)
    }

    /// Returns the URLs of the servers that require a login, keyed by server.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be read.
    pub fn required(&self) -> Result<BTreeMap<String, String>, SecretError> {
        Ok(read(&self.required)?)
    }

    /// Records that the server at this URL refused a request because the user must log in. Returns `true` if this was
    /// not yet recorded.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn record_required(&self, server: &str, url: &str) -> Result<bool, SecretError> {
        let before =
            change(&self.required, |all: &mut BTreeMap<_, _>| all.insert(server.to_owned(), url.to_owned()))?;
        Ok(before.as_deref() != Some(url))
    }

    /// Records that the server has accepted a request.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn record_accepted(&self, server: &str) -> Result<(), SecretError> {
        if self.required()?.contains_key(server) {
            change(&self.required, |all: &mut BTreeMap<String, String>| drop(all.remove(server)))?;
        }
        Ok(())
    }

    /// Returns a server's entry, or `None` if there is no entry or the list cannot be read.
    #[must_use]
    pub fn record(&self, server: &str) -> Option<LoginRecord> {
        self.all().ok()?.remove(server)
    }

    /// Returns the tokens for a server.
    ///
    /// # Errors
    /// Returns [`SecretError`] if there are no tokens, or if the storage is locked or cannot be accessed.
    pub fn tokens(&self, server: &str) -> Result<Secret, SecretError> {
        self.store.get(&SecretName::of_login(server))
    }

    /// Locks a server's tokens. Waits at most `timeout` until no other task or process holds the lock.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the lock file cannot be used or the lock is not released in time.
    pub async fn lock(&self, server: &str, timeout: Duration) -> Result<LoginLock, SecretError> {
        let (logins, name) = (self.clone(), server.to_owned());
        let locked = in_thread(timeout, move || logins.wait_for_lock(&name)).await;
        let is_timeout = |problem: &SecretError| matches!(problem, SecretError::Timeout);
        locked.map_err(|problem| match is_timeout(&problem) {
            true => SecretFileError::LoginInUse { server: server.to_owned(), timeout }.into(),
            false => problem,
        })
    }

    fn wait_for_lock(&self, server: &str) -> Result<LoginLock, SecretError> {
        let hash = digest(&SHA256, server.as_bytes());
        let name = URL_SAFE_NO_PAD.encode(hash.as_ref().get(..9).unwrap_or_default());
        let path = self.list.with_file_name(format!("login-{name}.lock"));
        let at = |source| SecretFileError::Logins { path: path.clone(), source };
        let file = bounded_read::open_own(&path).map_err(at)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|problem| at(problem.into()))?;
        Ok(LoginLock(file))
    }

    /// Asks the user to unlock the keyring if it is locked, so that tokens can be stored without a question afterwards. Does
    /// nothing if the encrypted file is used.
    ///
    /// # Errors
    /// Returns [`SecretError`] if there is no keyring, or if the user did not unlock it.
    pub fn unlock_keyring(&self) -> Result<(), SecretError> {
        self.store.unlock_keyring()
    }

    /// Returns the tokens for a server even if they are from an earlier login, or `None` if there are no tokens.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the storage is locked or cannot be accessed.
    pub fn stored_tokens(&self, server: &str) -> Result<Option<Secret>, SecretError> {
        match self.tokens(server) {
            Ok(secret) => Ok(Some(secret)),
            Err(SecretError::Missing(_) | SecretError::File(SecretFileError::Missing(_))) => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Stores a login in place of an earlier login, whose tokens are `replaced`. The caller must hold the server's
    /// [`LoginLock`].
    ///
    /// # Errors
    /// Returns [`SecretError`] if the storage is locked or cannot be accessed. Then the earlier login is restored if that
    /// is possible.
    pub fn save(
        &self,
        server: &str,
        (record, tokens): (&LoginRecord, &Secret),
        replaced: Option<&Secret>,
    ) -> Result<(), SecretError> {
        // An unreadable list is an error before anything is changed.
        let previous = self.all()?.remove(server);
        let name = SecretName::of_login(server);
        self.store.set(&name, tokens)?;
        let inserted = self.insert_record(server, record);
        if inserted.is_err() {
            // Ignore the errors: if the ids in the list and in the tokens differ, the tokens are not used.
            let _ = match replaced {
                Some(replaced) => self.store.set(&name, replaced),
                None => self.store.remove(&name),
            };
            let _ = change(&self.list, |all: &mut BTreeMap<String, LoginRecord>| {
                // The user may have logged out in the meantime.
                if all.get(server).is_some_and(|listed| listed.id == record.id) {
                    all.remove(server);
                    all.extend(previous.map(|previous| (server.to_owned(), previous)));
                }
            });
        }
        inserted
    }

    /// Adds an entry for a login whose tokens are already stored. The caller must hold the server's [`LoginLock`].
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn insert_record(&self, server: &str, record: &LoginRecord) -> Result<(), SecretError> {
        change(&self.list, |all: &mut BTreeMap<_, _>| drop(all.insert(server.to_owned(), record.clone())))?;
        // Ignore the error: this list is only a hint, and the next accepted request corrects it.
        let _ = self.record_accepted(server);
        Ok(())
    }

    /// Replaces the tokens of the login with this id. If the user has logged in again or logged out since, changes
    /// nothing and returns `false`. The caller must hold the server's [`LoginLock`].
    ///
    /// # Errors
    /// Returns the same errors as [`Self::save`].
    pub fn renew(
        &self,
        server: &str,
        (id, expires_at): (&str, Option<u64>),
        tokens: &Secret,
    ) -> Result<bool, SecretError> {
        let record = self.all()?.remove(server).filter(|record| record.id == id);
        let Some(record) = record else { return Ok(false) };
        self.store.set(&SecretName::of_login(server), tokens)?;
        if record.is_expired || record.expires_at != expires_at {
            self.update(server, id, |record| (record.is_expired, record.expires_at) = (false, expires_at))?;
        }
        Ok(true)
    }

    /// Marks the login with this id as expired. Does nothing if the user has logged in again or logged out since.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn record_expired(&self, server: &str, id: &str) -> Result<(), SecretError> {
        self.update(server, id, |record| record.is_expired = true)
    }

    fn update(
        &self,
        server: &str,
        id: &str,
        update: impl FnOnce(&mut LoginRecord),
    ) -> Result<(), SecretError> {
        change(&self.list, |all: &mut BTreeMap<String, LoginRecord>| {
            if let Some(record) = all.get_mut(server).filter(|record| record.id == id) {
                update(record);
            }
        })
    }

    /// Logs the user out by removing a server's entry. Returns the entry, if there was one.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn remove_record(&self, server: &str) -> Result<Option<LoginRecord>, SecretError> {
        change(&self.list, |all: &mut BTreeMap<String, LoginRecord>| all.remove(server))
    }

    /// Removes a server's tokens, even if they are from an earlier login. The caller must hold the server's [`LoginLock`].
    ///
    /// # Errors
    /// Returns [`SecretError`] if there are no tokens, or if the storage is locked or cannot be accessed.
    pub fn remove_tokens(&self, server: &str) -> Result<(), SecretError> {
        self.store.remove(&SecretName::of_login(server))
    }
}

fn read<T: DeserializeOwned + Default>(list: &Path) -> Result<T, SecretFileError> {
    match bounded_read::read_text(list).map_err(|problem| list_error(list, problem))? {
        Some(text) => serde_json::from_str(&text).map_err(|problem| list_error(list, problem.into())),
        None => Ok(T::default()),
    }
}

/// Changes a list while holding the folder's lock.
fn change<T: DeserializeOwned + Default + Serialize, R>(
    list: &Path,
    change: impl FnOnce(&mut T) -> R,
) -> Result<R, SecretError> {
    let _lock = lock_folder(list)?;
    let mut all = read(list)?;
    let done = change(&mut all);
    let text = serde_json::to_vec_pretty(&all).map_err(|problem| list_error(list, problem.into()))?;
    atomic_file::replace_bytes(list, &text).map_err(|problem| list_error(list, problem))?;
    Ok(done)
}

fn list_error(list: &Path, source: io::Error) -> SecretFileError {
    SecretFileError::Logins { path: list.to_path_buf(), source }
}

#[cfg(test)]
mod tests;
