//! Reading many files in a folder that the user allowed a run to read.

use crate::machine::are_shells_stopped;
use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{ActivityView, Reply, Request};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Number of files in the folder.
const FILES: usize = 40;

/// Creates the folder `docs`, with numbered files and `shut/b`.
fn create_files(world: &World) {
    for number in 0..FILES {
        world.file(&format!("docs/{number}"), &format!("{number}\n"));
    }
    world.file("docs/shut/b", "old\n");
    world.file("project/own", "own");
}

/// Returns a policy with these rules, followed by one that escalates everything else.
fn policy(rules: &[Value]) -> String {
    let ask = json!({ "name": "ask", "description": "d", "principle": "p", "reason": "r", "then": "escalate", "if": {} });
    let rules: Vec<&Value> = rules.iter().chain([&ask]).collect();
    json!({ "schemaVersion": 1, "rules": rules }).to_string()
}

/// Returns a rule that denies reading in a folder.
fn deny_reading(folder: &str) -> Value {
    json!({ "name": "shut", "description": "d", "principle": "p", "reason": "r", "then": "deny",
        "if": { "paths": { "roles": ["read-path"], "within": folder } } })
}

/// Returns a rule that denies reading a file, which it names in a list.
fn deny_reading_file(file: &Path) -> Value {
    json!({ "name": "shut", "description": "d", "principle": "p", "reason": "r", "then": "deny",
        "if": { "lists": [{ "roles": ["read-path"], "allowed": [file], "matchType": "identifiers" }] } })
}

/// Returns the decisions about files in `docs`.
fn decisions(world: &World) -> Vec<ActivityView> {
    let docs = world.path("docs");
    let docs = docs.to_str().unwrap();
    let is_about_docs = |entry: &ActivityView| {
        entry.event == "decision" && entry.paths.iter().any(|path| path.starts_with(docs))
    };
    world.activity().into_iter().filter(is_about_docs).collect()
}

#[test]
fn each_file_of_an_allowed_folder_is_recorded_and_counted() {
    let world = World::new();
    create_files(&world);
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let run = Command::new(programs().join("ironcurtain"))
        .args(["run", "--verbose", "--", "/bin/sh", "-c", "cat ~/docs/* 2>/dev/null; cat ~/docs/7"])
        .current_dir(world.path("project"))
        .env("IRONCURTAIN_HOME", world.ours())
        .env_remove("SSH_AUTH_SOCK")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(run.stdout).unwrap().lines().count(), FILES + 1);
    assert_eq!(world.user.asked().len(), 1);
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains(&format!("read {FILES} other files")), "{said}");
    eventually("every file is recorded", TIMEOUT, || decisions(&world).len() == FILES);
    for entry in decisions(&world) {
        assert_eq!(
            (entry.decision.as_deref(), entry.decided_by.as_deref(), entry.tool.as_deref()),
            (Some("allow"), Some("grant"), Some("files/read")),
            "{entry:?}"
        );
        assert_eq!(entry.paths.len(), 1, "{entry:?}");
    }
    assert!(world.audit().intact);
}

#[test]
fn files_that_cannot_be_recorded_are_denied_until_they_can() {
    let world = World::new();
    create_files(&world);
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(shell.run("cat ~/docs/0 ~/docs/1"), "0\n1\nstatus 0\n");
    eventually("both files are recorded", TIMEOUT, || decisions(&world).len() == 2);
    let (log, away) = (world.home.audit().join("audit.jsonl"), world.home.audit().join("away"));
    std::fs::rename(&log, &away).unwrap();
    // The first file after the removal may still be opened, because recording it fails afterwards.
    shell.run("cat ~/docs/2");
    eventually("a file is denied", TIMEOUT, || shell.run("cat ~/docs/3").contains("Permission denied"));
    // The file that the question was about has a permission of its own, which is on record.
    assert_eq!(shell.run("cat ~/docs/0"), "0\nstatus 0\n");
    assert!(shell.run("cat ~/docs/1").contains("Permission denied"));
    // The file that could not be recorded is recorded later, and only then is the folder readable again.
    std::fs::rename(&away, &log).unwrap();
    let is_recorded = |file: &str| decisions(&world).iter().any(|entry| entry.paths[0].ends_with(file));
    eventually("the file is recorded", TIMEOUT, || is_recorded("docs/2"));
    eventually("files are read again", TIMEOUT, || shell.run("cat ~/docs/3") == "3\nstatus 0\n");
    assert_eq!(shell.run("cat ~/docs/4"), "4\nstatus 0\n");
    eventually("further files are recorded", TIMEOUT, || is_recorded("docs/3") && is_recorded("docs/4"));
    assert_eq!(world.user.asked().len(), 1);
    assert!(world.audit().intact);
}

