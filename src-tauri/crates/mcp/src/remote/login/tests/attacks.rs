//! Attacks by hostile servers, authorization servers and web pages.

use super::hosts::{FakeHost, Hosts, get, tokens};
use super::{ClientChoice, LoginError, LoginOffer, log_in, start_login};
use crate::remote::login::{login_command, shell_quote};
use serde_json::{Value, json};

async fn refused(hosts: &Hosts) -> String {
    LoginOffer::discover(hosts.server()).await.err().map(|problem| problem.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let hosts = Hosts::start().await;
    let mixed = log_in(hosts.server(), "code=code-1&iss=https%3A%2F%2Fevil.example").await.unwrap_err();
    assert!(
        matches!(mixed, LoginError::Issuer { .. }) && mixed.to_string().contains("`https://evil.example`"),
        "{mixed}"
    );
    assert_eq!(hosts.auth.count("/token"), 0, "the code was not sent");
    let own = format!("code=code-1&iss={}", hosts.auth.base);
    log_in(hosts.server(), &own).await.unwrap();
    // The server announces `iss`, but the redirect lacks it.
    log_in(hosts.server(), "code=code-1").await.unwrap();
    hosts.metadata(|metadata| {
        metadata.insert("authorization_response_iss_parameter_supported".into(), json!(true));
    });
    let missing = log_in(hosts.server(), "code=code-1").await.unwrap_err().to_string();
    assert!(missing.contains("received one from `nobody`"), "{missing}");
    log_in(hosts.server(), &own).await.unwrap();
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    let hosts = Hosts::start().await;
    hosts.metadata(|metadata| drop(metadata.insert("issuer".into(), json!("https://bank.example"))));
    let message = refused(&hosts).await;
    assert!(message.contains("received one from `https://bank.example`"), "{message}");
    hosts.metadata(|metadata| drop(metadata.insert("issuer".into(), json!(hosts.auth.base))));
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn an_answer_with_another_state_does_not_end_the_login() {
    let hosts = Hosts::start().await;
    let (started, listener) = start_login(hosts.server()).await.unwrap();
    let (redirect, state) = (listener.redirect(), started.state());
    let (expected, address) = (state.clone(), redirect.clone());
    let received = tokio::spawn(async move { listener.answer(&expected).await });
    for wrong in ["code=stolen&state=wrong", "code=stolen", "error=access_denied&state=wrong"] {
        let page = get(&format!("{address}?{wrong}")).await.unwrap();
        assert_eq!(page.status, 400, "{wrong}");
        assert!(page.body.contains("This is not the login") && !page.body.contains("stolen"));
    }
    let page = get(&format!("{redirect}?code=code-1&state={state}")).await.unwrap();
    assert_eq!(page.status, 200);
    started.finish(received.await.unwrap().unwrap()).await.unwrap();
    assert_eq!(hosts.auth.last("/token").form().get("code").map(String::as_str), Some("code-1"));
}

#[tokio::test]
async fn a_code_is_taken_once() {
    let hosts = Hosts::start().await;
    let (started, listener) = start_login(hosts.server()).await.unwrap();
    let answer = format!("{}?code=code-1&state={}", listener.redirect(), started.state());
    let state = started.state();
    let received = tokio::spawn(async move { listener.answer(&state).await });
    assert_eq!(get(&answer).await.unwrap().status, 200);
    let callback = received.await.unwrap().unwrap();
    assert!(get(&answer).await.is_err(), "the port is closed");
    started.finish(callback).await.unwrap();
    assert_eq!(hosts.auth.count("/token"), 1);
}

#[tokio::test]
async fn the_callback_page_never_redirects_and_repeats_nothing() {
    let hosts = Hosts::start().await;
    let (started, listener) = start_login(hosts.server()).await.unwrap();
    let (redirect, state) = (listener.redirect(), started.state());
    let answer =
        format!("{redirect}?code=code-1&state={state}&redirect_uri=https://evil.example&next=//evil.example");
    let expected = state.clone();
    let received = tokio::spawn(async move { listener.answer(&expected).await });
    let page = get(&answer).await.unwrap();
    assert_eq!(page.status, 200);
    let all = page.headers.to_lowercase() + &page.body;
    assert!(
        !all.contains("location")
            && !all.contains("evil")
            && !all.contains("code-1")
            && !all.contains(&state),
        "{all}"
    );
    assert!(
        all.contains("content-security-policy: default-src 'none'")
            && all.contains("referrer-policy: no-referrer")
    );
    assert!(received.await.unwrap().is_ok());
}

#[tokio::test]
async fn metadata_that_redirects_to_another_host_is_refused() {
    let hosts = Hosts::start().await;
    let path = "/.well-known/oauth-authorization-server";
    let metadata = hosts.auth.answer(path);
    let elsewhere = format!("Location: {}{path}\r\n", hosts.mcp.base);
    hosts.auth.set(path, 302, &elsewhere, "");
    hosts.mcp.set(path, 200, "Content-Type: application/json\r\n", &metadata);
    let message = refused(&hosts).await;
    assert!(message.contains("non-same-origin"), "{message}");
    assert_eq!(hosts.mcp.count(path), 0);
    hosts.auth.set(path, 302, "Location: /moved\r\n", "");
    hosts.auth.set("/moved", 200, "Content-Type: application/json\r\n", &metadata);
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn a_token_is_accepted_only_from_the_token_endpoint() {
    let hosts = Hosts::start().await;
    // The redirect contains a token, as in the implicit flow.
    let implicit = log_in(hosts.server(), "access_token=planted&token_type=bearer").await.unwrap_err();
    assert_eq!(implicit.to_string(), "the authorization server refused the login: `it sent no code`");
    // The token endpoint redirects, which would send the code to another host.
    hosts.mcp.json("/token", &tokens(9, "read"));
    hosts.auth.set("/token", 307, &format!("Location: {}/token\r\n", hosts.mcp.base), "");
    let moved = log_in(hosts.server(), "code=code-1").await.unwrap_err().to_string();
    assert!(moved.contains("exchanging the code for a token failed"), "{moved}");
    assert_eq!(hosts.mcp.count("/token"), 0);
    hosts.auth.json("/token", &tokens(1, "read"));
    log_in(hosts.server(), "code=code-1").await.unwrap();
}

#[tokio::test]
async fn an_error_of_the_token_endpoint_repeats_no_code() {
    let hosts = Hosts::start().await;
    let echo = json!({ "error": "invalid_grant", "error_description": "code-77 is\u{1b}[31m unknown" });
    hosts.auth.set("/token", 400, "Content-Type: application/json\r\n", &echo.to_string());
    let message = log_in(hosts.server(), "code=code-77").await.unwrap_err().to_string();
    assert!(
        message.contains("invalid_grant") && !message.contains("code-77") && !message.contains('\u{1b}'),
        "{message}"
    );
}

#[tokio::test]
async fn addresses_that_are_not_public_are_contacted_only_if_the_entry_lists_them() {
    let mut hosts = Hosts::start().await;
    hosts.names.insert("rebound.example", "10.0.0.1".parse().unwrap());
    hosts.names.insert("meta.example", "169.254.169.254".parse().unwrap());
    hosts.names.insert("sly.example", "127.0.0.1".parse().unwrap());
    let dialled = || hosts.dialled.lock().unwrap().clone();
    let unusable = "none published usable metadata";
    for (private, why) in [
        ("https://10.0.0.1", unusable),
        ("https://169.254.169.254", unusable),
        ("https://[::1]", "is not a public address, so nothing was sent to it"),
        ("https://rebound.example", "resolves to 10.0.0.1, which is in a private network"),
        ("https://meta.example", "resolves to 169.254.169.254, which hands out this machine's credentials"),
        ("https://sly.example", "resolves to 127.0.0.1, which is this machine itself"),
        (hosts.auth.base.as_str(), "is not a public address, so nothing was sent to it"),
    ] {
        hosts.set_issuer(private);
        hosts.dialled.lock().unwrap().clear();
        let message = LoginOffer::discover(hosts.strict()).await.err().map(|problem| problem.to_string());
        let message = message.unwrap_or_else(|| panic!("`{private}` was accepted"));
        let own = hosts.mcp.base.trim_start_matches("http://");
        assert!(dialled().iter().all(|host| host == own), "{private}: {:?}", dialled());
        assert!(
            message.contains(why) && message.contains("servers add http://127.0.0.1"),
            "{private}: {message}"
        );
    }
    assert_eq!(hosts.auth.received().len(), 0);
    assert_eq!(refused(&hosts).await, "", "the entry lists 127.0.0.1");
}

#[tokio::test]
async fn endpoints_at_other_addresses_are_refused_before_anything_is_sent() {
    let hosts = Hosts::start().await;
    let plain = "is not an address for a login; it must start with `https://`";
    let private = "is not a public address, so nothing was sent to it";
    for (key, wrong, why) in [
        ("token_endpoint", "https://169.254.169.254/latest", format!("`169.254.169.254:443` {private}")),
        (
            "token_endpoint",
            "http://auth.example.com/token",
            format!("`http://auth.example.com/token` {plain}"),
        ),
        ("registration_endpoint", "https://10.0.0.1/register", format!("`10.0.0.1:443` {private}")),
        ("authorization_endpoint", "http://192.168.1.1/authorize", format!("`192.168.1.1:80` {private}")),
        ("authorization_endpoint", "file:///etc/passwd", format!("`file:///etc/passwd` {plain}")),
        ("authorization_endpoint", "javascript:alert(1)", format!("`javascript:alert(1)` {plain}")),
        (
            "authorization_endpoint",
            "https://auth.example.com/authorize?state=fixed",
            "the authorization endpoint has a parameter `state` of its own".to_owned(),
        ),
        (
            "authorization_endpoint",
            "https://auth.example.com/authorize?request_uri=https://evil.example/request",
            "the authorization endpoint has a parameter `request_uri` of its own".to_owned(),
        ),
        (
            "authorization_endpoint",
            "https://auth.example.com/authorize?a=1&code%5Fchallenge=x",
            "the authorization endpoint has a parameter `code_challenge` of its own".to_owned(),
        ),
    ] {
        let path = "/.well-known/oauth-authorization-server";
        let honest = hosts.auth.answer(path);
        hosts.metadata(|metadata| drop(metadata.insert(key.into(), json!(wrong))));
        let message = refused(&hosts).await;
        let expected = format!("checking the authorization server's addresses failed: {why}");
        assert!(message.starts_with(&expected), "{wrong}: {message}");
        hosts.auth.set(path, 200, "Content-Type: application/json\r\n", &honest);
        assert_eq!(refused(&hosts).await, "");
    }
    let harmless = format!("{}/authorize?tenant=1", hosts.auth.base);
    hosts.metadata(|metadata| drop(metadata.insert("authorization_endpoint".into(), json!(harmless))));
    assert_eq!(refused(&hosts).await, "");
    assert_eq!(hosts.auth.count("/register") + hosts.auth.count("/token"), 0);
}

#[tokio::test]
async fn the_question_names_the_host_of_the_page_and_all_others() {
    let hosts = Hosts::start().await;
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    assert_eq!((offer.page_host().as_str(), offer.other_hosts()), ("127.0.0.1", vec![]));
    hosts.metadata(|metadata| {
        for (key, url) in [
            ("authorization_endpoint", "https://pages.example/authorize"),
            ("token_endpoint", "https://tokens.example/token"),
            ("registration_endpoint", "https://clients.example/register"),
        ] {
            metadata.insert(key.into(), json!(url));
        }
    });
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    assert_eq!(offer.page_host(), "pages.example");
    assert_eq!(offer.other_hosts(), ["clients.example", "pages.example", "tokens.example"]);
}

#[tokio::test]
async fn metadata_at_an_unusual_address_must_be_of_an_issuer_there() {
    let hosts = Hosts::start().await;
    let path = "/.well-known/unusual/metadata";
    let metadata: Value =
        serde_json::from_str(&hosts.auth.answer("/.well-known/oauth-authorization-server")).unwrap();
    hosts.set_issuer(&format!("{}{path}", hosts.auth.base));
    let expected = format!("expected a response from `{}`, received one from", hosts.auth.base);
    for (issuer, received) in [
        (json!("https://bank.example"), "`https://bank.example`"),
        (json!(hosts.mcp.base), hosts.mcp.base.as_str()),
        (json!(hosts.auth.base.replace("//", "//bank.example@")), "bank.example@"),
        (json!(hosts.auth.base.replace("127.0.0.1", "0x7f.1")), "0x7f.1"),
        (Value::Null, "`nobody`"),
    ] {
        let mut other = metadata.clone();
        other["issuer"] = issuer;
        hosts.auth.json(path, &other);
        let message = refused(&hosts).await;
        assert!(message.contains(&expected) && message.contains(received), "{message}");
    }
    hosts.auth.json(path, &metadata);
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn an_authorization_server_must_announce_pkce() {
    let hosts = Hosts::start().await;
    for methods in [None, Some(json!(["plain"])), Some(json!([]))] {
        hosts.metadata(|metadata| {
            metadata.remove("code_challenge_methods_supported");
            metadata.extend(methods.map(|methods| ("code_challenge_methods_supported".to_owned(), methods)));
        });
        let message = refused(&hosts).await;
        let expected = format!("`{}` does not announce PKCE with `S256`", hosts.auth.base);
        assert!(message.starts_with(&expected), "{message}");
    }
    let both = json!(["plain", "S256"]);
    hosts.metadata(|metadata| drop(metadata.insert("code_challenge_methods_supported".into(), both)));
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn an_error_repeats_no_query_of_the_servers_address() {
    let hosts = Hosts::start().await;
    let mut server = hosts.server();
    server.url.set_query(Some("key=s3cret-key"));
    hosts.mcp.json(
        "/.well-known/oauth-protected-resource/mcp",
        &json!({ "resource": "https://other.example/mcp" }),
    );
    let message = LoginOffer::discover(server).await.err().unwrap().to_string();
    assert!(message.contains(&hosts.url()) && message.contains("resource mismatch"), "{message}");
    assert!(!message.contains("s3cret-key"), "{message}");
}

#[test]
fn advice_contains_nothing_that_a_shell_interprets() {
    let scopes = |scopes: &[&str]| login_command("far", scopes.iter().copied());
    assert_eq!(
        scopes(&["read:user", "https://a.example/x.y_z~*+-"]).unwrap(),
        "ironcurtain servers login far --scope \"read:user https://a.example/x.y_z~*+-\""
    );
    for wrong in ["$(id)", "`id`", "a\"b", "a;b", "a\\b", "a!b", "a\nb", "\u{e9}"] {
        assert_eq!(scopes(&["read", wrong]), None, "{wrong}");
    }
    assert_eq!(shell_quote("https://a.example/mcp"), "https://a.example/mcp");
    assert_eq!(shell_quote("https://a.example/$(id);x"), "'https://a.example/$(id);x'");
}

#[tokio::test]
async fn a_hostile_server_gets_a_token_for_itself_only() {
    // The hostile server names the authorization server of an honest server.
    let honest = Hosts::start().await;
    let hostile = Hosts { auth: honest.auth.clone(), ..Hosts::start().await };
    hostile.set_issuer(&honest.auth.base);
    let (started, _listener) = start_login(hostile.server()).await.unwrap();
    let page = started.page().as_str().to_owned();
    let of = |url: String| url::form_urlencoded::byte_serialize(url.as_bytes()).collect::<String>();
    assert!(page.contains(&format!("resource={}", of(hostile.url()))), "{page}");
    assert!(!page.contains(&of(honest.url())), "{page}");
    // The hostile server cannot request a token for the honest server.
    let borrowed = json!({ "resource": honest.url(), "authorization_servers": [honest.auth.base] });
    hostile.mcp.json("/.well-known/oauth-protected-resource/mcp", &borrowed);
    let message = refused(&hostile).await;
    assert!(message.contains("resource mismatch"), "{message}");
    assert_eq!(refused(&honest).await, "");
}

#[tokio::test]
async fn a_client_secret_is_not_sent_to_another_authorization_server() {
    let hosts = Hosts::start().await;
    let own = |issuer: &str| ClientChoice {
        client_id: Some("mine".into()),
        client_secret: Some("s3cret".into()),
        issuer: Some(issuer.to_owned()),
        ..ClientChoice::default()
    };
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    let message = offer.check(&own("https://before.example")).err().unwrap().to_string();
    assert!(
        message.contains("changed from `https://before.example`") && !message.contains("s3cret"),
        "{message}"
    );
    let began = offer.begin(own("https://before.example"), "http://127.0.0.1:1/callback").await;
    assert!(matches!(began.err(), Some(LoginError::OtherIssuer { .. })));
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    offer.check(&own(&hosts.auth.base)).unwrap();
}

#[tokio::test]
async fn more_scopes_than_requested_are_refused() {
    let hosts = Hosts::start().await;
    hosts.auth.json("/token", &tokens(1, "read admin"));
    let message = log_in(hosts.server(), "code=code-1").await.unwrap_err().to_string();
    assert!(
        message.contains("granted more than was requested (`admin`)")
            && message.contains("--scope \"read admin\""),
        "{message}"
    );
    assert!(!message.contains("access-1"));
    hosts.auth.json("/token", &tokens(1, "read $(id)"));
    let message = log_in(hosts.server(), "code=code-1").await.unwrap_err().to_string();
    assert!(message.ends_with("requested (`$(id)`), so its token was discarded"), "{message}");
    hosts.auth.json("/token", &tokens(1, "read"));
    log_in(hosts.server(), "code=code-1").await.unwrap();
}

#[tokio::test]
async fn the_answer_of_a_host_is_limited() {
    let hosts = Hosts::start().await;
    let path = "/.well-known/oauth-authorization-server";
    let padded = |length: usize| {
        let mut metadata: Value = serde_json::from_str(&hosts.auth.answer(path)).unwrap();
        metadata["padding"] = json!("x".repeat(length));
        metadata.to_string()
    };
    let (long, short) = (padded(300 * 1024), padded(100 * 1024));
    let set = |host: &FakeHost, text: &str| host.set(path, 200, "Content-Type: application/json\r\n", text);
    set(&hosts.auth, &long);
    assert!(refused(&hosts).await.contains("larger than 256 KiB"));
    set(&hosts.auth, &short);
    assert_eq!(refused(&hosts).await, "");
}
