//! Stores logins in the keyring, or in the encrypted file that this process or the trusted process has unlocked.

use super::{ask, make, may_make, open, store, unlocked_elsewhere};
use crate::connection::Connection;
use crate::screen::Screen;
use anyhow::bail;
use ironcurtain_admin::login::NewLogin;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{EndedLoginView, Passphrase, Reply, Request};
use ironcurtain_secrets::{Logins, SecretName, SecretPlace, SecretStore};
use ironcurtain_server::process::{EndedLogin, remove_tokens};

/// Open store for a login.
pub struct LoginKeeper {
    store: SecretStore,
    /// Connection to the trusted process if it has unlocked the encrypted file, or `None` if this process accesses the
    /// store directly.
    unlocked: Option<Connection>,
}

impl LoginKeeper {
    /// Opens or creates the store before the server is contacted. Returns `None` if the user declines to create a
    /// store.
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
        let (logins, NewLogin { server, mark, tokens, .. }) = (Logins::of(&self.store), login);
        let Some(mut connection) = self.unlocked else {
            return ask(move || logins.begin(&server, &mark, &tokens));
        };
        let (turns, of) = (logins.clone(), server.clone());
        let _turn = ask(move || turns.turn(&of))?;
        let (name, secret) = (SecretName::of_login(&server), Passphrase::new(tokens.reveal().to_owned()));
        connection.ask(Request::StoreSecret { name: name.to_string(), secret })?;
        ask(move || logins.note(&server, &mark))
    }

    /// Ends a login and deletes its tokens, even if the login had already ended. Returns the login, or `None` if there
    /// was no login.
    pub fn end(home: &Home, server: &str) -> anyhow::Result<Option<EndedLoginView>> {
        let store = store()?;
        if let Some(mut connection) = unlocked_elsewhere()? {
            let reply = connection.ask(Request::EndLogin { server: server.to_owned() })?;
            let Reply::LoginEnded(ended) = reply else { bail!("unexpected reply from IronCurtain") };
            return Ok(ended);
        }
        let (logins, name) = (Logins::of(&store), server.to_owned());
        // The login is removed even if its tokens cannot be deleted.
        let mark = ask(move || logins.strike(&name))?;
        if store.file_is_locked()? == Some(true) {
            open(&store)?;
        }
        // An invalid servers file only prevents the revocation of the tokens.
        let servers = Servers::load(home).ok();
        let entry = servers.as_ref().and_then(|servers| servers.find(Some(server)));
        let remote = entry.and_then(|entry| entry.remote.as_ref());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(remove_tokens(&store, (server, remote), mark))?;
        Ok(ended.map(|EndedLogin { issuer, is_revoked }| EndedLoginView { issuer, is_revoked }))
    }
}
