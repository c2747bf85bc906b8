//! Symlinks lead neither to IronCurtain's files nor to secrets, and IronCurtain's programs cannot be changed.

use crate::client::TIMEOUT;
use crate::containment::refusal;
use crate::hostile;
use crate::machine::Machine;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const POLICY: &str = "policy/compiled-policy.json";
const MISSING: &str = "os error 2)";

/// Replaces one of IronCurtain's files with a symlink to `to`.
fn links(world: &World, below: &str, to: &Path) {
    let beside = world.home.config.join("beside");
    symlink(to, &beside).unwrap();
    fs::rename(beside, world.home.config.join(below)).unwrap();
}

#[test]
fn policy_linked_into_granted_folder_is_rejected_and_protected() {
    let world = hostile::world();
    let (other, target) = (world.file("dotfiles/other.txt", "other"), world.path("dotfiles/policy.json"));
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": other })).ok();
    client.scribble(&other).ok();
    let before = world.status().policy;
    let ours = fs::read_to_string(world.home.config.join(POLICY)).unwrap();
    fs::write(&target, ours.replace("escalate", "allow")).unwrap();
    links(&world, POLICY, &target);
    eventually("the problem is reported", TIMEOUT, || world.status().troubles.len() == 1);
    let trouble = world.status().troubles.remove(0);
    let names = format!("is at `{}`, where the server `hostile`, through your grant for", target.display());
    assert!(
        trouble.contains("The last change of the policy is not in force: ") && trouble.contains(&names),
        "{trouble}"
    );
    assert_eq!(world.status().policy, before);
    // Both the policy and the kernel deny access.
    client.call("change", json!({ "path": target })).refused("structural-protected-path");
    client.open(&target).refused("structural-protected-path");
    eventually("the path is unmounted", TIMEOUT, || client.scribble(&target).text.contains(MISSING));
    // Other granted paths still work, and the calls use the grant.
    client.call("change", json!({ "path": other })).ok();
    // The files take effect as soon as no server can write to them.
    world.revoke_only_grant();
    fs::write(&target, ours.replace("\"schemaVersion\"", " \"schemaVersion\"").replace("everything", "all"))
        .unwrap();
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    client.call("change", json!({ "path": target })).refused("structural-protected-path");
}

#[test]
fn settings_linked_into_granted_folder_are_rejected() {
    let world = hostile::world();
    let other = world.file("dotfiles/other.txt", "other");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let mut client = world.connect("hostile");
    client.call("change", json!({ "path": other })).ok();
    world.user.asked();
    let servers =
        json!({ "hostile": { "command": hostile::program() }, "more": { "command": hostile::program() } });
    let files = [
        ("config.json", json!({ "questionDeadlineSeconds": 7 }), "the settings"),
        ("mcp-servers.json", servers, "the configured servers"),
    ];
    // The time limit for questions and the existence of another server show which settings and servers are in effect.
    let in_force = || {
        world.connect("hostile").open(&world.path("docs/x")).refused("the user denied this call");
        let is_there = world.start("more").request("initialize", json!({}))["error"].is_null();
        (world.user.asked()[0].deadline.as_secs(), is_there)
    };
    for (file, content, what) in &files {
        let target = world.path("dotfiles").join(file);
        fs::write(&target, content.to_string()).unwrap();
        links(&world, file, &target);
        let refused = format!("The last change of {what} is not in force: ");
        let names =
            format!("is at `{}`, where the server `hostile`, through your grant for", target.display());
        let is_told = |trouble: &String| trouble.starts_with(&refused) && trouble.contains(&names);
        eventually("the problem is reported", TIMEOUT, || world.status().troubles.iter().any(is_told));
    }
    assert_eq!(in_force(), (45, false));
    // Replaces the symlinks with regular files.
    for (file, content, _) in &files {
        let beside = world.home.config.join("beside");
        fs::write(&beside, content.to_string()).unwrap();
        fs::rename(beside, world.home.config.join(file)).unwrap();
    }
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    assert_eq!(in_force(), (7, true));
}

/// Returns the daemon's error message if it does not start on this machine.
fn not_started(machine: &Machine) -> String {
    let mut daemon = Command::new("timeout");
    daemon.arg(TIMEOUT.as_secs().to_string()).arg(programs().join("ironcurtain"));
    daemon.args(["daemon", "--ask", "terminal", "--allow-root"]);
    daemon.env("IRONCURTAIN_HOME", machine.ours()).env("HOME", &machine.home.user_home);
    let ended = daemon.output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    // `timeout` exits with a different status if the program is still running.
    assert_eq!(ended.status.code(), Some(1), "{said}");
    said
}

