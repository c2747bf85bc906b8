//! Access tokens for the requests of a connection.
//!
//! - A login that was made or ended during the connection takes effect with the next request.
//! - Of several connections that need a new token, one renews it.

use super::LoginServer;
use super::error::LoginError;
use super::refresh::renewed;
use super::stored::StoredLogin;
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use tokio::sync::Mutex;

/// Held while a token is renewed, because a refresh token may be used only once.
static RENEWING: Mutex<()> = Mutex::const_new(());

/// Stored logins, as one server's connection sees them.
pub trait LoginStore: Send + Sync {
    /// Returns a value that changes when the user logs in or out; `None` without a login. Called for each request.
    fn mark(&self) -> BoxFuture<'_, Option<String>>;

    /// Returns the login.
    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>>;

    /// Stores a renewed login, unless the mark is another one now.
    fn save<'a>(&'a self, mark: &'a str, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), LoginError>>;
}

/// Login of one connection.
pub struct ServerLogin {
    server: LoginServer,
    store: Box<dyn LoginStore>,
    held: Mutex<Option<(String, StoredLogin)>>,
}

impl ServerLogin {
    /// Creates the login of a connection. Nothing is read before the first request.
    #[must_use]
    pub fn new(server: LoginServer, store: Box<dyn LoginStore>) -> Self {
        Self { server, store, held: Mutex::new(None) }
    }

    /// Returns the `Authorization` header for a request; `None` without a login. Renews a token that expires soon.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, LoginError> {
        let mut held = self.held.lock().await;
        let Some((mark, login)) = self.current(&mut held).await? else { return Ok(None) };
        if !login.is_expiring() || login.refresh_token.is_none() {
            return Ok(bearer(login));
        }
        let (mark, stale) = (mark.clone(), login.access_token.clone());
        self.renew(&mut held, &mark, &stale).await
    }

    /// Returns another header after the server refused this one with 401; `None` if there is no other.
    pub(crate) async fn after(
        &self,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, LoginError> {
        let mut held = self.held.lock().await;
        let Some((mark, login)) = self.current(&mut held).await? else { return Ok(None) };
        let now = bearer(login);
        if now.as_ref() != refused {
            return Ok(now);
        }
        let (mark, stale) = (mark.clone(), login.access_token.clone());
        self.renew(&mut held, &mark, &stale).await
    }

    /// Returns the login that is in force, reading it if it changed.
    async fn current<'a>(
        &self,
        held: &'a mut Option<(String, StoredLogin)>,
    ) -> Result<Option<&'a (String, StoredLogin)>, LoginError> {
        let mark = self.store.mark().await;
        if held.as_ref().map(|(mark, _)| mark) != mark.as_ref() {
            *held = match mark {
                Some(mark) => self.read().await?.map(|login| (mark, login)),
                None => None,
            };
        }
        Ok(held.as_ref())
    }

    /// Reads the login, if it is for this address.
    async fn read(&self) -> Result<Option<StoredLogin>, LoginError> {
        Ok(self.store.load().await?.filter(|login| login.url == self.server.url.as_str()))
    }

    async fn renew(
        &self,
        held: &mut Option<(String, StoredLogin)>,
        mark: &str,
        stale: &str,
    ) -> Result<Option<HeaderValue>, LoginError> {
        let _turn = RENEWING.lock().await;
        let expired = || LoginError::Expired { server: self.server.name.clone() };
        // Another connection, or another process, may have renewed it.
        let stored = self.read().await?.ok_or_else(expired)?;
        let login = if stored.access_token == stale {
            let login = renewed(&self.server, &stored).await?;
            self.store.save(mark, &login).await?;
            login
        } else {
            stored
        };
        let header = bearer(&login);
        *held = Some((mark.to_owned(), login));
        Ok(header)
    }
}

fn bearer(login: &StoredLogin) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", login.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}
