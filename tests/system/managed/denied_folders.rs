//! Folders that the organization denies are hidden from servers and runs, even inside folders that they are allowed to
//! use.

use super::bundle_server::{Behaviour, BundleServer};
use super::{Organization, refusal, world};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::runs::Shell;
use crate::scripted_user::{Next, ScriptedUser};
use crate::test_home::TestHome;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn rule(within: &Path, then: &str) -> Value {
    let paths = json!({ "roles": ["read-path", "write-path", "delete-path"], "within": within });
    json!({ "name": "secret", "if": { "paths": paths }, "then": then, "reason": "It is secret." })
}

/// Waits until this number of bundles has been applied.
pub(super) fn applied(world: &World, count: u64) {
    let line = format!("ironcurtain_bundle_updates_total{{result=\"new\"}} {count}\n");
    eventually(&format!("bundle {count} applies"), TIMEOUT, || match world.request(Request::Metrics) {
        Reply::Metrics(text) => text.contains(&line),
        other => panic!("{other:?}"),
    });
}

fn run_in(world: &World, folder: &Path, program: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(["run", "--"]).args(program).current_dir(folder).env("IRONCURTAIN_HOME", world.ours());
    command
}

fn is_mounted(shell: &mut Shell, path: &Path) -> bool {
    shell.run(&format!("grep -qF ' {} ' /proc/self/mountinfo", path.display())) == "status 0\n"
}

