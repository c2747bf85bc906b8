//! Stores logins in the keyring, or in the encrypted file that this process or the trusted process has unlocked.

use super::{confirm_file, create_file, store, unlock, unlocked_daemon, with_timeout};
use crate::screen::Screen;
use anyhow::bail;
use ironcurtain_admin::login::{NewLogin, StoredLogin};
use ironcurtain_config::home::Home;
use ironcurtain_config::{RemoteServer, Servers};
use ironcurtain_protocol::{EndedLoginView, Passphrase, Reply, Request};
use ironcurtain_secrets::{Logins, SecretBackend, SecretStore};
use ironcurtain_server::process::{LogoutResult, remove_tokens, revoke_unless_stored, store_login};
use tokio::runtime::Runtime;

/// Open store for a login.
pub struct LoginStorage {
    store: SecretStore,
}

impl LoginStorage {
    /// Opens or creates the store before the server is contacted. Returns `None` if the user declines to create a
    /// store.
    pub fn open(screen: Screen) -> anyhow::Result<Option<Self>> {
        let store = store()?;
        let store_handle = store.clone();
        match with_timeout(move || store_handle.backend())? {
            SecretBackend::Keyring => {}
            SecretBackend::File { .. } => {
                if unlocked_daemon()?.is_none() {
                    unlock(&store)?;
                }
            }
            SecretBackend::Unavailable(_) => {
                if !confirm_file(&store, screen)? {
                    return Ok(None);
                }
                create_file(&store, screen)?;
            }
        }
        Ok(Some(Self { store }))
    }

    /// Returns the store.
    pub fn store(&self) -> &SecretStore {
        &self.store
    }

    /// Stores a login, and revokes the login that it replaces. Returns `true` if the trusted process can read the login, or
    /// `false` if the user must first unlock the encrypted file there.
    pub fn save(self, NewLogin { server, login }: NewLogin) -> anyhow::Result<bool> {
        let (name, remote) = (server.name.as_str(), server.remote.as_ref());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stored = self.save_here_or_there(&runtime, (name, remote), &login);
        if stored.is_err() {
            runtime.block_on(revoke_unless_stored(&self.store, (name, remote), &login));
        }
        stored
    }

    fn save_here_or_there(
        &self,
        runtime: &Runtime,
        (name, remote): (&str, Option<&RemoteServer>),
        login: &StoredLogin,
    ) -> anyhow::Result<bool> {
        let is_locked = self.store.file_is_locked()?;
        // The trusted process may have been started, stopped or locked while the user was logging in.
        if is_locked.is_some()
            && let Some(mut connection) = unlocked_daemon()?
        {
            let login = Passphrase::new(login.to_json().to_string());
            connection.ask(Request::StoreLogin { server: name.to_owned(), login })?;
            return Ok(true);
        }
        if is_locked == Some(true) {
            unlock(&self.store)?;
        }
        runtime.block_on(store_login(&self.store, (name, remote), login.clone()))?;
        Ok(is_locked.is_none())
    }

    /// Ends a login and deletes its tokens, even if the login had already ended. Returns the login, or `None` if there
    /// was no login.
    pub fn log_out(home: &Home, server: &str) -> anyhow::Result<Option<EndedLoginView>> {
        let store = store()?;
        if let Some(mut connection) = unlocked_daemon()? {
            let reply = connection.ask(Request::EndLogin { server: server.to_owned() })?;
            let Reply::LoginEnded(ended) = reply else { bail!("unexpected reply from IronCurtain") };
            return Ok(ended);
        }
        let (logins, name) = (Logins::of(&store), server.to_owned());
        // The login is removed even if its tokens cannot be deleted.
        let record = with_timeout(move || logins.remove_record(&name))?;
        if store.file_is_locked()? == Some(true) {
            unlock(&store)?;
        }
        // An invalid servers file only prevents the revocation of the tokens.
        let servers = Servers::load(home).ok();
        let entry = servers.as_ref().and_then(|servers| servers.find(Some(server)));
        let remote = entry.and_then(|entry| entry.remote.as_ref());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = runtime.block_on(remove_tokens(&store, (server, remote), record))?;
        Ok(ended.map(|LogoutResult { issuer, is_revoked }| EndedLoginView { issuer, is_revoked }))
    }
}
