//! Provides the access token for each request on a connection, and renews it.
//!
//! - When the user logs in or out, the change takes effect with the next request. No further messages are accepted from
//!   a stream of unsolicited messages that was opened with the previous login.
//! - If several connections or processes need a new token for the same server, only one of them renews it.
//! - A renewal completes and is stored even if its request is cancelled, because a refresh token may be valid for only
//!   one use. If the user has logged out or in again by then, the new tokens are revoked.

use super::LoginServer;
use super::error::{LoginError, RENEWING};
use super::refresh::{RefreshError, refresh_tokens};
use super::stored::StoredLogin;
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Maximum number of attempts per minute to renew the login on one connection.
const MAX_RENEWALS: usize = 5;

/// Access to the stored login of one server.
pub trait LoginStore: Send + Sync {
    /// Returns the login's id, which changes with each login, or `None` if there is no login. Called for each request.
    fn login_id(&self) -> BoxFuture<'_, Option<String>>;

    /// Reads the login. Returns `None` if the user is not logged in.
    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>>;

    /// Acquires the lock that excludes other connections and processes from changing the login. Dropping the returned
    /// value releases the lock.
    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn Send>, LoginError>>;

    /// Returns `true` if revoking the login's tokens could end another login.
    fn may_share_grant<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, bool>;

    /// Stores a renewed login while holding the lock, then releases the lock. Returns `false` without storing the login if
    /// the user has since logged out or logged in again.
    fn save<'a>(
        &'a self,
        login: &'a StoredLogin,
        lock: Box<dyn Send>,
    ) -> BoxFuture<'a, Result<bool, LoginError>>;

    /// Records that the user must log in again.
    fn record_expired<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, ()>;
}

/// A connection's login to its server.
pub struct ServerLogin {
    source: Arc<LoginSource>,
    cached: Arc<Mutex<Option<CachedLogin>>>,
    shutdown_token: Option<TaskTrackerToken>,
}

struct LoginSource {
    server: LoginServer,
    store: Box<dyn LoginStore>,
    renewals: SyncMutex<Renewals>,
}

/// Attempts to renew the login on one connection.
#[derive(Default)]
struct Renewals {
    /// Times of the attempts within the last minute.
    times: VecDeque<Instant>,
    /// Id of the login if the last attempt showed that the user must log in again.
    expired: Option<String>,
    failure: Option<RenewalFailure>,
}

/// Result of the last attempt to renew a login, if it failed.
struct RenewalFailure {
    login_id: String,
    at: Instant,
    problem: LoginError,
}

/// Result of a renewal.
struct Renewed {
    header: Result<Option<HeaderValue>, LoginError>,
    /// New tokens that nothing will use: the user has logged out or in again, or the tokens have too many scopes.
    unused: Option<StoredLogin>,
}

struct CachedLogin {
    login: StoredLogin,
    is_saved: bool,
}

impl ServerLogin {
    /// Creates the login for a connection. The store is first read on the first request. Each renewal holds a clone of
    /// `shutdown_token` until it completes so that shutdown can wait for the renewal.
    #[must_use]
    pub fn new(
        server: LoginServer,
        store: Box<dyn LoginStore>,
        shutdown_token: Option<TaskTrackerToken>,
    ) -> Self {
        let source = LoginSource { server, store, renewals: SyncMutex::default() };
        Self { source: Arc::new(source), cached: Arc::default(), shutdown_token }
    }

    /// Returns the login's id, which changes with each login, or `None` without a login.
    pub(crate) async fn id(&self) -> Option<String> {
        self.source.store.login_id().await
    }

    /// Returns the `Authorization` header for a request, or `None` without a login. Renews a token that expires soon.
    pub(crate) async fn header(&self) -> Result<Option<HeaderValue>, LoginError> {
        let called = Instant::now();
        let mut cached = Arc::clone(&self.cached).lock_owned().await;
        let Some(login) = self.source.current(&mut cached).await? else { return Ok(None) };
        if !login.is_expiring() || login.refresh_token.is_none() {
            return Ok(bearer_header(&login));
        }
        match self.renew(cached, login.clone(), called).await {
            Err(_) if login.is_valid() => Ok(bearer_header(&login)),
            renewed => renewed,
        }
    }

    /// Returns the header for a connection's last request, without renewing the token.
    pub(crate) async fn last_header(&self) -> Option<HeaderValue> {
        let mut cached = Arc::clone(&self.cached).lock_owned().await;
        bearer_header(&self.source.current(&mut cached).await.ok()??)
    }

