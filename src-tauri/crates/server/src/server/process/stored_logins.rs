//! Stores logins to remote servers, ends them, and revokes tokens that are no longer used.
//!
//! - Each change first unlocks the keyring or reads the stored tokens, because only that waits for the user. If the user
//!   does not unlock the keyring, nothing has been changed.

use super::remote_login::{login_server, may_share_grant};
use super::standalone::unrecorded;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::{LoginServer, StoredLogin};
use ironcurtain_secrets::{
    LoginLock, LoginRecord, Logins, Secret, SecretError, SecretStore, with_unlock_timeout,
};
use std::time::Duration;

/// Maximum time to wait for another change of the same login. The longest change is a renewal, which may wait for the user
/// to unlock the keyring (25 s), for the authorization server (30 s), and for the keyring (25 s).
const LOCK_TIMEOUT: Duration = Duration::from_secs(90);

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
    let replaced = match save(&logins, name, &login).await {
        Ok(replaced) => replaced,
        Err(problem) => {
            revoke_unless_stored(store, (name, remote), &login).await;
            return Err(problem);
        }
    };
    let replaced = replaced.and_then(|tokens| StoredLogin::parse(tokens.reveal()));
    // An authorization server may give the same client to each registration, so that both logins share a grant.
    if let Some(replaced) = replaced.filter(|replaced| replaced.client_id() != login.client_id()) {
        revoke_unused(&logins, (name, remote), &replaced).await;
    }
    Ok(())
}

/// Revokes the tokens of a login after storing it failed, unless it is stored nevertheless.
pub async fn revoke_unless_stored(
    store: &SecretStore,
    (name, remote): (&str, Option<&RemoteServer>),
    login: &StoredLogin,
) {
    let logins = Logins::of(store);
    if logins.record(name).is_none_or(|record| record.id != login.id()) {
        revoke_unused(&logins, (name, remote), login).await;
    }
}

/// Stores a login, and returns the tokens that it replaces.
async fn save(logins: &Logins, name: &str, login: &StoredLogin) -> Result<Option<Secret>, SecretError> {
    let keyring = logins.clone();
    with_unlock_timeout(move || keyring.unlock_keyring()).await?;
    let (lock, replaced) = locked_tokens(logins, name).await?;
    let mut record = LoginRecord::new(login.id(), login.url(), login.issuer(), login.scopes());
    record.expires_at = login.login_expires_at();
    let tokens = Secret::new(login.to_json().to_string());
    let (logins, server) = (logins.clone(), name.to_owned());
    with_unlock_timeout(move || {
        let _lock = lock;
        logins.save(&server, (&record, &tokens), replaced.as_ref())?;
        Ok(replaced)
    })
    .await
}

