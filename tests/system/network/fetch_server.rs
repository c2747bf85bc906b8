//! The fetch server from PyPI, added from the catalog.

use super::test_network::inside;
use crate::scripted_user::Next;
use crate::servers::world;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;

#[test]
fn fetch_server_reaches_only_the_host_of_its_call() {
    inside("network::fetch_server::fetch_server_reaches_only_the_host_of_its_call", |ground| {
        let world = world("fetch");
        let mut client = world.connect("fetch");
        // Without `raw`, the server would have npm download a program that extracts readable text.
        let page = json!({ "url": "http://files.example.test/hello", "raw": true });
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let fetched = client.call("fetch", page.clone());
        assert!(fetched.ok().contains("hello from outside"), "{}", fetched.text);
        assert_eq!(world.user.asked().len(), 1, "the call was the only question");
        // One request for `robots.txt` and one for the page.
        assert_eq!(ground.reached(), ["9.9.9.9 80", "9.9.9.9 80"]);
        client.call("fetch", page).refused("DENIED: the user denied this call");
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        client.call("fetch", json!({ "url": "http://sly.example.test/hello" })).refused("sly.example.test");
        assert_eq!(ground.reached().len(), 2);
    });
}