    /// Returns a new header after the server responded to `refused` with status 401, or `None` if there is no login.
    pub(crate) async fn header_after_refusal(
        &self,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, LoginError> {
        let called = Instant::now();
        let mut cached = Arc::clone(&self.cached).lock_owned().await;
        let Some(login) = self.source.current(&mut cached).await? else { return Ok(None) };
        let now = bearer_header(&login);
        if now.as_ref() == refused { self.renew(cached, login, called).await } else { Ok(now) }
    }

    /// Renews the login. `called` is the time at which the caller started to wait.
    async fn renew(
        &self,
        cached: OwnedMutexGuard<Option<CachedLogin>>,
        stale: StoredLogin,
        called: Instant,
    ) -> Result<Option<HeaderValue>, LoginError> {
        let (source, shutdown_token) = (Arc::clone(&self.source), self.shutdown_token.clone());
        let renewal = tokio::spawn(async move {
            let renewed = source.renew(cached, stale, called).await;
            drop(shutdown_token);
            renewed
        });
        let failed = |_| LoginError::Step { step: RENEWING, reason: "it was stopped".to_owned() };
        renewal.await.map_err(failed)?
    }
}

impl LoginSource {
    /// Returns the current login, reading it again if it has changed.
    async fn current(&self, cached: &mut Option<CachedLogin>) -> Result<Option<StoredLogin>, LoginError> {
        let login_id = self.store.login_id().await;
        if cached.as_ref().map(|cached| &cached.login.id) != login_id.as_ref() {
            *cached = match login_id {
                Some(login_id) => self.read(&login_id).await?.map(CachedLogin::saved),
                None => None,
            };
        }
        Ok(cached.as_ref().map(|cached| cached.login.clone()))
    }

    /// Reads the login. Returns `None` if it has a different id or belongs to a different URL.
    async fn read(&self, id: &str) -> Result<Option<StoredLogin>, LoginError> {
        let matches = |login: &StoredLogin| login.url == self.server.url.as_str() && login.id == id;
        Ok(self.store.load().await?.filter(matches))
    }

    async fn renew(
        &self,
        mut cached: OwnedMutexGuard<Option<CachedLogin>>,
        stale: StoredLogin,
        called: Instant,
    ) -> Result<Option<HeaderValue>, LoginError> {
        // A request that waited for a renewal does not repeat it after a failure: each attempt may take its full timeout.
        let repeated = {
            let renewals = self.renewals();
            let is_recent = |failure: &&RenewalFailure| failure.login_id == stale.id && failure.at > called;
            renewals.failure.as_ref().filter(is_recent).map(|failure| failure.problem.repeated())
        };
        if let Some(problem) = repeated {
            return Err(problem);
        }
        let renewed = self.renew_cached(&mut cached, &stale).await;
        let Renewed { header, unused } =
            renewed.unwrap_or_else(|problem| Renewed { header: Err(problem), unused: None });
        if let Err(problem) = &header {
            let failure = RenewalFailure {
                login_id: stale.id.clone(),
                at: Instant::now(),
                problem: problem.repeated(),
            };
            self.renewals().failure = Some(failure);
        }
        drop(cached);
        // A logout or a new login could not revoke tokens that did not exist yet.
        if let Some(unused) = unused
            && !self.store.may_share_grant(&unused).await
        {
            unused.revoke(&self.server).await;
        }
        header
    }

    async fn renew_cached(
        &self,
        cached: &mut Option<CachedLogin>,
        stale: &StoredLogin,
    ) -> Result<Renewed, LoginError> {
        let lock = self.store.lock().await?;
        let is_saved = cached.as_ref().is_none_or(|cached| cached.is_saved);
        let login = match self.read(&stale.id).await? {
            None => None,
            // Another connection or process has renewed the login.
            Some(stored) if is_saved && stored.access_token != stale.access_token => Some(stored),
            Some(_) => {
                self.count_renewal(stale)?;
                let login = refresh_tokens(&self.server, stale).await;
                let has_expired = matches!(login, Err(RefreshError::Login(LoginError::Expired { .. })));
                self.renewals().expired = has_expired.then(|| stale.id.clone());
                if has_expired {
                    self.store.record_expired(stale).await;
                }
                let login = match login {
                    Ok(login) => login,
                    Err(RefreshError::Scope { problem, unused }) => {
                        return Ok(Renewed { header: Err(problem), unused: Some(*unused) });
                    }
                    Err(RefreshError::Login(problem)) => return Err(problem),
                };
                // The old refresh token may no longer be valid, so use the new one even if it cannot be stored.
                *cached = Some(CachedLogin { login: login.clone(), is_saved: false });
                if !self.store.save(&login, lock).await? {
                    *cached = None;
                    return Ok(Renewed { header: Ok(None), unused: Some(login) });
                }
                Some(login)
            }
        };
        // The user may have logged in or out during the renewal.
        let login = match self.store.login_id().await {
            Some(login_id) => login.filter(|login| login.id == login_id),
            None => None,
        };
        let header = login.as_ref().and_then(bearer_header);
        *cached = login.map(CachedLogin::saved);
        Ok(Renewed { header: Ok(header), unused: None })
    }

    /// Counts an attempt to renew the login. A server that refuses every token must not cause an attempt for each request.
    fn count_renewal(&self, login: &StoredLogin) -> Result<(), LoginError> {
        let mut renewals = self.renewals();
        renewals.times.retain(|at| at.elapsed() < Duration::from_secs(60));
        if renewals.times.len() < MAX_RENEWALS {
            renewals.times.push_back(Instant::now());
            return Ok(());
        }
        if renewals.expired.as_ref() == Some(&login.id) {
            return Err(LoginError::Expired { server: self.server.name.clone() });
        }
        let reason = format!("it was tried {MAX_RENEWALS} times within a minute");
        Err(LoginError::Step { step: RENEWING, reason })
    }

    fn renewals(&self) -> MutexGuard<'_, Renewals> {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedLogin {
    fn saved(login: StoredLogin) -> Self {
        Self { login, is_saved: true }
    }
}

fn bearer_header(login: &StoredLogin) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", login.access_token)).ok()?;
    value.set_sensitive(true);
    Some(value)
}
