//! Logins to local test servers, honest and hostile. Each refused case has an allowed counterpart.

mod attacks;
mod deception;
mod hosts;
mod logout;
mod renewal;

use super::{CallbackListener, ClientChoice, LoginError, LoginOffer, LoginServer, StartedLogin, StoredLogin};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hosts::{Hosts, get};
use sha2::{Digest, Sha256};

/// Starts a login that registers a client and opens a port.
async fn start_login(server: LoginServer) -> Result<(StartedLogin, CallbackListener), LoginError> {
    let listener = CallbackListener::open(None).await?;
    let offer = LoginOffer::discover(server).await?;
    Ok((offer.begin(ClientChoice::default(), &listener.redirect()).await?, listener))
}

/// Logs in with a redirect that contains these parameters in addition to `state`.
async fn log_in(server: LoginServer, parameters: &str) -> Result<StoredLogin, LoginError> {
    let (started, listener) = start_login(server).await?;
    let answer = format!("{}?{parameters}&state={}", listener.redirect(), started.state());
    let browser = tokio::spawn(async move { get(&answer).await });
    let callback = listener.answer(&started.state()).await?;
    assert_eq!(browser.await.unwrap().unwrap().status, 200);
    started.finish(callback).await
}

#[tokio::test]
async fn a_login_finds_the_authorization_server_registers_and_exchanges_the_code() {
    let hosts = Hosts::start().await;
    let (started, listener) = start_login(hosts.server()).await.unwrap();
    let page = started.page().clone();
    let value = |key: &str| page.query_pairs().find(|(name, _)| name == key).unwrap().1.into_owned();
    assert!(page.as_str().starts_with(&format!("{}/authorize?", hosts.auth.base)), "{page}");
    assert_eq!(
        (value("response_type"), value("client_id"), value("scope")),
        ("code".into(), "c1".into(), "read".into())
    );
    assert_eq!((value("code_challenge_method"), value("resource")), ("S256".into(), hosts.url()));
    assert_eq!(value("redirect_uri"), listener.redirect());
    let registered = hosts.auth.last("/register").json();
    assert_eq!(registered["redirect_uris"], serde_json::json!([listener.redirect()]));

    let answer =
        format!("{}?code=code-1&state={}&iss={}", listener.redirect(), started.state(), hosts.auth.base);
    let browser = tokio::spawn(async move { get(&answer).await });
    let callback = listener.answer(&value("state")).await.unwrap();
    let login = started.finish(callback).await.unwrap();
    browser.await.unwrap().unwrap();
    let exchanged = hosts.auth.last("/token").form();
    let field = |key: &str| exchanged.get(key).cloned().unwrap_or_default();
    assert_eq!((field("grant_type"), field("code")), ("authorization_code".into(), "code-1".into()));
    assert_eq!((field("resource"), field("redirect_uri")), (hosts.url(), value("redirect_uri")));
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
    assert_eq!(challenge, value("code_challenge"));
    let secrets: Vec<&str> = login.secrets().collect();
    assert_eq!(secrets, ["access-1", "refresh-1"]);
    assert_eq!(
        (login.url(), login.issuer(), login.scopes()),
        (hosts.url().as_str(), hosts.auth.base.as_str(), &["read".to_owned()][..])
    );
    assert!(!format!("{login:?}").contains("access-1"));
    assert_eq!(StoredLogin::parse(&login.to_json()), Some(login));
}

#[tokio::test]
async fn a_server_without_a_challenge_is_found_at_the_well_known_address() {
    let hosts = Hosts::start().await;
    hosts.mcp.set("/mcp", 405, "", "");
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    assert_eq!(
        (offer.issuer(), offer.has_other_host()),
        (hosts.auth.base.as_str(), false),
        "both are on 127.0.0.1"
    );
    assert_eq!(offer.scopes(&ClientChoice::default()), ["read"]);
    // An OpenID provider publishes its metadata at a different path.
    let metadata = hosts.auth.answer("/.well-known/oauth-authorization-server");
    hosts.auth.set("/.well-known/oauth-authorization-server", 404, "", "");
    hosts.auth.set("/.well-known/openid-configuration", 200, "Content-Type: application/json\r\n", &metadata);
    assert!(LoginOffer::discover(hosts.server()).await.is_ok());
}

#[tokio::test]
async fn a_server_that_announces_nothing_offers_no_login() {
    let hosts = Hosts::start().await;
    hosts.mcp.set("/mcp", 401, "WWW-Authenticate: Bearer\r\n", "");
    hosts.mcp.set("/.well-known/oauth-protected-resource/mcp", 404, "", "");
    let refused = LoginOffer::discover(hosts.server()).await.err().unwrap();
    assert!(matches!(refused, LoginError::NotOffered { .. }), "{refused}");
    assert!(refused.to_string().contains("run: ironcurtain servers add http://127.0.0.1"), "{refused}");
}

#[tokio::test]
async fn without_registration_the_user_is_told_to_give_a_client_id() {
    let hosts = Hosts::start().await;
    hosts.metadata(|metadata| drop(metadata.remove("registration_endpoint")));
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    let refused = offer.check(&ClientChoice::default()).err().unwrap().to_string();
    assert!(refused.contains("ironcurtain servers login far --client-id ID"), "{refused}");
    let own = ClientChoice {
        client_id: Some("mine".into()),
        client_secret: Some("s3cret".into()),
        ..ClientChoice::default()
    };
    let listener = CallbackListener::open(None).await.unwrap();
    let started = offer.begin(own, &listener.redirect()).await.unwrap();
    assert!(
        started.page().as_str().contains("client_id=mine") && !started.page().as_str().contains("s3cret")
    );
    assert_eq!(hosts.auth.count("/register"), 0);
    let answer = format!("{}?code=code-1&state={}", listener.redirect(), started.state());
    let browser = tokio::spawn(async move { get(&answer).await });
    let callback = listener.answer(&started.state()).await.unwrap();
    let login = started.finish(callback).await.unwrap();
    browser.await.unwrap().unwrap();
    let own = login.own_client().unwrap();
    assert_eq!((own.client_id.as_deref(), own.client_secret.as_deref()), (Some("mine"), Some("s3cret")));
    assert_eq!((own.issuer.as_deref(), own.redirect), (Some(hosts.auth.base.as_str()), None));
    assert!(hosts.auth.last("/token").head.to_lowercase().contains("authorization: basic "));
}
