//! Logs the user out of remote servers.

use super::remote_login::login_server;
use super::standalone::unrecorded;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::StoredLogin;
use ironcurtain_secrets::{LoginRecord, Logins, SecretError, SecretStore, with_unlock_timeout};

/// Result of logging out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutResult {
    /// Issuer of the authorization server.
    pub issuer: String,
    /// `true` if the authorization server has revoked the tokens.
    pub is_revoked: bool,
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
/// revocation and the server has an entry. Without a login, removes leftover tokens.
///
/// # Errors
/// Returns [`SecretError`] if the tokens cannot be removed.
pub async fn remove_tokens(
    store: &SecretStore,
    (name, remote): (&str, Option<&RemoteServer>),
    mark: Option<LoginRecord>,
) -> Result<Option<LogoutResult>, SecretError> {
    let (logins, server) = (Logins::of(store), name.to_owned());
    let tokens = match with_unlock_timeout(move || logins.remove_tokens(&server)).await {
        Err(SecretError::NoKeyring(_)) if mark.is_none() => None,
        tokens => tokens?,
    };
    let login = tokens.and_then(|tokens| StoredLogin::parse(tokens.reveal()));
    // An entry with a different URL must not determine which hosts the revocation contacts.
    let login = login.zip(remote).filter(|(login, remote)| login.url() == remote.url().as_str());
    let is_revoked = match login {
        Some((login, remote)) => login.revoke(&login_server(name, remote, unrecorded(name))).await,
        None => false,
    };
    Ok(mark.map(|mark| LogoutResult { issuer: mark.issuer, is_revoked }))
}
