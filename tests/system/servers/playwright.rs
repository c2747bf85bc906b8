//! The Playwright server, with a browser inside its sandbox.

use super::world;
use crate::network::test_network::inside;
use crate::scripted_user::Next;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;

#[test]
fn playwright_server_opens_pages_only_at_allowed_host() {
    inside("servers::playwright::playwright_server_opens_pages_only_at_allowed_host", |ground| {
        let world = world("playwright");
        let mut client = world.connect("playwright");
        let page = |host: &str| json!({ "url": format!("http://{host}.example.test/page") });
        world.user.will(Next::Allow(Reach::Host, Lifetime::Session));
        let opened = client.call("browser_navigate", page("files"));
        assert!(opened.ok().contains("Page Title: A page outside"), "{}", opened.text);
        assert!(ground.reached().contains(&"9.9.9.9 80".to_owned()));
        let reached = ground.reached().len();
        client.call("browser_navigate", page("evil")).refused("the user denied this call");
        // Scripts in an open page cannot reach the host either.
        let script = "() => fetch('http://evil.example.test/page', { mode: 'no-cors' }).then(() => 'got it', e => 'refused')";
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let fetched = client.call("browser_evaluate", json!({ "function": script }));
        assert!(fetched.ok().contains("refused"), "{}", fetched.text);
        assert_eq!(ground.reached().len(), reached, "{:?}", ground.reached());
    });
}