#[test]
fn files_writable_by_a_server_do_not_come_into_force() {
    let mut machine = Machine::new(|w| {
        hostile::install_contained(w, &json!({ "filesystem": { "allowWrite": ["~/dotfiles"] } }));
    });
    let policy = machine.home.config.join(POLICY);
    let target = machine.file("dotfiles/policy.json", &fs::read_to_string(&policy).unwrap());
    let ours = policy.with_file_name("ours");
    fs::rename(&policy, &ours).unwrap();
    symlink(&target, &policy).unwrap();
    let said = not_started(&machine);
    let by = "where the server `hostile`, through `~/dotfiles` in its `allowWrite`";
    assert!(said.contains(&format!("is at `{}`, {by}", target.display())), "{said}");
    fs::rename(&ours, &policy).unwrap();
    machine.start();
    machine.connect().plain("heard").ok();
}

#[test]
fn first_start_creates_no_files_through_links_or_in_foreign_folders() {
    let mut machine = Machine::new(hostile::install);
    let planted = machine.home.user_home.join("planted");
    for file in [machine.home.audit().join("audit.jsonl"), machine.home.database()] {
        symlink(&planted, &file).unwrap();
        let said = not_started(&machine);
        assert!(said.contains(file.to_str().unwrap()) && said.contains("it is a link"), "{said}");
        assert!(!planted.exists(), "{} was created through a link", file.display());
        fs::remove_file(file).unwrap();
    }
    let state = machine.home.state.clone();
    let mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o777);
    let said = not_started(&machine);
    assert!(said.contains(&format!("other users can write to `{}`", state.display())), "{said}");
    mode(0o755);
    machine.start();
    machine.connect().plain("heard").ok();
    assert!(machine.home.database().is_file());
}

#[test]
fn symlink_targets_of_secret_folders_are_protected_including_new_links() {
    let world = World::with(|w| {
        hostile::install(w);
        for folder in [".ssh", ".kube", "work"] {
            fs::create_dir_all(w.home.user_home.join(folder)).unwrap();
        }
        fs::write(w.home.user_home.join("work/id_ed25519"), "the key").unwrap();
        symlink(w.home.user_home.join("work/id_ed25519"), w.home.user_home.join(".ssh/id_ed25519")).unwrap();
    });
    let (key, note) = (world.path("work/id_ed25519"), world.file("work/note.txt", "note"));
    let (cluster, plain) = (world.file("cluster/config", "the token"), world.file("cluster/readme", "plain"));
    let mut client = world.connect("hostile");
    for path in [&key, &world.path(".ssh/id_ed25519"), &world.path("work")] {
        client.open(path).refused("structural-protected-path");
    }
    assert_eq!(world.user.count(), 0);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.open(&note).ok(), "note");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.open(&cluster).ok(), "the token");
    assert_eq!(client.sneak(&cluster).ok(), "the token");
    symlink(&cluster, world.path(".kube/config")).unwrap();
    eventually("the path is unmounted", TIMEOUT, || client.sneak(&cluster).text.contains(MISSING));
    client.open(&cluster).refused("structural-protected-path");
    assert_eq!(client.open(&plain).ok(), "plain");
}

/// Returns a source folder that contains IronCurtain's programs.
fn checkout() -> (TempDir, PathBuf) {
    let checkout = tempfile::tempdir_in("/var/tmp").unwrap();
    let ours = checkout.path().canonicalize().unwrap().join("target/debug");
    fs::create_dir_all(&ours).unwrap();
    for name in ["ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain-shim", "ironcurtain"] {
        fs::copy(programs().join(name), ours.join(name)).unwrap();
    }
    (checkout, ours)
}

#[test]
fn own_program_writable_by_others_is_not_started() {
    let (_checkout, ours) = checkout();
    let world = World::with_programs(ours.clone(), |_| {});
    let note = world.file("docs/note.txt", "note");
    let mode =
        |name: &str, mode| fs::set_permissions(ours.join(name), fs::Permissions::from_mode(mode)).unwrap();
    for name in ["ironcurtain-sandbox", "ironcurtain-filesystem"] {
        mode(name, 0o757);
        let mut client = world.start("filesystem");
        let message = refusal(&mut client);
        assert!(message.contains(name) && message.contains("other users can write to it"), "{message}");
        mode(name, 0o755);
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(world.connect("filesystem").read(&note).ok(), "note");
    }
}

