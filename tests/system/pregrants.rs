//! Grants that the user creates, changes and restores without being asked. The tests call the daemon directly, as the
//! app does.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::world::{World, eventually};
use ironcurtain_consent::Lifetime;
use ironcurtain_daemon::{GrantChanges, GrantRequest, GrantRequestError, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::{GrantView, Reply, Request};
use serde_json::json;
use std::path::Path;

const MISSING: &str = "os error 2)";
const READ_ONLY: &str = "os error 30)";

/// Returns a request that grants a path in advance to the only connected client.
fn pregrant(world: &World, path: &Path, access: &[Access], lifetime: Lifetime) -> GrantRequest {
    let known = world.daemon.known_clients();
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!((&known[0].servers, &known[0].live), (&vec!["hostile".into()], &vec!["hostile".into()]));
    let access = access.iter().fold(AccessSet::default(), |all, access| all.with(*access));
    let (client, path) = (known[0].key.clone(), path.to_path_buf());
    GrantRequest { client, server: "hostile".into(), what: GrantTarget::Files { path, access }, lifetime }
}

fn only_grant(world: &World) -> GrantView {
    let mut grants = world.grants();
    assert_eq!(grants.len(), 1, "{grants:?}");
    grants.remove(0)
}

fn wait_for_content(client: &mut Client, path: &Path, text: &str) {
    eventually("the grant is mounted", TIMEOUT, || client.sneak(path).text == text);
}

#[test]
fn pregranted_folder_opens_without_a_question_and_its_siblings_do_not() {
    let world = hostile::world();
    let (inside, beside) = (world.file("docs/a/secret.txt", "secret"), world.file("docs/b.txt", "other"));
    let mut client = world.connect("hostile");
    client.sneak(&inside).refused(MISSING);
    let given = pregrant(&world, &world.path("docs/a"), &[Access::Read], Lifetime::Hour);
    let path = world.wait(world.daemon.grant(given)).unwrap();
    assert_eq!(path, world.path("docs/a").to_str().unwrap());
    let grant = only_grant(&world);
    assert_eq!(grant.path, path);
    assert_eq!((grant.kind.as_str(), grant.access.as_slice()), ("folder", ["read".to_owned()].as_slice()));
    assert_eq!(grant.provenance, "you picked it in the window");
    wait_for_content(&mut client, &inside, "secret");
    assert_eq!(client.open(&inside).ok(), "secret");
    client.sneak(&beside).refused(MISSING);
    client.scribble(&inside).refused(READ_ONLY);
    assert!(world.activity().iter().any(|entry| entry.event == "grant" && entry.paths == [path.clone()]));
    assert!(!world.activity().iter().any(|entry| entry.event == "question"));
}

#[test]
fn pregrant_cannot_exceed_the_offers_of_a_question() {
    let world = hostile::world();
    world.file("docs/a.txt", "a");
    world.file(".ssh/id_ed25519", "key");
    let _client = world.connect("hostile");
    let give = |path: &str, access: &[Access], lifetime| {
        world.wait(world.daemon.grant(pregrant(&world, &world.path(path), access, lifetime)))
    };
    for protected in ["", ".ssh", ".ssh/id_ed25519"] {
        assert!(
            matches!(give(protected, &[Access::Read], Lifetime::Hour), Err(GrantRequestError::Protected(_))),
            "{protected}"
        );
    }
    let ours = pregrant(&world, &world.home.config, &[Access::Read], Lifetime::Hour);
    assert!(matches!(world.wait(world.daemon.grant(ours)), Err(GrantRequestError::Protected(_))));
    assert!(matches!(
        give("docs/none", &[Access::Read], Lifetime::Hour),
        Err(GrantRequestError::NotFileOrFolder(_))
    ));
    assert!(matches!(give("docs", &[], Lifetime::Hour), Err(GrantRequestError::NoAccess)));
    assert!(matches!(
        give("docs", &[Access::Delete], Lifetime::Always),
        Err(GrantRequestError::PermanentDelete)
    ));
    world.file("docs/.vscode/tasks.json", "{}");
    let tasks = |access: &[Access]| give("docs/.vscode/tasks.json", access, Lifetime::Hour);
    assert!(matches!(tasks(&[Access::Read, Access::Write]), Err(GrantRequestError::AutostartFile(_))));
    let stranger = GrantRequest {
        client: "/bin/other".into(),
        ..pregrant(&world, &world.path("docs"), &[Access::Read], Lifetime::Hour)
    };
    assert!(matches!(world.wait(world.daemon.grant(stranger)), Err(GrantRequestError::UnknownClient(_))));
    assert_eq!(world.grants(), []);
    give("docs", &[Access::Read, Access::Delete], Lifetime::Hour).unwrap();
    give("docs/a.txt", &[Access::Read], Lifetime::Always).unwrap();
    tasks(&[Access::Read]).unwrap();
    assert_eq!(world.grants().len(), 3);
}

#[test]
fn grant_can_be_narrowed_or_extended_but_never_widened() {
    let world = hostile::world();
    let (inside, outside) = (world.file("docs/a/f.txt", "f"), world.file("docs/g.txt", "g"));
    let mut client = world.connect("hostile");
    let both = pregrant(&world, &world.path("docs"), &[Access::Read, Access::Write], Lifetime::QuarterHour);
    world.wait(world.daemon.grant(both)).unwrap();
    wait_for_content(&mut client, &outside, "g");
    let change = |terms| {
        let id = only_grant(&world).id;
        world.wait(world.daemon.change_grant(&id, terms))
    };
    let read = AccessSet::only(Access::Read);
    for wider in [
        GrantChanges { access: Some(read.with(Access::Delete)), ..GrantChanges::default() },
        GrantChanges { part: Some(world.home.user_home.join("docs/..")), ..GrantChanges::default() },
    ] {
        assert!(change(wider).is_err());
    }
    let before = only_grant(&world);
    change(GrantChanges { access: Some(read), part: Some(world.path("docs/a")), ..GrantChanges::default() })
        .unwrap();
    let narrow = only_grant(&world);
    assert_eq!(narrow.path, world.path("docs/a").to_str().unwrap());
    assert_eq!(narrow.access, ["read"]);
    assert_eq!(narrow.lifetime, before.lifetime);
    client.sneak(&outside).refused(MISSING);
    assert_eq!(client.sneak(&inside).ok(), "f");
    client.scribble(&inside).refused(READ_ONLY);
    change(GrantChanges { lifetime: Some(Lifetime::Always), ..GrantChanges::default() }).unwrap();
    let extended = only_grant(&world);
    assert_eq!((extended.lifetime.as_str(), extended.expires_ms), ("always", None));
    assert_eq!(client.sneak(&inside).ok(), "f");
}

#[test]
fn revoked_grant_is_restored_on_its_terms_while_session_lives() {
    let world = hostile::world();
    let file = world.file("docs/f.txt", "f");
    let mut client = world.connect("hostile");
    let given = pregrant(&world, &file, &[Access::Read], Lifetime::Session);
    world.wait(world.daemon.grant(given)).unwrap();
    wait_for_content(&mut client, &file, "f");
    let old = only_grant(&world);
    let held = world.daemon.active_grant(&old.id).unwrap();
    assert!(matches!(world.request(Request::Revoke { grant: old.id.clone() }), Reply::Revoked { .. }));
    assert_eq!(world.daemon.active_grant(&old.id), None);
    client.sneak(&file).refused(MISSING);
    world.wait(world.daemon.restore_grant(held.clone())).unwrap();
    let again = only_grant(&world);
    assert_eq!((&again.path, &again.session, &again.access), (&old.path, &old.session, &old.access));
    assert_ne!(again.id, old.id);
    wait_for_content(&mut client, &file, "f");
    client.hang_up();
    eventually("the session ends", TIMEOUT, || world.sessions().is_empty());
    assert!(matches!(world.wait(world.daemon.restore_grant(held)), Err(GrantRequestError::NoSession)));
    assert_eq!(world.grants(), []);
}

#[test]
fn user_restart_of_server_keeps_session_and_grants() {
    let world = hostile::world();
    let file = world.file("docs/f.txt", "f");
    let mut client = world.connect("hostile");
    world.wait(world.daemon.grant(pregrant(&world, &file, &[Access::Read], Lifetime::Session))).unwrap();
    wait_for_content(&mut client, &file, "f");
    let before = world.sessions().remove(0);
    world.wait(world.daemon.restart_server(&before.id)).unwrap();
    wait_for_content(&mut client, &file, "f");
    let after = world.sessions().remove(0);
    assert_eq!(after.id, before.id);
    assert_ne!(after.server_pid, before.server_pid);
    assert!(world.wait(world.daemon.restart_server("none")).is_err());
}

/// Returns a request that grants a named resource in advance to the only connected client.
fn pregrant_resource(
    world: &World,
    what: GrantTarget,
    lifetime: Lifetime,
) -> Result<String, GrantRequestError> {
    let gift = GrantRequest { what, ..pregrant(world, &world.path("docs"), &[Access::Read], lifetime) };
    world.wait(world.daemon.grant(gift))
}

#[test]
fn pregranted_tool_needs_no_question_and_tools_naming_resources_are_rejected() {
    let world = hostile::world();
    // Every tool call requires approval.
    let rules = r#"{ "schemaVersion": 1, "rules": [ { "name": "ask", "if": {}, "then": "escalate", "reason": "ask" } ] }"#;
    std::fs::write(world.home.policy().join("compiled-policy.json"), rules).unwrap();
    let mut client = world.connect("hostile");
    client.plain("now").refused("DENIED");
    let tool = |name: &str| GrantTarget::Tool(name.to_owned());
    assert!(world.daemon.known_clients()[0].tools["hostile"].contains(&"now".to_owned()));
    assert!(!world.daemon.known_clients()[0].tools["hostile"].contains(&"open".to_owned()));
    assert!(matches!(
        pregrant_resource(&world, tool("open"), Lifetime::Hour),
        Err(GrantRequestError::DependsOnArguments(_))
    ));
    assert!(matches!(
        pregrant_resource(&world, tool("none"), Lifetime::Hour),
        Err(GrantRequestError::UnknownTool(_))
    ));
    assert!(matches!(
        pregrant_resource(&world, tool("run"), Lifetime::Always),
        Err(GrantRequestError::PermanentTool(_))
    ));
    assert_eq!(world.grants(), []);
    assert_eq!(pregrant_resource(&world, tool("now"), Lifetime::Hour).unwrap(), "now");
    let grant = only_grant(&world);
    assert_eq!(
        (grant.kind.as_str(), grant.path.as_str(), grant.provenance.as_str()),
        ("tool", "now", "you granted it beforehand")
    );
    client.plain("now").ok();
    client.plain("heard").refused("DENIED");
    assert!(matches!(world.request(Request::Revoke { grant: grant.id }), Reply::Revoked { .. }));
    client.plain("now").refused("DENIED");
}

#[test]
fn host_is_pregranted_only_where_network_is_permitted() {
    let network = serde_json::json!({ "network": { "allowedDomains": [], "deniedDomains": ["evil.example.test"], "askUnknown": true } });
    let world = hostile::contained(&network);
    let _client = world.connect("hostile");
    let give = |host: &str| pregrant_resource(&world, GrantTarget::Host(host.to_owned()), Lifetime::Hour);
    for bad in ["https://a.example.test", "*", "printer", "a.example.test:0"] {
        assert!(matches!(give(bad), Err(GrantRequestError::Host(_))), "{bad}");
    }
    assert!(matches!(give("*.example.test"), Err(GrantRequestError::NotSingleHost(_))));
    for out_of_reach in ["evil.example.test", "printer.local"] {
        assert!(matches!(give(out_of_reach), Err(GrantRequestError::HostBlocked { .. })), "{out_of_reach}");
    }
    assert_eq!(world.grants(), []);
    assert_eq!(give("A.example.test").unwrap(), "a.example.test:443");
    assert_eq!(only_grant(&world).kind, "host");
    let shut = hostile::world();
    let _client = shut.connect("hostile");
    let refused = pregrant_resource(&shut, GrantTarget::Host("a.example.test".to_owned()), Lifetime::Hour);
    assert!(matches!(refused, Err(GrantRequestError::HostBlocked { .. })), "{refused:?}");
}

#[test]
fn path_that_the_entry_makes_unreadable_is_neither_granted_nor_opened() {
    let world = hostile::contained(&json!({ "filesystem": { "denyRead": ["~/docs/private"] } }));
    let (open, private) = (world.file("docs/a.txt", "a"), world.file("docs/private/key", "key"));
    let mut client = world.connect("hostile");
    let grant =
        |path: &Path| world.wait(world.daemon.grant(pregrant(&world, path, &[Access::Read], Lifetime::Hour)));
    for path in [&private, &world.path("docs/private")] {
        let problem = grant(path).unwrap_err().to_string();
        assert!(problem.contains("unreadable even with a grant"), "{problem}");
    }
    let refusal = client.open(&private).refused("`sandbox.filesystem.denyRead`").to_owned();
    assert!(refusal.contains("the entry of the server `hostile` makes"), "{refusal}");
    assert_eq!(world.user.count(), 0);
    grant(&world.path("docs")).unwrap();
    wait_for_content(&mut client, &open, "a");
    assert_eq!(client.open(&open).ok(), "a");
    // The folder is mounted, with the path inside it masked.
    client.sneak(&private).refused("os error 13)");
    client.open(&private).refused("`sandbox.filesystem.denyRead`");
}

#[test]
fn grant_does_not_apply_after_the_entry_made_its_path_unreadable() {
    let mut world = hostile::world();
    let private = world.file("docs/private/key", "key");
    let mut client = world.connect("hostile");
    let given = pregrant(&world, &world.path("docs/private"), &[Access::Read], Lifetime::Always);
    world.wait(world.daemon.grant(given)).unwrap();
    wait_for_content(&mut client, &private, "key");
    client.hang_up();
    let sandbox = json!({ "filesystem": { "denyRead": ["~/docs/private"] } });
    let servers = json!({ "hostile": { "command": hostile::program(), "sandbox": sandbox } });
    let file = world.home.config.join("mcp-servers.json");
    world.restart_after(|| std::fs::write(file, servers.to_string()).unwrap());
    let mut client = world.connect("hostile");
    client.sneak(&private).refused(MISSING);
    client.open(&private).refused("`sandbox.filesystem.denyRead`");
}
