//! Servers that hide from the user where a login goes, or how much it allows.

use super::hosts::{Hosts, tokens};
use super::{ClientChoice, LoginError, LoginOffer, log_in};
use serde_json::{Value, json};

const METADATA: &str = "/.well-known/oauth-authorization-server";

async fn refused(hosts: &Hosts) -> String {
    LoginOffer::discover(hosts.server()).await.err().map(|problem| problem.to_string()).unwrap_or_default()
}

#[tokio::test]
async fn a_page_of_one_user_is_not_metadata_of_the_whole_host() {
    let hosts = Hosts::start().await;
    let honest: Value = serde_json::from_str(&hosts.auth.answer(METADATA)).unwrap();
    let mut hostile = honest.clone();
    hostile["token_endpoint"] = json!("https://evil.example/token");
    let pages = "/mallory/pages/.well-known/metadata";
    let announce = |path: &str| hosts.set_issuer(&format!("{}{path}", hosts.auth.base));
    for path in [pages, "/mallory/.well-known/oauth-authorization-server/pages"] {
        announce(path);
        hosts.auth.json(path, &hostile);
        let message = refused(&hosts).await;
        assert!(message.contains(&format!("received one from `{}`", hosts.auth.base)), "{path}: {message}");
    }
    // A redirect from the page changes nothing.
    announce(pages);
    hosts.auth.set(pages, 302, &format!("Location: {METADATA}\r\n"), "");
    assert!(
        refused(&hosts)
            .await
            .contains(&format!("expected a response from `{}/mallory/pages`", hosts.auth.base))
    );
    // The user's page can only be the metadata of the user's own issuer.
    hostile["issuer"] = json!(format!("{}/mallory/pages", hosts.auth.base));
    hosts.auth.json(pages, &hostile);
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    assert_eq!(offer.issuer(), format!("{}/mallory/pages", hosts.auth.base));
    assert!(!offer.has_related_hosts() && offer.token_host() == "evil.example");
    announce("");
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn a_page_of_another_service_than_the_token_endpoint_is_noticed() {
    let hosts = Hosts::start().await;
    for (page, token, is_related) in [
        ("https://login.bank.example/authorize", "https://evil.example/token", false),
        ("https://bank.example/authorize", "https://notbank.example/token", false),
        ("https://bank.example/authorize", "https://tokens.bank.example/token", true),
        ("https://login.bank.example/authorize", "https://bank.example/token", true),
        ("https://bank.example/authorize", "https://bank.example/token", true),
    ] {
        hosts.metadata(|metadata| {
            metadata.insert("authorization_endpoint".into(), json!(page));
            metadata.insert("token_endpoint".into(), json!(token));
        });
        let offer = LoginOffer::discover(hosts.server()).await.unwrap();
        assert_eq!(offer.has_related_hosts(), is_related, "{page}, {token}");
    }
}

#[tokio::test]
async fn a_token_for_more_than_the_server_is_noticed() {
    let hosts = Hosts::start().await;
    let wider = |hosts: &Hosts| {
        let server = hosts.server();
        async move { LoginOffer::discover(server).await.unwrap().wider_resource().map(str::to_owned) }
    };
    assert_eq!(wider(&hosts).await, None);
    let all = format!("{}/", hosts.mcp.base);
    let resource = json!({ "resource": all, "authorization_servers": [hosts.auth.base] });
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &resource);
    assert_eq!(wider(&hosts).await, Some(all));
}

#[tokio::test]
async fn the_query_of_the_servers_address_is_sent_only_to_the_server() {
    let hosts = Hosts::start().await;
    // The server publishes no metadata, so its own URL is the resource.
    hosts.mcp.set("/mcp", 405, "", "");
    hosts.mcp.set("/.well-known/oauth-protected-resource/mcp", 404, "", "");
    let mut metadata: Value = serde_json::from_str(&hosts.auth.answer(METADATA)).unwrap();
    metadata["issuer"] = json!(hosts.mcp.base);
    hosts.mcp.json(METADATA, &metadata);
    let mut server = hosts.server();
    server.url.set_query(Some("key=s3cret-key"));
    let login = log_in(server, "code=code-1").await.unwrap();
    assert_eq!(hosts.auth.last("/token").form()["resource"], hosts.url());
    assert!(login.url().ends_with("?key=s3cret-key"), "it is bound to the whole URL");
    let received = hosts.auth.received();
    assert!(received.iter().all(|one| !format!("{one:?}").contains("s3cret-key")));
}

#[tokio::test]
async fn scopes_that_are_too_long_to_show_are_not_requested() {
    let hosts = Hosts::start().await;
    hosts.mcp.set("/mcp", 405, "", "");
    let names = |scopes: &[String]| json!({ "resource": hosts.url(), "authorization_servers": [hosts.auth.base], "scopes_supported": scopes });
    let all: Vec<String> = (0..200).map(|n| format!("scope-{n}")).collect();
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &names(&all));
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    let message = offer.check(&ClientChoice::default()).unwrap_err();
    assert!(matches!(message, LoginError::TooManyScopes { .. }), "{message}");
    let some = ClientChoice { scopes: Some(vec!["scope-1".into()]), ..ClientChoice::default() };
    offer.check(&some).unwrap();
    // One entry with several scopes is shown and compared as several scopes.
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &names(&["read write".into()]));
    let offer = LoginOffer::discover(hosts.server()).await.unwrap();
    assert_eq!(offer.scopes(&ClientChoice::default()), ["read", "write"]);
}

#[tokio::test]
async fn a_discovery_sends_a_limited_number_of_requests() {
    let hosts = Hosts::start().await;
    let listed = |count: usize| {
        let mut all: Vec<String> = (0..count).map(|n| format!("{}/{n}", hosts.auth.base)).collect();
        all.push(hosts.auth.base.clone());
        json!({ "resource": hosts.url(), "authorization_servers": all, "scopes_supported": ["read"] })
    };
    // The canonical metadata is also a candidate for each issuer with a path.
    let metadata: Value = serde_json::from_str(&hosts.auth.answer(METADATA)).unwrap();
    hosts.auth.set(METADATA, 404, "", "");
    hosts.auth.json("/.well-known/openid-configuration", &metadata);
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &listed(100));
    let message = refused(&hosts).await;
    assert!(message.contains("the login needs more than 40 requests"), "{message}");
    assert!(hosts.auth.received().len() < 40);
    hosts.mcp.json("/.well-known/oauth-protected-resource/mcp", &listed(3));
    assert_eq!(refused(&hosts).await, "");
}

#[tokio::test]
async fn only_a_bearer_token_is_accepted() {
    let hosts = Hosts::start().await;
    for (key, wrong) in [
        ("token_type", "DPoP"),
        ("token_type", "mac"),
        ("access_token", ""),
        ("access_token", "a\r\nHost: b"),
    ] {
        let mut response = tokens(1, "read");
        response[key] = json!(wrong);
        hosts.auth.json("/token", &response);
        let message = log_in(hosts.server(), "code=code-1").await.unwrap_err().to_string();
        assert!(message.contains("issued no bearer token"), "{key}: {message}");
    }
    hosts.auth.json("/token", &tokens(1, "read"));
    log_in(hosts.server(), "code=code-1").await.unwrap();
}
