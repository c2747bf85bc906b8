//! Stores logins in the keyring, or in the encrypted file that this process or the trusted process has unlocked.

use super::{confirm_file, create_file, store, unlock, unlocked_daemon, with_timeout};
use crate::screen::Screen;
use anyhow::bail;
use ironcurtain_admin::login::{NewLogin, StoredLogin};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{EndedLoginView, Passphrase, Reply, Request};
use ironcurtain_secrets::{Logins, SecretBackend, SecretStore};
use ironcurtain_server::process::{LogoutResult, remove_tokens, revoke_unless_stored, store_login};

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
        let entry = (server.name.as_str(), server.remote.as_ref());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match self.save_in_daemon(entry.0, &login) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(problem) => {
                runtime.block_on(revoke_unless_stored(&self.store, entry, &login));
                return Err(problem);
            }
        }
        runtime.block_on(store_login(&self.store, entry, login))?;
        Ok(self.store.file_is_locked()?.is_none())
    }

    /// Stores a login in the encrypted file that the trusted process has unlocked. Returns `false` if this process must
    /// store the login, which it then can.
    fn save_in_daemon(&self, server: &str, login: &StoredLogin) -> anyhow::Result<bool> {
        let Some(is_locked) = self.store.file_is_locked()? else { return Ok(false) };
        // The trusted process may have been started, stopped or locked while the user was logging in.
        if let Some(mut connection) = unlocked_daemon()? {
            let login = Passphrase::new(login.to_json().to_string());
            connection.ask(Request::StoreLogin { server: server.to_owned(), login })?;
            return Ok(true);
        }
        if is_locked {
            unlock(&self.store)?;
        }
        Ok(false)
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
