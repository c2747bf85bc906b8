//! Provides the user's login to a remote server, and advice if the server rejects credentials.

use futures_util::future::BoxFuture;
use ironcurtain_config::RemoteServer;
use ironcurtain_mcp::remote::login::{
    Dial, LoginError, LoginServer, LoginStore, StoredLogin, login_command, shell_quote,
};
use ironcurtain_secrets::{
    LoginRecord, Logins, Secret, SecretError, SecretFileError, SecretMask, SecretName,
    secret_reference_in_header, with_unlock_timeout,
};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Callback that notifies the user.
pub(in crate::server) type Notify = Arc<dyn Fn(&str) + Send + Sync>;

/// Returns the parameters for logging in to a server.
#[must_use]
pub fn login_server(name: &str, server: &RemoteServer, dial: Dial) -> LoginServer {
    LoginServer {
        name: name.to_owned(),
        url: server.url().clone(),
        target: server.target().clone(),
        allowed_addresses: server.allowed_addresses(),
        dial,
    }
}

/// Returns `true` if another login may share the OAuth grant of this login, so that revoking the tokens of one could end
/// the other. Only logins of the user's own client can share a grant. If the list cannot be read, the grant is assumed to
/// be shared.
pub(super) fn may_share_grant(logins: &Logins, login: &StoredLogin) -> bool {
    let is_other = |record: &LoginRecord| record.id != login.id() && record.issuer == login.issuer();
    login.is_own_client() && logins.all().map_or(true, |all| all.values().any(is_other))
}

/// Maximum time to wait for another change of the same login. It is shorter than the time that a call waits for its server
/// to start.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of tokens to redact. A server can only echo tokens that were sent to it.
const MAX_TOKENS: usize = 32;

/// Redacts the headers' secrets and the tokens that were sent. Clones share the tokens.
#[derive(Clone)]
pub(super) struct Masks {
    headers: SecretMask,
    tokens: Arc<Mutex<(Vec<Secret>, SecretMask)>>,
}

impl Masks {
    pub(super) fn new(headers: SecretMask) -> Self {
        Self { headers, tokens: Arc::default() }
    }

    fn add(&self, login: &StoredLogin) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, mask) = &mut *tokens;
        known.extend(login.secrets().map(|secret| Secret::new(secret.to_owned())));
        let surplus = known.len().saturating_sub(MAX_TOKENS);
        known.drain(..surplus);
        *mask = SecretMask::of(known.iter());
    }

    pub(super) fn apply<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        match self.headers.apply(text) {
            Cow::Borrowed(text) => tokens.apply(text),
            Cow::Owned(text) => Cow::Owned(tokens.apply(&text).into_owned()),
        }
    }
}

/// Login store that uses the keyring or the encrypted file.
pub(super) struct SecretLoginStore {
    server: String,
    logins: Logins,
    masks: Masks,
}

impl SecretLoginStore {
    pub(super) fn new(server: &str, logins: Logins, masks: Masks) -> Self {
        Self { server: server.to_owned(), logins, masks }
    }

    fn failed(&self, problem: &SecretError) -> LoginError {
        LoginError::Store { server: self.server.clone(), reason: problem.to_string() }
    }
}

