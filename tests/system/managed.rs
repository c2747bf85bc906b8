//! Tests managed machines: rules from a signed bundle, and settings that the user cannot loosen.
//!
//! Each test runs in its own mount namespace, in which `/etc` is a copy with `managed.json`.

mod bundle_server;
mod bundle_token;
mod denied_folders;
mod diagnosis;
mod export_settings;
mod network_setting;
mod nginx;
mod oci;
mod server_settings;
mod teams_guide;
mod untrusted_file;

use crate::client::TIMEOUT;
use crate::hostile;
use crate::private_etc::replace_etc;
use crate::scripted_user::{Next, ScriptedUser};
use crate::test_home::TestHome;
use crate::world::{World, eventually, programs};
use bundle_server::{Behaviour, BundleServer, TOKEN};
use ironcurtain_bundle::{BundleSource, SigningKey};
use ironcurtain_config::{Config, MANAGED_FILE};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Organization that signs bundles, and the private copy of `/etc` that contains its settings.
struct Organization {
    dir: tempfile::TempDir,
    key: SigningKey,
}

impl Organization {
    /// Replaces `/etc` with a copy. Call this inside the test's mount namespace.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        replace_etc(dir.path());
        let key = key_pair(dir.path(), "key.pem");
        std::fs::copy(dir.path().join("key.pem.pub"), "/etc/ironcurtain/bundle.pem").unwrap();
        std::fs::write("/etc/ironcurtain/token", TOKEN).unwrap();
        Self { dir, key }
    }

    /// Writes `managed.json` with these settings and the bundle server's port.
    fn manages(&self, port: u16, settings: &Value) {
        self.manages_at(&format!("http://127.0.0.1:{port}/bundle.tar.gz"), settings);
    }

    /// Writes `managed.json` with these settings and the URL of the bundle.
    fn manages_at(&self, url: &str, settings: &Value) {
        self.writes(&Self::managed_at(url, settings));
    }

    /// Returns the content of `managed.json` with these settings and the URL of the bundle.
    fn managed_at(url: &str, settings: &Value) -> Value {
        json!({
            "schemaVersion": 1,
            "organization": "Example",
            "bundle": {
                "url": url,
                "publicKeyFile": "/etc/ironcurtain/bundle.pem",
                "tokenFile": "/etc/ironcurtain/token",
                "minSeconds": 1,
                "maxSeconds": 1,
                "longPollSeconds": 30,
            },
            "settings": settings,
        })
    }

    /// Writes `managed.json` with these settings and without a bundle.
    fn manages_settings(&self, settings: &Value) {
        self.writes(&json!({ "schemaVersion": 1, "organization": "Example", "settings": settings }));
    }

    fn writes(&self, managed: &Value) {
        std::fs::write(MANAGED_FILE, managed.to_string()).unwrap();
    }

    fn bundle(&self, sequence: u64, rules: &Value) -> Vec<u8> {
        self.signed_by(&self.key, sequence, rules)
    }

    fn signed_by(&self, key: &SigningKey, sequence: u64, rules: &Value) -> Vec<u8> {
        let rules = json!({ "rules": rules }).to_string();
        std::fs::write(self.dir.path().join("compiled-policy.json"), rules).unwrap();
        let source = BundleSource::read(self.dir.path()).unwrap();
        source.build(key, format!("r{sequence}"), sequence, 1_000_000_000).unwrap()
    }
}

