//! The `network` setting restricts connections in addition to the rules, and takes effect while the daemon runs.

use super::bundle_server::{Behaviour, BundleServer};
use super::{Organization, denied_folders};
use crate::client::TIMEOUT;
use crate::run_network::{inside, probe, shell, world};
use crate::scripted_user::Next;
use crate::world::eventually;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;

#[test]
fn a_setting_that_asks_opens_no_denied_host_and_accepts_later_approvals() {
    let test =
        "managed::network_setting::a_setting_that_asks_opens_no_denied_host_and_accepts_later_approvals";
    inside(test, |ground| {
        let organization = Organization::new();
        let evil = json!({ "roles": ["fetch-url"], "allowed": ["evil.example.test"] });
        let evil =
            json!({ "name": "evil", "if": { "domains": evil }, "then": "deny", "reason": "It is evil." });
        let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([evil]))));
        organization.manages(server.port, &json!({}));
        let world = world(|_| {});
        denied_folders::applied(&world, 1);
        let before = world.status().policy;
        organization.manages(server.port, &json!({ "network": "ask" }));
        eventually("the setting applies", TIMEOUT, || world.status().policy != before);
        let mut shell = shell(&world);
        assert_eq!(probe(&mut shell, "get http://evil.example.test/hello"), "403 said-no");
        assert_eq!((world.user.count(), ground.reached().len()), (0, 0));
        assert!(world.log().contains("managed:evil"));
        world.user.will(Next::Allow(Reach::Host, Lifetime::Session));
        assert_eq!(probe(&mut shell, "get http://files.example.test/hello"), "200");
        assert_eq!(probe(&mut shell, "get http://files.example.test/hello"), "200");
        let asked = world.user.asked();
        assert_eq!(asked.len(), 1, "one approval for the session is enough: {asked:?}");
        assert_eq!(asked[0].rule, "managed:setting-network");
        // `never` overrides the approval.
        let before = world.status().policy;
        organization.manages(server.port, &json!({ "network": "never" }));
        eventually("the setting applies", TIMEOUT, || world.status().policy != before);
        let said = probe(&mut shell, "get http://files.example.test/hello");
        assert!(said.starts_with("403"), "{said}");
        assert_eq!((world.user.count(), ground.reached().len()), (0, 2));
    });
}
