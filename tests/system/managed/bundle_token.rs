//! The bundle server's token, stored as one of the user's secrets.

use super::bundle_server::{Behaviour, BundleServer, TOKEN};
use super::{Organization, has_no_trouble, has_trouble, rule, world};
use crate::secrets::{UNLOCKED, files_with, ironcurtain, on_a_bus_with, text};
use serde_json::json;

#[test]
fn token_comes_from_the_keyring() {
    let test = "managed::bundle_token::token_comes_from_the_keyring";
    on_a_bus_with(&["--mount"], test, UNLOCKED, || {
        let organization = Organization::new();
        let rules = json!([rule("quiet", "heard", "deny")]);
        let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &rules)));
        let url = format!("http://127.0.0.1:{}/bundle.tar.gz", server.port);
        let mut managed = Organization::managed_at(&url, &json!({}));
        let bundle = managed["bundle"].as_object_mut().unwrap();
        bundle.remove("tokenFile");
        bundle.insert("token".to_owned(), "keyring:bundles".into());
        organization.writes(&managed);
        let world = world();
        has_trouble(
            &world,
            "`bundle.token`: secret `bundles` not found in the keyring; add it with `ironcurtain secrets set bundles`",
        );
        assert_eq!(server.requests(), [""; 0], "no request without the token");
        let mut client = world.connect("hostile");
        client.plain("now").refused("managed:no-bundle");
        let set = |value: &str| {
            let set = ironcurtain(&["set", "bundles"], value);
            assert!(set.status.success(), "{}", text(&set));
        };
        set("wrong-token");
        has_trouble(&world, "refused the token (401)");
        set(TOKEN);
        has_no_trouble(&world);
        client.plain("now").ok();
        client.plain("heard").refused("managed:quiet");
        assert_eq!(files_with(TOKEN, &world.ours()), Vec::<String>::new());
    });
}
