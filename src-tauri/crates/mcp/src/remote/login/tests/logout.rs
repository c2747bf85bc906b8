//! Tests that a logout also ends the login at the authorization server.

use super::hosts::{Hosts, tokens};
use super::log_in;
use super::renewal::{bearer, kept};
use crate::remote::login::LoginError;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_logout_revokes_both_tokens_where_the_authorization_server_offers_it() {
    let hosts = Hosts::start().await;
    let login = log_in(hosts.server(), "code=code-1").await.unwrap();
    assert!(!login.revoke(&hosts.server()).await);
    let endpoint = format!("{}/revoke", hosts.auth.base);
    hosts.metadata(|metadata| drop(metadata.insert("revocation_endpoint".into(), json!(endpoint))));
    let mut login = log_in(hosts.server(), "code=code-1").await.unwrap();
    assert!(!login.revoke(&hosts.server()).await, "it answers with 404");
    hosts.auth.set("/revoke", 200, "", "");
    let before = hosts.auth.count("/revoke");
    assert!(login.revoke(&hosts.server()).await);
    let received = hosts.auth.received();
    let mut forms: Vec<_> =
        received.iter().filter(|one| one.path == "/revoke").skip(before).map(|one| one.form()).collect();
    forms.sort();
    for (form, kind) in forms.iter().zip(["access", "refresh"]) {
        let field = |key: &str| form.get(key).map(String::as_str);
        let (token, hint) = (format!("{kind}-1"), format!("{kind}_token"));
        assert_eq!((field("token"), field("token_type_hint")), (Some(&*token), Some(&*hint)));
        assert_eq!((field("client_id"), field("client_secret")), (Some("c1"), None));
    }
    assert_eq!(forms.len(), 2);
    login.client_secret = Some("s/1".into());
    assert!(login.revoke(&hosts.server()).await);
    let last = hosts.auth.last("/revoke");
    assert!(last.head.to_lowercase().contains("authorization: basic "), "{}", last.head);
    assert!(last.head.contains("YzE6cyUyRjE="), "`c1:s%2F1`: {}", last.head);
    assert!(!login.revoke(&hosts.strict()).await, "the entry does not allow its address");
}

#[tokio::test]
async fn a_public_client_sends_an_empty_secret_if_the_authorization_server_requires_the_parameter() {
    let hosts = Hosts::start().await;
    let endpoint = format!("{}/revoke", hosts.auth.base);
    hosts.metadata(|metadata| drop(metadata.insert("revocation_endpoint".into(), json!(endpoint))));
    let mut login = log_in(hosts.server(), "code=code-1").await.unwrap();
    login.refresh_token = None;
    hosts.auth.set("/revoke", 400, "", "");
    let auth = hosts.auth.clone();
    hosts.auth.before("/revoke", move || auth.set("/revoke", 200, "", ""));
    assert!(login.revoke(&hosts.server()).await);
    let received = hosts.auth.received();
    let forms = received.iter().filter(|one| one.path == "/revoke").map(|one| one.form());
    let secrets: Vec<_> = forms.map(|form| form.get("client_secret").cloned()).collect();
    assert_eq!(secrets, [None, Some(String::new())]);
    // A client with a secret does not try to authenticate without the secret.
    login.client_secret = Some("s1".into());
    hosts.auth.set("/revoke", 400, "", "");
    assert!(!login.revoke(&hosts.server()).await);
    assert_eq!(hosts.auth.count("/revoke"), 3);
}

#[tokio::test]
async fn a_login_is_revoked_only_if_every_token_is() {
    let hosts = Hosts::start().await;
    let endpoint = format!("{}/revoke", hosts.auth.base);
    hosts.metadata(|metadata| drop(metadata.insert("revocation_endpoint".into(), json!(endpoint))));
    let login = log_in(hosts.server(), "code=code-1").await.unwrap();
    hosts.auth.set("/revoke", 503, "", "");
    let auth = hosts.auth.clone();
    // Only the first request fails.
    hosts.auth.before("/revoke", move || auth.set("/revoke", 200, "", ""));
    assert!(!login.revoke(&hosts.server()).await);
    assert!(login.revoke(&hosts.server()).await);
    assert_eq!(hosts.auth.count("/revoke"), 4);
}

#[tokio::test]
async fn tokens_renewed_during_a_logout_are_revoked() {
    let hosts = Hosts::start().await;
    let endpoint = format!("{}/revoke", hosts.auth.base);
    hosts.metadata(|metadata| drop(metadata.insert("revocation_endpoint".into(), json!(endpoint))));
    hosts.auth.set("/revoke", 200, "", "");
    let (kept, login) = kept(&hosts).await;
    let (first, login) = (login.header().await.unwrap(), Arc::new(login));
    hosts.auth.json("/token", &tokens(2, "read"));
    let stored = kept.login.lock().unwrap().clone().unwrap();
    // The authorization server answers only after the user has logged out or logged in again.
    let mut own = stored.clone();
    own.is_own_client = true;
    let renewed = ["access-2", "refresh-2"];
    for (before, now, revoked) in [
        (&stored, None, &renewed[..]),
        (&stored, Some(stored.clone().with_id("second")), &renewed),
        (&own, None, &renewed),
        // Both logins of the user's own client may have the same grant.
        (&own, Some(own.clone().with_id("second")), &[]),
    ] {
        kept.set("first", before.clone());
        let (there, at) = (kept.login.clone(), hosts.auth.count("/revoke"));
        hosts.auth.before("/token", move || there.lock().unwrap().clone_from(&now));
        assert_eq!(login.header_after_refusal(first.as_ref()).await.unwrap(), None);
        let received = hosts.auth.received();
        let sent = received
            .iter()
            .filter(|one| one.path == "/revoke")
            .skip(at)
            .map(|one| one.form()["token"].clone());
        let mut sent: Vec<_> = sent.collect();
        sent.sort();
        assert_eq!(sent, revoked);
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_token_causes_a_limited_number_of_renewals() {
    let hosts = Hosts::start().await;
    let (_, login) = kept(&hosts).await;
    let mut now = login.header().await.unwrap();
    for number in 2..7 {
        hosts.auth.json("/token", &tokens(number, "read"));
        now = login.header_after_refusal(now.as_ref()).await.unwrap();
        assert_eq!(bearer(now.clone()), format!("Bearer access-{number}"));
    }
    let sent = hosts.auth.count("/token");
    let refused = login.header_after_refusal(now.as_ref()).await.unwrap_err();
    assert!(matches!(refused, LoginError::Step { .. }), "{refused}");
    assert!(refused.to_string().contains("it was tried 5 times within a minute"), "{refused}");
    assert_eq!((hosts.auth.count("/token"), bearer(login.header().await.unwrap())), (sent, bearer(now)));
}