#[test]
fn program_writable_by_another_server_is_not_started() {
    for sandbox in [json!({}), json!(false)] {
        let world = World::with(|w| {
            let tool = w.home.user_home.join("tools/own");
            hostile::install(w);
            fs::create_dir_all(tool.parent().unwrap()).unwrap();
            fs::copy(hostile::program(), &tool).unwrap();
            let link = tool.with_file_name("link");
            symlink(hostile::program(), &link).unwrap();
            let [own, linked] = [&tool, &link].map(|at| json!({ "command": at, "sandbox": sandbox }));
            let hostile = json!({ "command": hostile::program() });
            let servers = json!({ "hostile": hostile, "own": own, "linked": linked });
            fs::write(w.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
        });
        let folder = world.path("tools");
        world.connect("own").hang_up();
        let mut client = world.connect("hostile");
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        client.call("change", json!({ "path": folder.join("notes") })).ok();
        let at = folder.join("own");
        for (server, place) in [("own", &at), ("linked", &folder.join("link"))] {
            let message = refusal(&mut world.start(server));
            let why = format!(
                "`: the server `hostile`, through your grant for `{}`, can write to `{}`; move it",
                folder.display(),
                place.display()
            );
            assert!(message.contains("refused to start `") && message.contains(&why), "{message}");
        }
        world.revoke_only_grant();
        for server in ["own", "linked"] {
            world.connect(server).hang_up();
        }
        // A program that other users can write to runs only in a sandbox.
        fs::set_permissions(&at, fs::Permissions::from_mode(0o757)).unwrap();
        if sandbox == json!(false) {
            let message = refusal(&mut world.start("own"));
            let why = "own`: other users can write to it";
            assert!(message.contains("refused to start `") && message.contains(why), "{message}");
        } else {
            world.connect("own").hang_up();
        }
    }
}

#[test]
fn own_programs_in_granted_checkout_are_read_only() {
    let (_checkout, ours) = checkout();
    fs::write(ours.join("built.d"), "built").unwrap();
    let source = ours.ancestors().nth(2).unwrap().join("source.rs");
    fs::write(&source, "source").unwrap();
    let world = World::with_programs(ours.clone(), hostile::install);
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": source })).ok();
    let program = ours.join("ironcurtain-sandbox");
    let before = fs::read(&program).unwrap();
    for path in [&program, &ours.join("new"), &ours] {
        client.call("change", json!({ "path": path })).refused("it contains IronCurtain's own programs");
    }
    // The whole folder is granted, but the kernel keeps the programs in it read-only.
    let new = source.with_file_name("new.rs");
    client.scribble(&new).ok();
    assert!(new.exists());
    for path in [&program, &ours.join("new")] {
        let outcome = client.scribble(path);
        assert!(outcome.is_error && outcome.text.contains("Read-only file system"), "{outcome:?}");
    }
    assert_eq!(fs::read(&program).unwrap(), before);
    client.call("change", json!({ "path": source })).ok();
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.open(&ours.join("built.d")).ok(), "built");
}

#[test]
fn client_configuration_is_denied_in_home_and_asks_in_project() {
    let world = hostile::world();
    let (own, project) = (world.file(".cursor/mcp.json", "{}"), world.file("docs/app/.mcp.json", "{}"));
    let note = world.file("docs/app/note.txt", "note");
    let mut client = world.connect("hostile");
    client.call("change", json!({ "path": own })).refused("those could bypass IronCurtain");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": note })).ok();
    client.call("change", json!({ "path": note })).ok();
    world.user.asked();
    client.call("change", json!({ "path": project })).refused("the user denied this call");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].rule, "structural-starts-programs");
    assert!(
        asked[0].reason.contains("runs outside the sandbox when you open this folder in"),
        "{}",
        asked[0].reason
    );
    let lifetimes = asked[0].offers.iter().flat_map(|offer| &offer.lifetimes).collect::<Vec<_>>();
    assert_eq!(lifetimes, [&Lifetime::Once]);
}
