//! Access tokens of a connection: read, renewed once, and never widened.

use super::hosts::{Hosts, tokens};
use super::logged_in;
use crate::remote::login::{LoginError, LoginStore, ServerLogin, StoredLogin};
use futures_util::future::BoxFuture;
use hyper::header::HeaderValue;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// A stored login and its mark.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Option<(String, StoredLogin)>>>);

impl Kept {
    fn set(&self, mark: &str, login: StoredLogin) {
        *self.0.lock().unwrap() = Some((mark.to_owned(), login));
    }

    fn change(&self, change: impl FnOnce(&mut StoredLogin)) {
        change(&mut self.0.lock().unwrap().as_mut().unwrap().1);
    }
}

impl LoginStore for Kept {
    fn mark(&self) -> BoxFuture<'_, Option<String>> {
        let mark = self.0.lock().unwrap().as_ref().map(|(mark, _)| mark.clone());
        Box::pin(async { mark })
    }

    fn load(&self) -> BoxFuture<'_, Result<Option<StoredLogin>, LoginError>> {
        let login = self.0.lock().unwrap().as_ref().map(|(_, login)| login.clone());
        Box::pin(async { Ok(login) })
    }

    fn save<'a>(&'a self, mark: &'a str, login: &'a StoredLogin) -> BoxFuture<'a, Result<(), LoginError>> {
        self.set(mark, login.clone());
        Box::pin(async { Ok(()) })
    }
}

async fn kept(hosts: &Hosts) -> (Kept, ServerLogin) {
    let kept = Kept::default();
    kept.set("first", logged_in(hosts.server(), "code=code-1").await.unwrap());
    (kept.clone(), ServerLogin::new(hosts.server(), Box::new(kept)))
}

fn bearer(header: Option<HeaderValue>) -> String {
    header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_refused_or_expiring_token_is_renewed_at_the_approved_endpoint() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    assert_eq!(bearer(first.clone()), "Bearer access-1");
    // The server names another authorization server now, which does not get the refresh token.
    let other = Hosts::start().await;
    hosts.announces(&other.auth.base);
    hosts.auth.json("/token", &tokens(2, "read"));
    let second = login.after(first.as_ref()).await.unwrap();
    assert_eq!(bearer(second.clone()), "Bearer access-2");
    let refreshed = hosts.auth.last("/token").form();
    let field = |key: &str| refreshed.get(key).cloned().unwrap_or_default();
    assert_eq!((field("grant_type"), field("refresh_token")), ("refresh_token".into(), "refresh-1".into()));
    assert_eq!((field("resource"), field("scope")), (hosts.url(), "read".into()));
    assert_eq!(other.auth.received().len(), 0);
    assert_eq!(
        bearer(login.after(first.as_ref()).await.unwrap()),
        "Bearer access-2",
        "one refusal renews it once"
    );
    assert_eq!(hosts.auth.count("/token"), 2);

    // A response without a refresh token keeps the old one.
    hosts.auth.json("/token", &json!({ "access_token": "access-3", "token_type": "Bearer" }));
    kept.change(|login| login.expires_at = Some(1));
    let login = ServerLogin::new(hosts.server(), Box::new(kept.clone()));
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-3");
    let secrets: Vec<String> =
        kept.0.lock().unwrap().as_ref().unwrap().1.secrets().map(str::to_owned).collect();
    assert_eq!(secrets, ["access-3", "refresh-2"]);
}

#[tokio::test]
async fn a_renewal_cannot_widen_the_scopes() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    hosts.auth.json("/token", &tokens(2, "read admin"));
    let said = login.after(first.as_ref()).await.unwrap_err().to_string();
    assert!(said.contains("granted more than was requested (`admin`), so its token was discarded"), "{said}");
    assert_eq!(kept.0.lock().unwrap().as_ref().unwrap().1.secrets().next(), Some("access-1"));
    hosts.auth.json("/token", &tokens(3, "read"));
    assert_eq!(bearer(login.after(first.as_ref()).await.unwrap()), "Bearer access-3");
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_has_expired() {
    let hosts = Hosts::start().await;
    let (_, login) = kept(&hosts).await;
    let first = login.header().await.unwrap();
    let rejected = json!({ "error": "invalid_grant" }).to_string();
    hosts.auth.set("/token", 400, "Content-Type: application/json\r\n", &rejected);
    let said = login.after(first.as_ref()).await.unwrap_err();
    assert!(matches!(said, LoginError::Expired { .. }), "{said}");
    assert!(said.to_string().ends_with("run: ironcurtain servers login far"), "{said}");
    // An authorization server that is down does not end the login.
    hosts.auth.set("/token", 503, "", "");
    let said = login.after(first.as_ref()).await.unwrap_err();
    assert!(matches!(said, LoginError::Step { .. }), "{said}");
    hosts.auth.json("/token", &tokens(2, "read"));
    assert_eq!(bearer(login.after(first.as_ref()).await.unwrap()), "Bearer access-2");
}

#[tokio::test]
async fn logging_in_or_out_takes_effect_with_the_next_request() {
    let hosts = Hosts::start().await;
    let (kept, login) = kept(&hosts).await;
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-1");
    *kept.0.lock().unwrap() = None;
    assert_eq!(login.header().await.unwrap(), None);
    assert_eq!(login.after(None).await.unwrap(), None);
    hosts.auth.json("/token", &tokens(5, "read"));
    kept.set("second", logged_in(hosts.server(), "code=code-2").await.unwrap());
    assert_eq!(bearer(login.header().await.unwrap()), "Bearer access-5");
    // A login of another address is not sent.
    let other = Hosts::start().await;
    let moved = ServerLogin::new(other.server(), Box::new(kept));
    assert_eq!(moved.header().await.unwrap(), None);
}