#[test]
fn a_denied_folder_in_the_working_folder_is_hidden_from_runs() {
    if !is_inside() {
        let test = "managed::denied_folders::a_denied_folder_in_the_working_folder_is_hidden_from_runs";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let world = world();
    applied(&world, 1);
    let (project, secret) = (world.path("project"), world.path("project/secret"));
    world.file("project/own", "own\n");
    world.file("project/secret/key", "key\n");
    let mut shell = Shell::start(&world, &project);
    assert!(is_mounted(&mut shell, &project));
    assert_eq!(shell.run("cat own secret/key"), "own\nkey\nstatus 0\n");
    assert_eq!(shell.exit(), Some(0));
    // The rule ends a run that uses the folder.
    let mut before = run_in(&world, &project, &["sleep", "1000"]).spawn().unwrap();
    eventually("the run has started", TIMEOUT, || world.status().runs > 0);
    server.serve(organization.bundle(2, &json!([rule(&secret, "deny")])));
    assert_eq!(before.wait().unwrap().code(), Some(137));
    // A run that starts afterwards cannot see the denied folder, but can still use the project's other files.
    let mut shell = Shell::start(&world, &project);
    assert!(!is_mounted(&mut shell, &project));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(shell.run("cat own"), "own\nstatus 0\n");
    for denied in ["cat secret/key", "cp secret/key copy", "mv secret other", "echo x > secret/new"] {
        let said = shell.run(denied);
        assert!(!said.contains("status 0") && !said.contains("key\n"), "{denied}: {said}");
    }
    assert_eq!(shell.exit(), Some(0));
    assert_eq!(std::fs::read_to_string(secret.join("key")).unwrap(), "key\n");
    assert!(!secret.join("new").exists() && !project.join("other").exists());
    let inside = run_in(&world, &secret, &["true"]).output().unwrap();
    let said = String::from_utf8_lossy(&inside.stderr);
    assert!(said.contains("the rule `managed:secret` denies access to it: It is secret."), "{said}");
    // A rule that requires approval raises a question for each file.
    server.serve(organization.bundle(3, &json!([rule(&secret, "escalate")])));
    applied(&world, 3);
    world.user.asked();
    let mut shell = Shell::start(&world, &project);
    assert!(!is_mounted(&mut shell, &project));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(shell.run("cat secret/key"), "key\nstatus 0\n");
    assert_eq!(world.user.asked()[0].rule, "managed:secret");
}

#[test]
fn denial_of_a_new_file_names_the_rule() {
    if !is_inside() {
        return run_inside("managed::denied_folders::denial_of_a_new_file_names_the_rule", &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let world = world();
    applied(&world, 1);
    world.file("project/own", "own\n");
    let secret = world.file("docs/secret/key", "key\n").with_file_name("new");
    let mut shell = Shell::start(&world, &world.path("project"));
    assert_eq!(shell.run("cat own"), "own\nstatus 0\n");
    // The rule arrives after the run has started, so the run still sees the folder.
    server.serve(organization.bundle(2, &json!([rule(secret.parent().unwrap(), "deny")])));
    applied(&world, 2);
    let said = shell.run("echo x > ~/docs/secret/new");
    assert!(!said.contains("status 0"), "{said}");
    let log = world.log();
    let denied: Vec<&str> = log.lines().filter(|line| line.contains("docs/secret/new")).collect();
    assert!(!denied.is_empty() && denied.iter().all(|line| line.contains("managed:secret")), "{denied:?}");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(shell.run("echo x > ~/docs/new"), "status 0\n");
    assert!(!secret.exists() && world.path("docs/new").exists());
}

#[test]
fn a_denied_folder_in_a_granted_folder_is_unmounted() {
    if !is_inside() {
        let test = "managed::denied_folders::a_denied_folder_in_a_granted_folder_is_unmounted";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let world = world();
    applied(&world, 1);
    let file = world.file("docs/a.txt", "content");
    let key = world.file("docs/secret/key", "key");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.open(&file).ok();
    // The server can read the whole granted folder on its own.
    client.sneak(&key).ok();
    for then in ["deny", "escalate"] {
        let sequence = if then == "deny" { 2 } else { 4 };
        server.serve(organization.bundle(sequence, &json!([rule(key.parent().unwrap(), then)])));
        applied(&world, sequence);
        eventually("the folder is unmounted", TIMEOUT, || client.sneak(&key).is_error);
        // A call to another file in the granted folder still works, without a question.
        world.user.asked();
        client.open(&file).ok();
        assert_eq!(world.user.count(), 0, "{then}");
        server.serve(organization.bundle(sequence + 1, &json!([])));
        applied(&world, sequence + 1);
        eventually("the folder is mounted again", TIMEOUT, || !client.sneak(&key).is_error);
    }
    server.serve(organization.bundle(6, &json!([rule(key.parent().unwrap(), "deny")])));
    applied(&world, 6);
    client.open(&key).refused("managed:secret");
}

#[test]
fn an_entry_cannot_open_a_denied_folder() {
    if !is_inside() {
        let test = "managed::denied_folders::an_entry_cannot_open_a_denied_folder";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let sandbox = json!({ "filesystem": { "allowRead": ["~/docs"] } });
    let place = TestHome::new(|prepared| hostile::install_contained(prepared, &sandbox));
    let mut world = World::of(place, programs(), ScriptedUser::default());
    applied(&world, 1);
    let key = world.file("docs/secret/key", "key");
    let mut client = world.connect("hostile");
    client.sneak(&key).ok();
    // The rule applies to the running server, and still applies after a restart.
    server.serve(organization.bundle(2, &json!([rule(key.parent().unwrap(), "deny")])));
    applied(&world, 2);
    eventually("the server is stopped", TIMEOUT, || {
        let said = client.sneak(&key).text;
        said.contains("your organization's rule `managed:secret` denies access to `")
    });
    drop(client);
    world.restart();
    let said = refusal(&world);
    assert!(said.contains("your organization's rule `managed:secret` denies access to `"), "{said}");
}

#[test]
fn an_invalid_policy_of_the_user_does_not_hold_back_the_organization() {
    if !is_inside() {
        let test =
            "managed::denied_folders::an_invalid_policy_of_the_user_does_not_hold_back_the_organization";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(1, &json!([]))));
    organization.manages(server.port, &json!({}));
    let world = world();
    applied(&world, 1);
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    std::fs::write(world.home.policy().join("compiled-policy.json"), "{").unwrap();
    server.serve(organization.bundle(2, &json!([super::rule("quiet", "heard", "deny")])));
    eventually("the second bundle applies", TIMEOUT, || client.plain("heard").text.contains("managed:quiet"));
    super::has_trouble(&world, "The last change of the policy is not in force");
    // The same holds for settings and an invalid `mcp-servers.json`.
    std::fs::write(world.home.config.join("mcp-servers.json"), "{").unwrap();
    organization.manages(server.port, &json!({ "deniedServers": [{ "name": "hostile" }] }));
    eventually("the server is denied", TIMEOUT, || refusal(&world).contains("Example denies this server"));
    eventually("the session with the server ends", TIMEOUT, || world.sessions().is_empty());
    // The organization's settings stay in effect after its file is removed.
    std::fs::remove_file(ironcurtain_config::MANAGED_FILE).unwrap();
    super::has_trouble(&world, "managed.json` was removed; restore it");
    assert!(refusal(&world).contains("Example denies this server"));
}
