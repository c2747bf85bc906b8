//! Tests that a cancelled or refused login is not stored and leaves no valid token.

use super::{LoginHost, browse, world_of};
use crate::secret_file::PASSPHRASE;
use ironcurtain_admin::login::{LogInError, LoginOptions, LoginPlan};
use ironcurtain_protocol::{ErrorCode, Passphrase, Reply, Request};
use ironcurtain_secrets::{Logins, Secret, SecretStore};
use serde_json::json;
use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::task::Poll;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use url::Url;

/// Logs in as the user while the login waits.
async fn browse_meanwhile(page: &Url) -> bool {
    let page = page.to_string();
    tokio::task::spawn_blocking(move || browse(&page)).await.is_ok()
}

#[test]
fn a_login_can_be_cancelled_at_any_step() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": host.url() }));
    let store = SecretStore::of(&world.home.state);
    store.unlock(Secret::new(PASSPHRASE.into())).unwrap();
    let runtime = Runtime::new().unwrap();
    let plan = || {
        let discovered = LoginPlan::discover(&world.home, &store, ("far", LoginOptions::default()));
        runtime.block_on(discovered).unwrap()
    };

    let is_opened = Cell::new(false);
    let open = async |_: &Url| {
        is_opened.set(true);
        true
    };
    let before = runtime.block_on(plan().perform(open, ready(())));
    assert!(matches!(before, Err(LogInError::Cancelled)) && !is_opened.get());

    let opened = Notify::new();
    let open = async |_: &Url| {
        opened.notify_one();
        true
    };
    let waiting = runtime.block_on(plan().perform(open, opened.notified()));
    assert!(matches!(waiting, Err(LogInError::Cancelled)));
    assert_eq!(host.issued(), Vec::<String>::new());

    // The user cancels while the code is exchanged for tokens.
    let is_exchanged = || if host.issued().len() == 3 { Poll::Ready(()) } else { Poll::Pending };
    let late = runtime.block_on(plan().perform(browse_meanwhile, poll_fn(|_| is_exchanged())));
    assert!(matches!(late, Err(LogInError::Cancelled)));
    assert_eq!((host.issued().len(), host.valid()), (3, vec![]), "its tokens are revoked");

    let unopened = runtime.block_on(plan().perform(async |_: &Url| false, pending()));
    assert!(matches!(unopened, Err(LogInError::NoBrowser(server)) if server == "far"));
    assert_eq!(Logins::of(&store).all().unwrap().len(), 0);

    let finished = runtime.block_on(plan().perform(browse_meanwhile, pending()));
    assert_eq!(finished.unwrap().login.url(), host.url());
    assert_eq!(host.valid().len(), 2);
}

#[test]
fn the_trusted_process_stores_only_a_login_for_the_entry() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": host.url() }));
    let login =
        |text: &str| Request::StoreLogin { server: "far".into(), login: Passphrase::new(text.into()) };
    let other = json!({
        "id": "1", "url": "https://other.example/mcp", "resource": "https://other.example/mcp", "issuer": null,
        "authorizationEndpoint": "https://other.example/a", "tokenEndpoint": "https://other.example/t",
        "tokenEndpointAuthMethods": [], "revocationEndpoint": null, "clientId": "c", "clientSecret": null,
        "isOwnClient": false, "scopes": [], "accessToken": "a", "refreshToken": null, "expiresAt": null,
    });
    let refused = |request: Request, why: &str| {
        let reply = world.request(request);
        let Reply::Failed { code: ErrorCode::Malformed, message } = &reply else { panic!("{reply:?}") };
        assert!(message.contains(why), "{message}");
    };
    refused(login("{}"), "the login is not for the entry of `far`");
    refused(login(&other.to_string()), "the login is not for the entry of `far`");
    let secret = Passphrase::new("a".into());
    refused(Request::StoreSecret { name: "login:far".into(), secret }, "login:far");
    let mut own = other;
    own["url"] = host.url().into();
    assert_eq!(world.request(login(&own.to_string())), Reply::Done);
}
