//! Tests that access tokens are read from the store, renewed only once, and never gain scopes.

use super::hosts::{Hosts, tokens};
use super::log_in;
use crate::remote::login::{LoginError, LoginStore, ServerLogin, StoredLogin};
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Store that contains one login.
#[derive(Clone, Default)]
pub(super) struct Kept {
    pub(super) login: Arc<Mutex<Option<StoredLogin>>>,
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    is_broken: Arc<AtomicBool>,
    expired: Arc<Mutex<Vec<String>>>,
}

impl Kept {
    pub(super) fn set(&self, id: &str, login: StoredLogin) {
        *self.login.lock().unwrap() = Some(login.with_id(id));
    }

    fn change(&self, change: impl FnOnce(&mut StoredLogin)) {
        change(self.login.lock().unwrap().as_mut().unwrap());
    }

    fn secrets(&self) -> Vec<String> {
        self.login.lock().unwrap().as_ref().unwrap().secrets().map(str::to_owned).collect()
    }
}

impl LoginStore for Kept {
    fn login_id(&self) -> BoxFuture<'_, Option<String>> {
        let mark = self.login.lock().unwrap().as_ref().map(|login| login.id().to_owned());
        Box::pin(async { mark })
    }

    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>> {
        let login = self.login.lock().unwrap().clone();
        Box::pin(async { Ok(login) })
    }

    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn Send>, LoginError>> {
        let turn = self.turn.clone();
        Box::pin(async { Ok(Box::new(turn.lock_owned().await) as Box<dyn Send>) })
    }

    fn may_share_grant<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, bool> {
        let is_shared = login.is_own_client() && self.login.lock().unwrap().is_some();
        Box::pin(async move { is_shared })
    }

    fn save<'a>(
        &'a self,
        login: &'a StoredLogin,
        _lock: Box<dyn Send>,
    ) -> BoxFuture<'a, Result<bool, LoginError>> {
        if self.is_broken.load(Ordering::Relaxed) {
            let problem = LoginError::Store { server: "far".into(), reason: "broken".into() };
            return Box::pin(async { Err(problem) });
        }
        let mut stored = self.login.lock().unwrap();
        let is_kept = stored.as_ref().is_some_and(|stored| stored.id() == login.id());
        if is_kept {
            *stored = Some(login.clone());
        }
        Box::pin(async move { Ok(is_kept) })
    }

    fn record_expired<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, ()> {
        self.expired.lock().unwrap().push(login.id().to_owned());
        Box::pin(async {})
    }
}

pub(super) async fn kept(hosts: &Hosts) -> (Kept, ServerLogin) {
    let kept = Kept::default();
    kept.set("first", log_in(hosts.server(), "code=code-1").await.unwrap());
    (kept.clone(), connection(hosts, &kept))
}

fn connection(hosts: &Hosts, kept: &Kept) -> ServerLogin {
    ServerLogin::new(hosts.server(), Box::new(kept.clone()), None)
}

pub(super) fn bearer(header: Option<HeaderValue>) -> String {
    header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_refused_or_expiring_token_is_renewed_at_the_approved_endpoint() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    assert_eq!(bearer(first.clone()), "Bearer access-1");
    // The server now announces a different authorization server, which must not receive the refresh token.
    let other = Hosts::start().await;
    hosts.set_issuer(&other.auth.base);
    hosts.auth.json("/token", &tokens(2, "read"));
    let second = login.header_after_refusal(first.as_ref()).await.unwrap();
    assert_eq!(bearer(second.clone()), "Bearer access-2");
    let refreshed = hosts.auth.last("/token").form();
    let field = |key: &str| refreshed.get(key).cloned().unwrap_or_default();
    assert_eq!((field("grant_type"), field("refresh_token")), ("refresh_token".into(), "refresh-1".into()));
    assert_eq!((field("resource"), field("scope")), (hosts.url(), "read".into()));
    assert_eq!(other.auth.received().len(), 0);
    assert_eq!(
        bearer(login.header_after_refusal(first.as_ref()).await.unwrap()),
        "Bearer access-2",
        "one refusal renews it once"
    );
    assert_eq!(hosts.auth.count("/token"), 2);

    // If the response contains no refresh token, the old one is kept.
    hosts.auth.json("/token", &json!({ "access_token": "access-3", "token_type": "Bearer" }));
    kept.change(|login| login.expires_at = Some(1));
    let login = connection(&hosts, &kept);
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-3");
    assert_eq!(kept.secrets(), ["access-3", "refresh-2"]);
}