/// Creates a key pair with OpenSSL. The public key has the suffix `.pub`.
fn key_pair(dir: &Path, name: &str) -> SigningKey {
    let openssl = |arguments: &str| {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(dir).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {name}"));
    openssl(&format!("pkey -in {name} -pubout -out {name}.pub"));
    SigningKey::from_pem(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

fn rule(name: &str, tool: &str, then: &str) -> Value {
    json!({ "name": name, "if": { "server": ["hostile"], "tool": [tool] }, "then": then, "reason": name })
}

/// Starts a daemon that allows all calls unless the organization's rules restrict them.
fn world() -> World {
    World::of(TestHome::new(hostile::install), programs(), ScriptedUser::default())
}

#[track_caller]
fn has_trouble(world: &World, expected: &str) {
    let find = || world.status().troubles.iter().any(|trouble| trouble.contains(expected));
    eventually(&format!("`{expected}` is reported"), TIMEOUT, find);
}

fn has_no_trouble(world: &World) {
    eventually("no trouble is reported", TIMEOUT, || world.status().troubles.is_empty());
}

/// Runs the `ironcurtain` command. Returns `true` if it succeeded, and its output.
fn command(world: &World, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(programs().join("ironcurtain"))
        .args(arguments)
        .env("IRONCURTAIN_HOME", world.ours())
        .env("HOME", &world.home.user_home)
        .current_dir(world.path("docs"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

/// Returns the error message for the hostile server, which is not started.
fn refusal(world: &World) -> String {
    refusal_of(world, "hostile")
}

/// Returns the error message for a server, or an empty text if it starts.
fn refusal_of(world: &World, server: &str) -> String {
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test-client", "version": "1" },
    });
    let answer = world.start(server).request("initialize", params);
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}

fn metrics(world: &World) -> String {
    match world.request(Request::Metrics) {
        Reply::Metrics(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bundle_updates_apply_and_bad_ones_are_refused() {
    if !is_inside() {
        return run_inside("managed::bundle_updates_apply_and_bad_ones_are_refused", &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(
        organization.bundle(10, &json!([rule("quiet", "heard", "deny")])),
    ));
    organization.manages(server.port, &json!({}));
    let world = world();
    has_no_trouble(&world);
    let mut client = world.connect("hostile");
    eventually("the first bundle applies", TIMEOUT, || {
        client.plain("heard").text.contains("DENIED: quiet (rule `managed:quiet`)")
    });
    client.plain("now").ok();

    let other_key = key_pair(organization.dir.path(), "other.pem");
    let loose = json!([]);
    let mut changed = organization.bundle(13, &loose);
    *changed.last_mut().unwrap() ^= 1;
    for (bundle, expected) in [
        (organization.signed_by(&other_key, 11, &loose), "the signature does not match the public key"),
        (organization.bundle(9, &loose), "its sequence number 9 is lower than the current 10"),
        (organization.bundle(10, &loose), "a different bundle already has sequence number 10"),
        (changed, "it is not a gzip-compressed tar archive"),
        (b"<html>".to_vec(), "it is not a gzip-compressed tar archive"),
        (
            organization.bundle(12, &json!([{ "name": "x", "if": {}, "then": "maybe" }])),
            "`maybe` is not a decision",
        ),
    ] {
        server.serve(bundle);
        has_trouble(&world, expected);
        client.plain("heard").refused("managed:quiet");
        client.plain("now").ok();
    }
    for (status, expected) in [(302, "redirect (302)"), (403, "refused the token (403)"), (500, "status 500")]
    {
        server.behave(Behaviour::Status(status));
        has_trouble(&world, expected);
    }
    // A valid bundle applies after all these failures.
    server.serve(organization.bundle(14, &json!([rule("silent", "now", "deny")])));
    has_no_trouble(&world);
    client.plain("now").refused("managed:silent");
    client.plain("heard").ok();
    let text = metrics(&world);
    for line in ["{result=\"new\"} 2", "{result=\"refused\"} "] {
        assert!(text.contains(&format!("ironcurtain_bundle_updates_total{line}")), "{text}");
    }
    let requests = server.requests();
    assert!(requests[0].contains("prefer: modes=snapshot\r\n"), "{requests:?}");
    assert!(
        requests[1].contains("prefer: modes=snapshot;wait=30\r\n") && requests[1].contains("if-none-match")
    );
}

#[test]
fn last_good_bundle_is_used_while_the_server_is_down() {
    if !is_inside() {
        return run_inside("managed::last_good_bundle_is_used_while_the_server_is_down", &["--mount"]);
    }
    let organization = Organization::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    organization.manages(port, &json!({}));
    let mut world = world();
    has_trouble(&world, "failed to connect to the bundle server");
    let mut client = world.connect("hostile");
    client.plain("now").refused("managed:no-bundle");
    drop(client);
    let bundle = organization.bundle(1, &json!([rule("quiet", "heard", "deny")]));
    let server = BundleServer::start_on(port, Behaviour::Serve(bundle));
    has_no_trouble(&world);
    let mut client = world.connect("hostile");
    client.plain("now").ok();
    client.plain("heard").refused("managed:quiet");
    drop(client);
    server.behave(Behaviour::Status(503));
    world.restart();
    has_trouble(&world, "status 503");
    let mut client = world.connect("hostile");
    client.plain("now").ok();
    client.plain("heard").refused("managed:quiet");
    drop(client);
    // A stored bundle that was modified on disk is not used.
    let kept = world.home.state.join("managed/bundle.tar.gz");
    world.restart_after(|| std::fs::write(&kept, "changed").unwrap());
    let mut client = world.connect("hostile");
    client.plain("now").refused("managed:no-bundle");
}

#[test]
fn approvals_satisfy_a_managed_rule_only_if_they_are_newer() {
    if !is_inside() {
        return run_inside("managed::approvals_satisfy_a_managed_rule_only_if_they_are_newer", &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let world = world();
    has_no_trouble(&world);
    let file = world.file("docs/a.txt", "content");
    let mut client = world.connect("hostile");
    let allow = || world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    eventually("the first bundle applies", TIMEOUT, || !client.plain("now").text.contains("no-bundle"));
    allow();
    client.open(&file).ok();
    client.open(&file).ok();
    assert_eq!(world.user.count(), 1);
    world.user.asked();
    let before = world.status().policy;
    server.serve(organization.bundle(2, &json!([rule("careful", "open", "escalate")])));
    eventually("the second bundle applies", TIMEOUT, || world.status().policy != before);
    allow();
    client.open(&file).ok();
    client.open(&file).ok();
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1, "the newer approval satisfies the rule: {asked:?}");
    assert_eq!(asked[0].rule, "managed:careful");
    let before = world.status().policy;
    server.serve(organization.bundle(3, &json!([rule("never", "open", "deny")])));
    eventually("the third bundle applies", TIMEOUT, || world.status().policy != before);
    client.open(&file).refused("managed:never");
}

#[test]
fn settings_of_the_organization_cannot_be_loosened() {
    if !is_inside() {
        return run_inside("managed::settings_of_the_organization_cannot_be_loosened", &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({ "deniedServers": [{ "name": "hostile" }] }));
    let mut world = world();
    has_no_trouble(&world);
    let denied = "the server `hostile` is not running: Example denies this server";
    assert_eq!(refusal(&world), denied);
    world.restart_after(|| organization.manages(server.port, &json!({ "requireExport": true })));
    let without_export = "the server `hostile` is not running: Example requires the export of the audit log; run `ironcurtain export enable`";
    assert_eq!(refusal(&world), without_export);
    world.restart_after(|| organization.manages(server.port, &json!({ "enforceSandbox": true })));
    let mut client = world.connect("hostile");
    client.plain("now").ok();
    let mode = |mode| std::fs::set_permissions(MANAGED_FILE, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o666);
    let refused = Config::load(&world.home).unwrap_err().to_string();
    assert!(refused.contains("managed.json` is refused: other users can write to it"), "{refused}");
    mode(0o644);
    Config::load(&world.home).unwrap();
}

#[test]
fn longer_permissions_than_the_organization_permits_are_not_offered() {
    if !is_inside() {
        return run_inside(
            "managed::longer_permissions_than_the_organization_permits_are_not_offered",
            &["--mount"],
        );
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let mut world = world();
    has_no_trouble(&world);
    let file = world.file("docs/a.txt", "content");
    let sentence = "Your organization ends every permission after 30 minutes.".to_owned();
    for (settings, is_limited) in [(json!({}), false), (json!({ "maxGrantMinutes": 30 }), true)] {
        world.restart_after(|| organization.manages(server.port, &settings));
        let mut client = world.connect("hostile");
        world.user.will(Next::Allow(Reach::Folders, Lifetime::QuarterHour));
        client.open(&file).ok();
        let asked = world.user.asked();
        let has = |lifetime| asked[0].offers.iter().any(|offer| offer.lifetimes.contains(&lifetime));
        assert!(has(Lifetime::Session) && has(Lifetime::QuarterHour), "{asked:?}");
        assert_eq!((has(Lifetime::Hour), asked[0].also.contains(&sentence)), (!is_limited, is_limited));
        for grant in world.grants() {
            world.request(Request::Revoke { grant: grant.id });
        }
    }
}
