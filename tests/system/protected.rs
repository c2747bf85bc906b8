//! Links do not lead to what is ours or secret, and our programs stay as they are.

use crate::client::BOUND;
use crate::consent::Next;
use crate::contained::refusal;
use crate::hostile;
use crate::world::{World, eventually, programs};
use ironcurtain_daemon::consent::{Lifetime, Reach};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const POLICY: &str = "policy/compiled-policy.json";
const MISSING: &str = "os error 2)";

/// Replaces a file of ours by a link.
fn links(world: &World, below: &str, to: &Path) {
    let beside = world.home.config.join("beside");
    symlink(to, &beside).unwrap();
    fs::rename(beside, world.home.config.join(below)).unwrap();
}

#[test]
fn a_policy_that_comes_to_lie_in_a_granted_folder_is_not_taken_and_is_out_of_reach_from_then_on() {
    let world = hostile::world();
    let (other, target) = (world.file("dotfiles/other.txt", "other"), world.path("dotfiles/policy.json"));
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": other })).ok();
    client.scribble(&other).ok();
    let before = world.status().policy;
    let ours = fs::read_to_string(world.home.config.join(POLICY)).unwrap();
    fs::write(&target, ours.replace("escalate", "allow")).unwrap();
    links(&world, POLICY, &target);
    eventually("the trouble", BOUND, || world.status().troubles.len() == 1);
    let trouble = world.status().troubles.remove(0);
    let names = format!("is at `{}`, where the server `hostile`, by what you granted for", target.display());
    assert!(
        trouble.contains("The last change of the policy is not in force: ") && trouble.contains(&names),
        "{trouble}"
    );
    assert_eq!(world.status().policy, before);
    // By the policy, and by the kernel.
    client.call("change", json!({ "path": target })).refused("structural-protected-path");
    client.open(&target).refused("structural-protected-path");
    eventually("the end of the mount", BOUND, || client.scribble(&target).text.contains(MISSING));
    // What was granted beside it still works, a call at a time.
    client.call("change", json!({ "path": other })).ok();
    // Taken when nobody may write there any more.
    world.revoke_only_grant();
    fs::write(&target, ours.replace("\"schemaVersion\"", " \"schemaVersion\"").replace("everything", "all"))
        .unwrap();
    eventually("no trouble", BOUND, || world.status().troubles.is_empty());
    client.call("change", json!({ "path": target })).refused("structural-protected-path");
}

#[test]
fn a_link_in_a_folder_of_secrets_protects_what_it_leads_to_also_one_that_appears() {
    let world = World::with(|w| {
        hostile::install(w);
        for folder in [".ssh", ".kube", "work"] {
            fs::create_dir_all(w.home.person.join(folder)).unwrap();
        }
        fs::write(w.home.person.join("work/id_ed25519"), "the key").unwrap();
        symlink(w.home.person.join("work/id_ed25519"), w.home.person.join(".ssh/id_ed25519")).unwrap();
    });
    let (key, note) = (world.path("work/id_ed25519"), world.file("work/note.txt", "note"));
    let (cluster, plain) = (world.file("cluster/config", "the token"), world.file("cluster/readme", "plain"));
    let mut client = world.connect("hostile");
    for path in [&key, &world.path(".ssh/id_ed25519"), &world.path("work")] {
        client.open(path).refused("structural-protected-path");
    }
    assert_eq!(world.person.count(), 0);
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.open(&note).ok(), "note");
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.open(&cluster).ok(), "the token");
    assert_eq!(client.sneak(&cluster).ok(), "the token");
    symlink(&cluster, world.path(".kube/config")).unwrap();
    eventually("the end of the mount", BOUND, || client.sneak(&cluster).text.contains(MISSING));
    client.open(&cluster).refused("structural-protected-path");
    assert_eq!(client.open(&plain).ok(), "plain");
}

/// A checkout with our programs in it.
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
fn a_program_of_ours_that_others_can_write_is_not_started() {
    let (_checkout, ours) = checkout();
    let world = World::run_by(ours.clone(), |_| {});
    let note = world.file("docs/note.txt", "note");
    let mode =
        |name: &str, mode| fs::set_permissions(ours.join(name), fs::Permissions::from_mode(mode)).unwrap();
    for name in ["ironcurtain-sandbox", "ironcurtain-filesystem"] {
        mode(name, 0o757);
        let mut client = world.start("filesystem");
        let message = refusal(&mut client);
        assert!(message.contains(name) && message.contains("other users can write it"), "{message}");
        mode(name, 0o755);
        world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert_eq!(world.connect("filesystem").read(&note).ok(), "note");
    }
}

#[test]
fn our_programs_in_a_granted_checkout_are_read_and_not_replaced() {
    let (_checkout, ours) = checkout();
    fs::write(ours.join("built.d"), "built").unwrap();
    let source = ours.ancestors().nth(2).unwrap().join("source.rs");
    fs::write(&source, "source").unwrap();
    let world = World::run_by(ours.clone(), hostile::install);
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": source })).ok();
    let program = ours.join("ironcurtain-sandbox");
    let before = fs::read(&program).unwrap();
    for path in [&program, &ours.join("new"), &ours] {
        client
            .call("change", json!({ "path": path }))
            .refused("IronCurtain's own programs are started from there");
    }
    // The folder is granted as a whole, and the kernel keeps the programs in it.
    let new = source.with_file_name("new.rs");
    client.scribble(&new).ok();
    assert!(new.exists());
    for path in [&program, &ours.join("new")] {
        let outcome = client.scribble(path);
        assert!(outcome.is_error && outcome.text.contains("Read-only file system"), "{outcome:?}");
    }
    assert_eq!(fs::read(&program).unwrap(), before);
    client.call("change", json!({ "path": source })).ok();
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.open(&ours.join("built.d")).ok(), "built");
}

#[test]
fn a_clients_configuration_is_denied_in_the_home_and_asked_about_in_a_project() {
    let world = hostile::world();
    let (own, project) = (world.file(".cursor/mcp.json", "{}"), world.file("docs/app/.mcp.json", "{}"));
    let note = world.file("docs/app/note.txt", "note");
    let mut client = world.connect("hostile");
    client
        .call("change", json!({ "path": own }))
        .refused("what is started from there could go around IronCurtain");
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": note })).ok();
    client.call("change", json!({ "path": note })).ok();
    world.person.asked();
    client.call("change", json!({ "path": project })).refused("the user denied this call");
    let asked = world.person.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].rule, "structural-starts-programs");
    assert!(asked[0].reason.contains("starts programs outside IronCurtain's care"), "{}", asked[0].reason);
    let lifetimes = asked[0].offers.iter().flat_map(|offer| &offer.lifetimes).collect::<Vec<_>>();
    assert_eq!(lifetimes, [&Lifetime::Once]);
}