#[tokio::test]
async fn a_renewal_cannot_widen_the_scopes() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "read admin"));
    let message = login.header_after_refusal(first.as_ref()).await.unwrap_err().to_string();
    assert!(
        message.contains("granted more than was requested (`admin`), so its token was discarded"),
        "{message}"
    );
    assert_eq!(kept.secrets()[0], "access-1");
    hosts.auth.json("/token", &tokens(3, "read"));
    assert_eq!(bearer(login.header_after_refusal(first.as_ref()).await.unwrap()), "Bearer access-3");
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_has_expired() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    for (status, code) in [(400, "invalid_grant"), (401, "invalid_client"), (400, "unauthorized_client")] {
        let rejected = json!({ "error": code }).to_string();
        hosts.auth.set("/token", status, "Content-Type: application/json\r\n", &rejected);
        let message = login.header_after_refusal(first.as_ref()).await.unwrap_err();
        assert!(matches!(message, LoginError::Expired { .. }), "{code}: {message}");
        assert!(message.to_string().ends_with("run: ironcurtain servers login far"), "{message}");
        assert_eq!(std::mem::take(&mut *kept.expired.lock().unwrap()), ["first"], "{code}");
    }
    // The login remains valid while the authorization server is unavailable.
    hosts.auth.set("/token", 503, "", "");
    let message = login.header_after_refusal(first.as_ref()).await.unwrap_err();
    assert!(matches!(message, LoginError::Step { .. }), "{message}");
    assert!(kept.expired.lock().unwrap().is_empty());
    hosts.auth.json("/token", &tokens(2, "read"));
    assert_eq!(bearer(login.header_after_refusal(first.as_ref()).await.unwrap()), "Bearer access-2");
}

#[tokio::test]
async fn an_expired_login_causes_a_limited_number_of_requests_and_keeps_its_advice() {
    let hosts = Hosts::start().await;
    let (_, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    let rejected = json!({ "error": "invalid_grant" }).to_string();
    hosts.auth.set("/token", 400, "Content-Type: application/json\r\n", &rejected);
    let before = hosts.auth.count("/token");
    for _ in 0..10 {
        let message = login.header_after_refusal(first.as_ref()).await.unwrap_err();
        assert!(matches!(message, LoginError::Expired { .. }), "{message}");
    }
    assert_eq!(hosts.auth.count("/token") - before, 5);
}

#[tokio::test]
async fn a_renewal_sends_the_resource_exactly_as_the_login_did() {
    let hosts = Hosts::start().await;
    // A URL without a path.
    let resource = json!({ "resource": hosts.mcp.base, "authorization_servers": [hosts.auth.base] });
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &resource);
    let (_, login) = kept(&hosts).await;
    assert_eq!(hosts.auth.last("/token").form()["resource"], hosts.mcp.base);
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "read"));
    assert_eq!(bearer(login.header_after_refusal(first.as_ref()).await.unwrap()), "Bearer access-2");
    let form = hosts.auth.last("/token").form();
    assert_eq!((&*form["grant_type"], &form["resource"]), ("refresh_token", &hosts.mcp.base));
    assert_eq!(form["refresh_token"], "refresh-1");
}