/// Locks a server's tokens and reads them.
async fn locked_tokens(logins: &Logins, name: &str) -> Result<(LoginLock, Option<Secret>), SecretError> {
    let lock = logins.lock(name, LOCK_TIMEOUT).await?;
    let (logins, server) = (logins.clone(), name.to_owned());
    let tokens = with_unlock_timeout(move || logins.stored_tokens(&server)).await?;
    Ok((lock, tokens))
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

/// Removes the tokens of a login that is no longer in the list, and revokes them if the authorization server supports
/// that. Without a login, removes leftover tokens. Keeps the tokens of a login that was stored in the meantime.
///
/// # Errors
/// Returns [`SecretError`] if the tokens cannot be removed.
pub async fn remove_tokens(
    store: &SecretStore,
    (name, remote): (&str, Option<&RemoteServer>),
    mark: Option<LoginRecord>,
) -> Result<Option<LogoutResult>, SecretError> {
    let logins = Logins::of(store);
    let removed = match remove_ended(&logins, name).await {
        Err(SecretError::NoKeyring(_)) if mark.is_none() => None,
        removed => removed?,
    };
    let is_revoked = match removed {
        Some(login) => revoke_unused(&logins, (name, remote), &login).await,
        None => false,
    };
    Ok(mark.map(|mark| LogoutResult { issuer: mark.issuer, is_revoked }))
}

/// Removes a server's tokens unless they belong to the login in the list. Returns the login to which they belonged.
async fn remove_ended(logins: &Logins, name: &str) -> Result<Option<StoredLogin>, SecretError> {
    let (lock, tokens) = locked_tokens(logins, name).await?;
    let Some(tokens) = tokens else { return Ok(None) };
    let login = StoredLogin::parse(tokens.reveal());
    let record = logins.record(name);
    if record.is_some() && record.map(|record| record.id).as_deref() == login.as_ref().map(StoredLogin::id) {
        return Ok(None);
    }
    let (logins, server) = (logins.clone(), name.to_owned());
    with_unlock_timeout(move || {
        let _lock = lock;
        logins.remove_tokens(&server)
    })
    .await?;
    Ok(login)
}

/// Revokes the tokens of a login that is not stored any more, unless that could end another login. Returns `true` if the
/// authorization server confirms the revocation.
pub async fn revoke_unused(
    logins: &Logins,
    (name, remote): (&str, Option<&RemoteServer>),
    login: &StoredLogin,
) -> bool {
    if may_share_grant(logins, login) {
        return false;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::Servers;
    use ironcurtain_config::home::Home;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    const PASSPHRASE: &str = "four words are enough";

    /// Authorization server that confirms every revocation.
    struct Revocations {
        base: String,
        /// Revoked tokens.
        tokens: Arc<Mutex<Vec<String>>>,
    }

    impl Revocations {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let base = format!("http://{}", listener.local_addr().unwrap());
            let tokens = Arc::new(Mutex::new(Vec::new()));
            let received = tokens.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let (mut stream, mut text, mut chunk) = (stream.unwrap(), String::new(), [0; 4096]);
                    while !text.contains("&client_id=") {
                        let read = stream.read(&mut chunk).unwrap();
                        text.push_str(&String::from_utf8_lossy(&chunk[..read]));
                    }
                    let token = text.split("\r\n\r\ntoken=").nth(1).and_then(|rest| rest.split('&').next());
                    received.lock().unwrap().push(token.unwrap().to_owned());
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                }
            });
            Self { base, tokens }
        }

        /// Returns the tokens revoked since the last call, in alphabetical order.
        fn take(&self) -> Vec<String> {
            let mut tokens = std::mem::take(&mut *self.tokens.lock().unwrap());
            tokens.sort();
            tokens
        }

        fn login(&self, number: u32, is_own_client: bool) -> StoredLogin {
            let (base, client) = (&self.base, if is_own_client { 0 } else { number });
            let text = format!(
                r#"{{"id":"{number}","url":"{base}/mcp","resource":"{base}/mcp","issuer":"{base}","authorizationEndpoint":"{base}/a",
                "tokenEndpoint":"{base}/t","tokenEndpointAuthMethods":[],"revocationEndpoint":"{base}/revoke","clientId":"client-{client}",
                "clientSecret":null,"isOwnClient":{is_own_client},"scopes":[],"accessToken":"access-{number}",
                "refreshToken":"refresh-{number}","expiresAt":null}}"#
            );
            StoredLogin::parse(&text).unwrap()
        }
    }

    /// Runs a future to its end. The test itself has no runtime, because accesses to a store block.
    fn run<T>(work: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(work)
    }

    /// Store with an unlocked encrypted file, and the entry of the server.
    fn store_and_entry(dir: &std::path::Path, base: &str) -> (SecretStore, RemoteServer) {
        let home = Home::under(&dir.join("ic"), dir);
        home.prepare().unwrap();
        let text = format!(r#"{{ "mcpServers": {{ "far": {{ "url": "{base}/mcp" }} }} }}"#);
        std::fs::write(home.config.join("mcp-servers.json"), text).unwrap();
        let servers = Servers::load(&home).unwrap();
        let store = SecretStore::of(&home.state);
        store.create_file(Secret::new(PASSPHRASE.into())).unwrap();
        (store, servers.find(Some("far")).unwrap().remote.clone().unwrap())
    }

    #[test]
    fn tokens_that_nothing_uses_are_revoked() {
        let (dir, host) = (tempfile::tempdir().unwrap(), Revocations::start());
        let (store, remote) = store_and_entry(dir.path(), &host.base);
        let far = ("far", Some(&remote));
        run(store_login(&store, far, host.login(1, false))).unwrap();
        assert_eq!(host.take(), Vec::<String>::new());
        run(store_login(&store, far, host.login(2, false))).unwrap();
        assert_eq!(host.take(), ["access-1", "refresh-1"]);

        store.lock();
        assert!(run(store_login(&store, far, host.login(3, false))).is_err());
        assert_eq!(host.take(), ["access-3", "refresh-3"], "it could not be stored");
        store.unlock(Secret::new(PASSPHRASE.into())).unwrap();
        assert_eq!(Logins::of(&store).record("far").unwrap().id, "2");
        // The entry was removed.
        let ended = run(log_out(&store, "far", None)).unwrap().unwrap();
        assert!(ended.is_revoked);
        assert_eq!(host.take(), ["access-2", "refresh-2"]);
        assert_eq!(run(log_out(&store, "far", Some(&remote))).unwrap(), None);
    }

    #[test]
    fn tokens_of_the_users_own_client_are_kept_while_another_login_may_depend_on_them() {
        let (dir, host) = (tempfile::tempdir().unwrap(), Revocations::start());
        let (store, remote) = store_and_entry(dir.path(), &host.base);
        let (far, near) = (("far", Some(&remote)), ("near", Some(&remote)));
        run(store_login(&store, far, host.login(1, true))).unwrap();
        run(store_login(&store, far, host.login(2, true))).unwrap();
        run(store_login(&store, near, host.login(3, true))).unwrap();
        let ended = run(log_out(&store, "near", Some(&remote))).unwrap().unwrap();
        assert!(!ended.is_revoked);
        assert_eq!(host.take(), Vec::<String>::new());
        let ended = run(log_out(&store, "far", Some(&remote))).unwrap().unwrap();
        assert!(ended.is_revoked);
        assert_eq!(host.take(), ["access-2", "refresh-2"]);
    }

    #[test]
    fn a_logout_keeps_a_login_that_was_stored_in_the_meantime() {
        let (dir, host) = (tempfile::tempdir().unwrap(), Revocations::start());
        let (store, remote) = store_and_entry(dir.path(), &host.base);
        let (far, logins) = (("far", Some(&remote)), Logins::of(&store));
        run(store_login(&store, far, host.login(1, false))).unwrap();
        let mark = logins.remove_record("far").unwrap();
        run(store_login(&store, far, host.login(2, false))).unwrap();
        assert_eq!(host.take(), ["access-1", "refresh-1"]);
        let ended = run(remove_tokens(&store, far, mark)).unwrap().unwrap();
        assert!(!ended.is_revoked);
        assert_eq!(host.take(), Vec::<String>::new());
        assert!(logins.stored_tokens("far").unwrap().is_some());
        assert_eq!(logins.record("far").unwrap().id, "2");
    }
}
