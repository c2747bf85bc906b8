//! Logins at remote servers. The tokens are stored as secrets, and a list without secrets names the servers with a
//! login.
//!
//! - The list is authoritative: without an entry there is no login. Removing an entry therefore ends the login even
//!   if the keyring is locked.
//! - Settings cannot refer to a login, because its name contains a colon.

use super::file::turn;
use super::{Secret, SecretError, SecretFileError, SecretName, SecretStore};
use ironcurtain_paths::{atomic_file, random_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Logins of all servers. All methods block.
#[derive(Debug, Clone)]
pub struct Logins {
    list: PathBuf,
    store: SecretStore,
}

/// Description of a login, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginMark {
    /// Random id of the login.
    pub id: String,
    /// Address of the server.
    pub url: String,
    /// Authorization server.
    pub issuer: String,
    /// Scopes that the user approved.
    pub scopes: Vec<String>,
}

impl LoginMark {
    /// Creates the description of a new login.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no random bytes.
    pub fn new(url: &str, issuer: &str, scopes: &[String]) -> io::Result<Self> {
        let (id, url, issuer) = (random_name()?, url.to_owned(), issuer.to_owned());
        Ok(Self { id, url, issuer, scopes: scopes.to_vec() })
    }
}

impl Logins {
    /// Creates a handle that keeps the tokens in this store.
    #[must_use]
    pub fn of(store: &SecretStore) -> Self {
        Self { list: store.path().with_file_name("logins.json"), store: store.clone() }
    }

    /// Returns all logins, keyed by server.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be read.
    pub fn all(&self) -> Result<BTreeMap<String, LoginMark>, SecretError> {
        match std::fs::read(&self.list) {
            Ok(text) => Ok(serde_json::from_slice(&text).map_err(|problem| self.at(problem.into()))?),
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(problem) => Err(self.at(problem).into()),
        }
    }

    /// Returns a server's login, or `None` if there is none or the list cannot be read.
    #[must_use]
    pub fn mark(&self, server: &str) -> Option<LoginMark> {
        self.all().ok()?.remove(server)
    }

    /// Returns the tokens for a server.
    ///
    /// # Errors
    /// Returns [`SecretError`] if there are none, or if the storage is locked or cannot be accessed.
    pub fn tokens(&self, server: &str) -> Result<Secret, SecretError> {
        self.store.get(&SecretName::of_login(server))
    }

    /// Stores a login, replacing any earlier one.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the storage is locked or cannot be accessed.
    pub fn begin(&self, server: &str, mark: &LoginMark, tokens: &Secret) -> Result<(), SecretError> {
        self.store.set(&SecretName::of_login(server), tokens)?;
        self.note(server, mark)
    }

    /// Adds a login whose tokens are already stored to the list.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn note(&self, server: &str, mark: &LoginMark) -> Result<(), SecretError> {
        self.change(|all| drop(all.insert(server.to_owned(), mark.clone())))
    }

    /// Replaces the tokens of a login, unless the user has logged in or out since.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::begin`].
    pub fn renew(&self, server: &str, id: &str, tokens: &Secret) -> Result<(), SecretError> {
        if self.mark(server).is_some_and(|mark| mark.id == id) {
            self.store.set(&SecretName::of_login(server), tokens)?;
        }
        Ok(())
    }

    /// Ends a login by removing it from the list. Returns the login if there was one.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written.
    pub fn strike(&self, server: &str) -> Result<Option<LoginMark>, SecretError> {
        let mut struck = None;
        self.change(|all| struck = all.remove(server))?;
        Ok(struck)
    }

    /// Ends a login and removes its tokens. Returns the login if there was one.
    ///
    /// # Errors
    /// Returns [`SecretError`] if the list cannot be written. If only the tokens cannot be removed, returns an error
    /// although the login has ended.
    pub fn end(&self, server: &str) -> Result<Option<LoginMark>, SecretError> {
        let struck = self.strike(server)?;
        match self.store.remove(&SecretName::of_login(server)) {
            Ok(()) | Err(SecretError::Missing(_) | SecretError::File(SecretFileError::Missing(_))) => {
                Ok(struck)
            }
            Err(problem) => Err(problem),
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, LoginMark>)) -> Result<(), SecretError> {
        let _turn = turn(&self.list)?;
        let mut all = self.all()?;
        change(&mut all);
        let text = serde_json::to_vec_pretty(&all).map_err(|problem| self.at(problem.into()))?;
        Ok(atomic_file::replace_bytes(&self.list, &text).map_err(|problem| self.at(problem))?)
    }

    fn at(&self, source: io::Error) -> SecretFileError {
        SecretFileError::Io { path: self.list.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::named;

    #[test]
    fn a_login_is_listed_until_it_ends_and_never_a_secret_of_settings() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::of(dir.path());
        store.make(Secret::new("four words are enough".into())).unwrap();
        let logins = Logins::of(&store);
        let mark = LoginMark::new("https://a.example/mcp", "https://auth.example", &["read".into()]).unwrap();
        let tokens = Secret::new("tokens-1".into());
        logins.begin("far", &mark, &tokens).unwrap();
        assert_eq!((logins.mark("far"), logins.tokens("far").unwrap()), (Some(mark.clone()), tokens.clone()));
        assert_eq!(store.list().unwrap(), []);
        assert!(named("keyring:login:far").is_err(), "settings cannot refer to it");
        let written = std::fs::read_to_string(dir.path().join("logins.json")).unwrap();
        assert!(written.contains("https://auth.example") && !written.contains("tokens-1"));

        let renewed = Secret::new("tokens-2".into());
        logins.renew("far", "another login", &renewed).unwrap();
        assert_eq!(logins.tokens("far").unwrap(), tokens, "a login that was replaced is not renewed");
        logins.renew("far", &mark.id, &renewed).unwrap();
        assert_eq!(logins.tokens("far").unwrap(), renewed);
        store.lock();
        assert!(logins.end("far").is_err());
        assert_eq!(logins.mark("far"), None, "it ends even if its tokens cannot be removed");
        assert_eq!(logins.end("near").ok(), None);
    }
}