impl LoginStore for SecretLoginStore {
    fn login_id(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let (logins, server) = (self.logins.clone(), self.server.clone());
            with_unlock_timeout(move || Ok(logins.record(&server))).await.ok().flatten().map(|mark| mark.id)
        })
    }

    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>> {
        Box::pin(async {
            let (logins, server) = (self.logins.clone(), self.server.clone());
            let login = match with_unlock_timeout(move || logins.tokens(&server)).await {
                Ok(tokens) => StoredLogin::parse(tokens.reveal()),
                Err(SecretError::Missing(_) | SecretError::File(SecretFileError::Missing(_))) => None,
                Err(problem) => return Err(self.failed(&problem)),
            };
            if let Some(login) = &login {
                self.masks.add(login);
            }
            Ok(login)
        })
    }

    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn Send>, LoginError>> {
        Box::pin(async {
            let lock = self.logins.lock(&self.server, LOCK_TIMEOUT).await;
            let lock = lock.map_err(|problem| self.failed(&problem))?;
            Ok(Box::new(lock) as Box<dyn Send>)
        })
    }

    fn may_share_grant<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let (logins, login) = (self.logins.clone(), login.clone());
            with_unlock_timeout(move || Ok(may_share_grant(&logins, &login))).await.unwrap_or(true)
        })
    }

    fn save<'a>(
        &'a self,
        login: &'a StoredLogin,
        lock: Box<dyn Send>,
    ) -> BoxFuture<'a, Result<bool, LoginError>> {
        Box::pin(async move {
            // Redact the token before it is sent for the first time.
            self.masks.add(login);
            let (logins, server) = (self.logins.clone(), self.server.clone());
            let (id, ends_at) = (login.id().to_owned(), login.login_expires_at());
            let tokens = Secret::new(login.to_json().to_string());
            // The lock is held until the tokens are written, even after a timeout.
            let write = move || {
                let _lock = lock;
                logins.renew(&server, (&id, ends_at), &tokens)
            };
            let saved = with_unlock_timeout(write).await;
            saved.map_err(|problem| self.failed(&problem))
        })
    }

    fn record_expired<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let (logins, server, id) = (self.logins.clone(), self.server.clone(), login.id().to_owned());
            // Ignore the error: the login stays listed as valid, but the agent still receives the login error.
            let _ = with_unlock_timeout(move || logins.record_expired(&server, &id)).await;
        })
    }
}

/// Records that a server requires a login, and notifies the user.
pub(super) struct LoginRequirement {
    pub(super) logins: Logins,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) notify: Notify,
}

impl LoginRequirement {
    /// Returns a function that records whether the server requires a login. Calls are recorded in order.
    pub(super) fn recorder(self) -> impl Fn(bool) + Send + Sync {
        let (send, mut needed) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(is_needed) = needed.recv().await {
                self.note(is_needed).await;
            }
        });
        // Sending fails only while the daemon is exiting.
        move |is_needed| {
            let _ = send.send(is_needed);
        }
    }

    /// Records whether the server requires a login. Notifies the user if this was not known before.
    async fn note(&self, is_needed: bool) {
        let Self { logins, name, url, notify } = self;
        let (logins, server, url) = (logins.clone(), name.clone(), url.clone());
        let noted = with_unlock_timeout(move || match is_needed {
            true => logins.record_required(&server, &url),
            false => logins.record_accepted(&server).map(|()| false),
        });
        // If the list cannot be written, the user is still notified.
        if noted.await.unwrap_or(is_needed) {
            notify(&format!("{name} needs you to log in: ironcurtain servers login {}", shell_quote(name)));
        }
    }
}

/// Details of a remote server's credentials, used in advice to the user.
pub(super) struct Advice {
    server: String,
    url: String,
    address: String,
    /// Command that stores a token for the server. The URL in it has no query.
    add_token: String,
    credentials: Credentials,
    logins: Logins,
}

enum Credentials {
    /// The user's login, if any.
    Login,
    /// A plain value in the server's entry.
    Plain,
    Secret(SecretName),
}

impl Advice {
    pub(super) fn of(name: &str, server: &RemoteServer, logins: Logins) -> Self {
        let mut headers = server.headers().iter();
        let secret = headers.clone().find_map(|(_, value)| Some(secret_reference_in_header(value).ok()??.1));
        let credentials = match secret {
            Some(secret) => Credentials::Secret(secret),
            None if headers.any(|(name, _)| name.eq_ignore_ascii_case("authorization")) => Credentials::Plain,
            None => Credentials::Login,
        };
        let (url, address) = (server.url().to_string(), server.to_string());
        let written = if server.url().query().is_some() { "URL".into() } else { shell_quote(&address) };
        let add_token = format!("ironcurtain servers add {written} --token");
        Self { server: name.to_owned(), url, address, add_token, credentials, logins }
    }

