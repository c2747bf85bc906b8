//! Stores logins to remote servers, ends them, and revokes tokens that are no longer used.

use super::remote_login::login_server;
use super::standalone::unrecorded;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::{LoginServer, StoredLogin};
use ironcurtain_secrets::{LoginRecord, Logins, Secret, SecretError, SecretStore, with_unlock_timeout};

/// Result of logging out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutResult {
    /// Issuer of the authorization server.
    pub issuer: String,
    /// `true` if the authorization server has revoked the tokens.
    pub is_revoked: bool,
}

/// Stores a new login, which has a random id, and revokes the tokens that it replaces. If the login cannot be stored,
/// revokes its tokens, because nothing else could.
///
/// # Errors
/// Returns [`SecretError`] if the login cannot be stored.
pub async fn store_login(
    store: &SecretStore,
    (name, remote): (&str, Option<&RemoteServer>),
    login: StoredLogin,
) -> Result<(), SecretError> {
    let logins = Logins::of(store);
    match save(&logins, name, &login).await {
        Ok(replaced) => {
            let replaced = replaced.and_then(|tokens| StoredLogin::parse(tokens.reveal()));
            if let Some(replaced) = replaced.filter(StoredLogin::has_own_grant) {
                revoke(&replaced, (name, remote)).await;
            }
            Ok(())
        }
        Err(problem) => {
            if login.has_own_grant() || logins.record(name).is_none() {
                revoke(&login, (name, remote)).await;
            }
            Err(problem)
        }
    }
}

/// Stores a login, and returns the tokens that it replaces.
async fn save(logins: &Logins, name: &str, login: &StoredLogin) -> Result<Option<Secret>, SecretError> {
    let lock = logins.lock(name).await?;
    let mut record = LoginRecord::new(login.id(), login.url(), login.issuer(), login.scopes());
    record.expires_at = login.login_expires_at();
    let tokens = Secret::new(login.to_json().to_string());
    let (logins, server) = (logins.clone(), name.to_owned());
    with_unlock_timeout(move || {
        let _lock = lock;
        logins.save(&server, &record, &tokens)
    })
    .await
}

/// Logs out of a server, and removes and revokes the tokens. Returns `None` if there was no login.
///
/// # Errors
/// Returns [`SecretError`] if the list of logins cannot be written, or if the tokens cannot be removed. If only
/// removing the tokens fails, the user is still logged out.
pub async fn log_out(
    store: &SecretStore,
    name: &str,
    remote: Option<&RemoteServer>,
) -> Result<Option<LogoutResult>, SecretError> {
    let (logins, server) = (Logins::of(store), name.to_owned());
    let mark = with_unlock_timeout(move || logins.remove_record(&server)).await?;
    remove_tokens(store, (name, remote), mark).await
}

/// Removes the tokens of a login that is no longer in the list. Revokes them if the authorization server supports
/// revocation. Without a login, removes leftover tokens.
///
/// # Errors
/// Returns [`SecretError`] if the tokens cannot be removed.
pub async fn remove_tokens(
    store: &SecretStore,
    (name, remote): (&str, Option<&RemoteServer>),
    mark: Option<LoginRecord>,
) -> Result<Option<LogoutResult>, SecretError> {
    let logins = Logins::of(store);
    let lock = logins.lock(name).await?;
    let server = name.to_owned();
    let removed = with_unlock_timeout(move || {
        let _lock = lock;
        logins.remove_tokens(&server)
    });
    let tokens = match removed.await {
        Err(SecretError::NoKeyring(_)) if mark.is_none() => None,
        tokens => tokens?,
    };
    let is_revoked = match tokens.and_then(|tokens| StoredLogin::parse(tokens.reveal())) {
        Some(login) => revoke(&login, (name, remote)).await,
        None => false,
    };
    Ok(mark.map(|mark| LogoutResult { issuer: mark.issuer, is_revoked }))
}

/// Revokes the tokens of a login. Returns `true` if the authorization server confirms this.
async fn revoke(login: &StoredLogin, (name, remote): (&str, Option<&RemoteServer>)) -> bool {
    // An entry with a different URL must not determine which non-public addresses are contacted.
    let server = match remote.filter(|remote| remote.url().as_str() == login.url()) {
        Some(remote) => Some(login_server(name, remote, unrecorded(name))),
        None => LoginServer::without_entry(name, login, unrecorded(name)),
    };
    match server {
        Some(server) => login.revoke(&server).await,
        None => false,
    }
}