#[test]
fn files_are_recorded_again_after_a_new_approval() {
    let world = World::new();
    create_files(&world);
    let mut shell = Shell::start(&world, &world.path("project"));
    for approvals in 1..=2 {
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        assert_eq!(shell.run("cat ~/docs/0 ~/docs/1"), "0\n1\nstatus 0\n");
        eventually("both files are recorded", TIMEOUT, || decisions(&world).len() == 2 * approvals);
        world.revoke_only_grant();
    }
}

#[test]
fn files_stay_open_during_a_pause_and_an_unrelated_change_of_the_policy() {
    let world = World::new();
    create_files(&world);
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    world.file("elsewhere/x", "x");
    assert_eq!(shell.run("cat ~/docs/0; exec 7< ~/docs/shut/b 8< ~/docs/shut/b"), "0\nstatus 0\n");
    eventually("the run is listed", TIMEOUT, || world.sessions().len() == 1);
    let run = world.sessions().remove(0);
    assert_eq!(world.request(Request::Pause { session: run.id.clone() }), Reply::Done);
    eventually("the shell is suspended", TIMEOUT, || are_shells_stopped(run.server_pid.unwrap()));
    assert_eq!(world.request(Request::Resume { session: run.id.clone() }), Reply::Done);
    assert_eq!(shell.run("cat <&7"), "old\nstatus 0\n");
    // The pause ended the permission to open files, so a file is recorded again when it is opened again.
    assert_eq!(shell.run("cat ~/docs/1 ~/docs/shut/b"), "1\nold\nstatus 0\n");
    let openings = || decisions(&world).iter().filter(|entry| entry.paths[0].ends_with("shut/b")).count();
    eventually("the second opening is recorded", TIMEOUT, || openings() == 2);
    assert_eq!(world.user.asked().len(), 1);
    let policy = policy(&[deny_reading("~/elsewhere")]);
    std::fs::write(world.home.policy().join("compiled-policy.json"), policy).unwrap();
    eventually("the rule is in force", TIMEOUT, || {
        shell.run("cat ~/elsewhere/x");
        world.log().contains(r#""rule":"shut""#)
    });
    world.user.asked();
    assert_eq!(shell.run("cat <&8; cat ~/docs/2"), "old\n2\nstatus 0\n");
    assert_eq!(world.user.asked().len(), 0);
}

#[test]
fn a_rule_denies_a_part_of_an_allowed_folder() {
    for is_listed in [false, true] {
        let world = World::with(|prepared| {
            let file = prepared.home.user_home.join("docs/shut/b");
            let rule = if is_listed { deny_reading_file(&file) } else { deny_reading("~/docs/shut") };
            std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy(&[rule])).unwrap();
        });
        create_files(&world);
        let mut shell = Shell::start(&world, &world.path("project"));
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        assert_eq!(shell.run("cat ~/docs/0 ~/docs/1"), "0\n1\nstatus 0\n");
        let denied = shell.run("cat ~/docs/shut/b");
        assert!(denied.contains("Permission denied"), "{denied}");
        assert_eq!(world.user.asked().len(), 1);
    }
}

#[test]
fn a_new_rule_and_a_revocation_end_reading_in_an_allowed_folder() {
    for ends_by_rule in [true, false] {
        let world = World::new();
        create_files(&world);
        let mut shell = Shell::start(&world, &world.path("project"));
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        assert_eq!(shell.run("cat ~/docs/0; cat ~/docs/shut/b"), "0\nold\nstatus 0\n");
        assert_eq!(shell.run("exec 7< ~/docs/shut/b"), "status 0\n");
        if ends_by_rule {
            let policy = policy(&[deny_reading("~/docs/shut")]);
            std::fs::write(world.home.policy().join("compiled-policy.json"), policy).unwrap();
            eventually("the rule is in force", TIMEOUT, || {
                shell.run("cat ~/docs/shut/b").contains("Permission denied")
            });
            assert_eq!(shell.run("cat ~/docs/1"), "1\nstatus 0\n");
        } else {
            world.revoke_only_grant();
            let denied = shell.run("cat ~/docs/1");
            assert!(denied.contains("Permission denied"), "{denied}");
        }
        let held = shell.run("cat <&7");
        assert!(held.contains("Input/output error"), "{held}");
        assert_eq!(world.user.asked().len(), if ends_by_rule { 1 } else { 2 });
    }
}