    /// Returns a message with advice for credentials that the server refused with this status.
    pub(super) fn message(&self, status: u16, scope: Option<&str>) -> String {
        let Self { server, url, address, add_token, credentials, logins } = self;
        let refused = if status == 401 { "did not accept" } else { "refused access to" };
        let token = format!("if you have a token, run: {add_token}");
        let login = format!("ironcurtain servers login {}", shell_quote(server));
        let scope = scope.filter(|scope| split_scopes(scope).next().is_some());
        match credentials {
            Credentials::Login => {
                match (status, logins.record(server).filter(|mark| mark.url == *url), scope) {
                    (401, Some(_), _) => format!(
                        "`{address}` did not accept your login ({status}); to log in again, run: {login}"
                    ),
                    (401, None, _) => {
                        format!("`{address}` wants you to log in ({status}); run: {login}   ({token})")
                    }
                    (_, Some(mark), Some(scope)) => {
                        let advice = login_command(server, merged_scopes(&mark.scopes, scope));
                        let advice = advice.map(|command| format!("; to request it, run: {command}"));
                        format!(
                            "`{address}` requires a scope that your login does not have ({status}){}",
                            advice.unwrap_or_default()
                        )
                    }
                    (_, _, _) => format!("`{address}` refused access ({status}); {token}"),
                }
            }
            Credentials::Plain => format!(
                "`{address}` {refused} the token in its entry ({status}); to replace the token, run: {add_token}"
            ),
            Credentials::Secret(secret) => format!(
                "`{address}` {refused} your secret `{secret}` ({status}); to replace the secret, run: ironcurtain secrets set {secret}"
            ),
        }
    }
}

/// Returns the login's scopes and the additional scopes that the server requires. The required scopes may be separated
/// by commas.
fn merged_scopes<'a>(scopes: &'a [String], required: &'a str) -> impl Iterator<Item = &'a str> {
    let is_new = move |scope: &&str| !scopes.iter().any(|granted| granted == scope);
    scopes.iter().map(String::as_str).chain(split_scopes(required).filter(is_new))
}

fn split_scopes(scopes: &str) -> impl Iterator<Item = &str> {
    scopes.split([' ', ',']).filter(|scope| !scope.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::Servers;
    use ironcurtain_config::home::Home;
    use ironcurtain_secrets::SecretStore;

    #[test]
    fn advice_requests_the_missing_scopes_and_quotes_the_address() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        let text = r#"{ "mcpServers": { "far": { "url": "https://a.example/$(id);x" } } }"#;
        std::fs::write(home.config.join("mcp-servers.json"), text).unwrap();
        let servers = Servers::load(&home).unwrap();
        let remote = servers.find(Some("far")).unwrap().remote.clone().unwrap();
        let logins = Logins::of(&SecretStore::of(&home.state));
        let advice = Advice::of("far", &remote, logins.clone());
        let token = "run: ironcurtain servers add 'https://a.example/$(id);x' --token";
        let message = advice.message(401, None);
        assert!(message.contains("wants you to log in (401)") && message.contains(token), "{message}");
        let mark = LoginRecord::new("1", remote.url().as_str(), "https://auth.example", &["read".into()]);
        logins.insert_record("far", &mark).unwrap();
        let login = "to request it, run: ironcurtain servers login far --scope";
        for (required, wanted) in [("write", "read write"), ("read,write", "read write"), ("a b", "read a b")]
        {
            let message = advice.message(403, Some(required));
            assert!(message.ends_with(&format!("{login} \"{wanted}\"")), "{required}: {message}");
        }
        for unsafe_scope in ["$(id)", "`id`", "a\"b"] {
            let message = advice.message(403, Some(unsafe_scope));
            assert!(message.ends_with("requires a scope that your login does not have (403)"), "{message}");
        }
        assert!(advice.message(403, Some("")).ends_with(token));
    }
}