#[tokio::test]
async fn a_renewal_names_the_granted_scopes() {
    let hosts = Hosts::start().await;
    hosts.mcp.set("/mcp", 405, "", "");
    let resource = json!({ "resource": hosts.url(), "authorization_servers": [hosts.auth.base],
        "scopes_supported": ["read", "write", "a,b"] });
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &resource);
    for (granted, stored) in
        [("read", "read"), ("read,write", "read write"), ("a,b read", "a,b read"), ("", "read write a,b")]
    {
        hosts.auth.json("/token", &tokens(1, granted));
        let (kept, login) = kept(&hosts).await;
        let first = login.header().await.unwrap();
        hosts.auth.json("/token", &tokens(2, granted));
        assert_eq!(
            bearer(login.header_after_refusal(first.as_ref()).await.unwrap()),
            "Bearer access-2",
            "{granted}"
        );
        assert_eq!(hosts.auth.last("/token").form()["scope"], stored);
        if granted == "read" {
            hosts.auth.json("/token", &tokens(3, "read write"));
            kept.change(|login| login.expires_at = Some(1));
            kept.change(|login| login.revocation_endpoint = Some(format!("{}/revoke", hosts.auth.base)));
            let message = connection(&hosts, &kept).header().await.unwrap_err().to_string();
            assert!(message.contains("granted more than was requested (`write`)"), "{message}");
            assert_eq!(revoked(&hosts), ["access-3", "refresh-3"]);
            // A response without a new refresh token must not cause the stored one to be revoked.
            let mut without_refresh = tokens(4, "read write");
            without_refresh.as_object_mut().unwrap().remove("refresh_token");
            hosts.auth.json("/token", &without_refresh);
            connection(&hosts, &kept).header().await.unwrap_err();
            assert_eq!(revoked(&hosts), ["access-3", "access-4", "refresh-3"]);
        }
    }
    // Scopes named in a renewal's response are not requested later.
    let resource = json!({ "resource": hosts.url(), "authorization_servers": [hosts.auth.base] });
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &resource);
    hosts
        .auth
        .json("/token", &json!({ "access_token": "access-1", "token_type": "Bearer", "refresh_token": "r" }));
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "admin"));
    login.header_after_refusal(first.as_ref()).await.unwrap();
    assert!(kept.login.lock().unwrap().as_ref().unwrap().scopes().is_empty());
}

/// Returns the tokens that were sent for revocation, in alphabetical order.
pub(super) fn revoked(hosts: &Hosts) -> Vec<String> {
    let received = hosts.auth.received();
    let sent = received.iter().filter(|one| one.path == "/revoke").map(|one| one.form()["token"].clone());
    let mut sent: Vec<String> = sent.collect();
    sent.sort();
    sent
}

#[tokio::test]
async fn requests_that_waited_for_a_failed_renewal_do_not_repeat_it() {
    let hosts = Hosts::start().await;
    let (_, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.set("/token", 503, "", "");
    let sent = hosts.auth.count("/token");
    let renew = || login.header_after_refusal(first.as_ref());
    let (one, two, three) = tokio::join!(renew(), renew(), renew());
    let problems = [one, two, three].map(|renewed| renewed.unwrap_err().to_string());
    assert!(problems.iter().all(|problem| problem.starts_with("renewing the login failed")), "{problems:?}");
    assert!(problems.iter().all(|problem| *problem == problems[0]), "{problems:?}");
    assert_eq!(hosts.auth.count("/token"), sent + 1);
    // A later request tries again.
    hosts.auth.json("/token", &tokens(2, "read"));
    assert_eq!(bearer(renew().await.unwrap()), "Bearer access-2");
}

#[tokio::test]
async fn a_lifetime_of_any_length_is_accepted() {
    let hosts = Hosts::start().await;
    let mut endless = tokens(1, "read");
    endless["expires_in"] = json!(u64::MAX);
    hosts.auth.json("/token", &endless);
    let (_, login) = kept(&hosts).await;
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-1");
    assert_eq!(hosts.auth.count("/token"), 1);
}

#[tokio::test]
async fn a_renewal_is_stored_even_if_its_request_is_cancelled() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "read"));
    let blocked = kept.turn.lock().await;
    let login = Arc::new(login);
    let (connection, refused) = (login.clone(), first.clone());
    let request = tokio::spawn(async move { connection.header_after_refusal(refused.as_ref()).await });
    // The renewal is waiting for the store's lock while the connection's login is locked.
    while Arc::strong_count(&kept.turn) < 3 {
        tokio::task::yield_now().await;
    }
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    drop(blocked);
    assert_eq!(bearer(login.header_after_refusal(first.as_ref()).await.unwrap()), "Bearer access-2");
    assert_eq!((kept.secrets()[0].as_str(), hosts.auth.count("/token")), ("access-2", 2));
}

#[tokio::test]
async fn a_renewed_token_is_used_even_if_it_cannot_be_stored() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "read"));
    kept.is_broken.store(true, Ordering::Relaxed);
    let message = login.header_after_refusal(first.as_ref()).await.unwrap_err();
    assert!(matches!(message, LoginError::Store { .. }), "{message}");
    let second = login.header().await.unwrap();
    assert_eq!(bearer(second.clone()), "Bearer access-2");
    // The next renewal uses the new refresh token and is stored.
    kept.is_broken.store(false, Ordering::Relaxed);
    hosts.auth.json("/token", &tokens(3, "read"));
    assert_eq!(bearer(login.header_after_refusal(second.as_ref()).await.unwrap()), "Bearer access-3");
    assert_eq!(hosts.auth.last("/token").form()["refresh_token"], "refresh-2");
    assert_eq!(kept.secrets(), ["access-3", "refresh-3"]);
}

