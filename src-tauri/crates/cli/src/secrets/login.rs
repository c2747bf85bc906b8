//! Stores logins in the keyring, or in the encrypted file that this process or the trusted process has unlocked.

use super::{ask, make, may_make, open, store, unlocked_elsewhere};
use crate::connection::Connection;
use crate::screen::Screen;
use ironcurtain_admin::login::NewLogin;
use ironcurtain_protocol::{Passphrase, Request};
use ironcurtain_secrets::{LoginMark, Logins, SecretName, SecretPlace, SecretStore};

/// Open store for a login.
pub struct LoginKeeper {
    store: SecretStore,
    /// Connection to the trusted process if it, rather than this process, has unlocked the store.
    unlocked: Option<Connection>,
}

impl LoginKeeper {
    /// Opens or creates the store before the server is contacted. Returns `None` if the user declines to create one.
    pub fn open(screen: Screen) -> anyhow::Result<Option<Self>> {
        let store = store()?;
        let looked = store.clone();
        let mut unlocked = None;
        match ask(move || looked.place())? {
            SecretPlace::Keyring => {}
            SecretPlace::File { .. } => {
                unlocked = unlocked_elsewhere()?;
                if unlocked.is_none() {
                    open(&store)?;
                }
            }
            SecretPlace::Nowhere(_) => {
                if !may_make(&store, screen)? {
                    return Ok(None);
                }
                make(&store, screen)?;
            }
        }
        Ok(Some(Self { store, unlocked }))
    }

    /// Returns the store.
    pub fn store(&self) -> &SecretStore {
        &self.store
    }

    /// Stores a login.
    pub fn keep(self, login: NewLogin) -> anyhow::Result<()> {
        let (logins, NewLogin { server, mark, tokens }) = (Logins::of(&self.store), login);
        let Some(mut connection) = self.unlocked else {
            return ask(move || logins.begin(&server, &mark, &tokens));
        };
        let (name, secret) = (SecretName::of_login(&server), Passphrase::new(tokens.reveal().to_owned()));
        connection.ask(Request::StoreSecret { name: name.to_string(), secret })?;
        ask(move || logins.note(&server, &mark))
    }

    /// Removes a login and deletes its tokens. Returns the login, if there was one.
    pub fn end(server: &str) -> anyhow::Result<Option<LoginMark>> {
        let store = store()?;
        let (logins, name) = (Logins::of(&store), server.to_owned());
        // The login is removed even if its tokens cannot be deleted.
        let ended = ask(move || logins.strike(&name))?;
        let Some(ended) = ended else { return Ok(None) };
        if let Some(mut connection) = unlocked_elsewhere()? {
            connection.ask(Request::RemoveSecret { name: SecretName::of_login(server).to_string() })?;
            return Ok(Some(ended));
        }
        if store.file_is_locked()? == Some(true) {
            open(&store)?;
        }
        let (logins, name) = (Logins::of(&store), server.to_owned());
        ask(move || logins.end(&name))?;
        Ok(Some(ended))
    }
}