#[tokio::test]
async fn a_token_that_is_still_valid_is_used_if_it_cannot_be_renewed() {
    let hosts = Hosts::start().await;
    let (kept, _) = kept(&hosts).await;
    hosts.auth.set("/token", 503, "", "");
    kept.change(|login| login.expires_at = Some(super::super::stored::now().as_secs() + 20));
    assert_eq!(bearer(connection(&hosts, &kept).header().await.unwrap()), "Bearer access-1");
    assert_eq!(hosts.auth.count("/token"), 2, "it was tried");
    kept.change(|login| login.expires_at = Some(1));
    let message = connection(&hosts, &kept).header().await.unwrap_err();
    assert!(matches!(message, LoginError::Step { .. }), "{message}");
}

#[tokio::test]
async fn the_last_request_renews_nothing() {
    let hosts = Hosts::start().await;
    let (kept, _) = kept(&hosts).await;
    kept.change(|login| login.expires_at = Some(1));
    let login = connection(&hosts, &kept);
    assert_eq!(bearer(login.last_header().await), "Bearer access-1");
    assert_eq!(hosts.auth.count("/token"), 1);
    hosts.auth.json("/token", &tokens(2, "read"));
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-2");
}

#[tokio::test]
async fn a_login_or_logout_during_a_renewal_counts() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let (first, login) = (login.header().await.unwrap(), Arc::new(login));
    let other = kept.login.lock().unwrap().clone().unwrap();
    hosts.auth.json("/token", &tokens(2, "read"));
    for new in [Some(other.clone().with_id("second")), None] {
        kept.set("first", other.clone());
        let blocked = kept.turn.lock().await;
        let (connection, refused) = (login.clone(), first.clone());
        let request = tokio::spawn(async move { connection.header_after_refusal(refused.as_ref()).await });
        while Arc::strong_count(&kept.turn) < 3 {
            tokio::task::yield_now().await;
        }
        kept.login.lock().unwrap().clone_from(&new);
        drop(blocked);
        assert_eq!(request.await.unwrap().unwrap(), None);
        assert_eq!(*kept.login.lock().unwrap(), new, "the login in force is not overwritten");
        assert_eq!(login.header().await.unwrap().is_some(), new.is_some());
    }
    assert_eq!(hosts.auth.count("/token"), 1);
}

/// Store whose list and tokens have different ids, as between the two writes of a login.
struct Between(Kept);
impl LoginStore for Between {
    fn login_id(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some("second".to_owned()) })
    }
    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>> {
        self.0.load()
    }
    fn lock(&self) -> BoxFuture<'_, Result<Box<dyn Send>, LoginError>> {
        self.0.lock()
    }
    fn may_share_grant<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, bool> {
        self.0.may_share_grant(login)
    }
    fn save<'a>(
        &'a self,
        login: &'a StoredLogin,
        lock: Box<dyn Send>,
    ) -> BoxFuture<'a, Result<bool, LoginError>> {
        self.0.save(login, lock)
    }
    fn record_expired<'a>(&'a self, login: &'a StoredLogin) -> BoxFuture<'a, ()> {
        self.0.record_expired(login)
    }
}

#[tokio::test]
async fn tokens_of_an_earlier_login_are_not_sent() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let between = ServerLogin::new(hosts.server(), Box::new(Between(kept)), None);
    assert_eq!(between.header().await.unwrap(), None);
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-1");
}

#[tokio::test]
async fn logging_in_or_out_takes_effect_with_the_next_request() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-1");
    *kept.login.lock().unwrap() = None;
    assert_eq!(login.header().await.unwrap(), None);
    assert_eq!(login.header_after_refusal(None).await.unwrap(), None);
    hosts.auth.json("/token", &tokens(5, "read"));
    kept.set("second", log_in(hosts.server(), "code=code-2").await.unwrap());
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-5");
    // A login for another URL is not used.
    let other = Hosts::start().await;
    let moved = connection(&other, &kept);
    assert_eq!(moved.header().await.unwrap(), None);
}
