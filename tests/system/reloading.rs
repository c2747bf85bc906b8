//! The daemon watches the user's files: a change applies to the next call, paths that are no longer allowed are
//! unmounted, and an invalid file changes nothing.

mod edits;
mod errors;

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::eventually;
use edits::{annotate, rule, rules};
use ironcurtain_consent::{Lifetime, Reach, WithdrawalReason};
use serde_json::{Value, json};

const MISSING: &str = "os error 2)";

const POLICY: &str = "policy/compiled-policy.json";
const ANNOTATIONS: &str = "policy/tool-annotations.json";
const LISTS: &str = "policy/dynamic-lists.json";
const SERVERS: &str = "mcp-servers.json";
const SETTINGS: &str = "config.json";

#[test]
fn new_rule_denies_the_next_call_only_where_it_matches() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    let server = world.sessions()[0].server_pid;
    world.changes_policy(|w| w.put_first(rule("quiet", json!({ "tool": ["heard"] }), "deny")));
    client.plain("heard").refused("DENIED: quiet (rule `quiet`)");
    client.plain("now").ok();
    assert_eq!(world.sessions()[0].server_pid, server);
    world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
    client.plain("heard").ok();
}

#[test]
fn rule_opens_no_folder_that_the_entry_makes_unreadable() {
    let world = hostile::contained(&json!({ "filesystem": { "denyRead": ["~/docs"] } }));
    let (denied, open) = (world.file("docs/a.txt", "a"), world.file("kept/kept.txt", "kept"));
    let mut client = world.connect("hostile");
    client.sneak(&open).refused(MISSING);
    for name in ["docs", "kept"] {
        let within = json!({ "paths": { "roles": ["read-path"], "within": world.path(name) } });
        world.changes_policy(|w| w.put_first(rule(name, within, "allow")));
    }
    eventually("the other folder is a root", TIMEOUT, || world.roots().len() == 1);
    assert_eq!((client.open(&open).ok(), client.sneak(&open).ok()), ("kept", "kept"));
    client.sneak(&denied).refused(MISSING);
    client.open(&denied).refused("`sandbox.filesystem.denyRead`");
}

#[test]
fn folder_removed_from_rule_is_unmounted() {
    let world = hostile::world();
    let (open, other) = (world.file("docs/open.txt", "open"), world.file("kept/kept.txt", "kept"));
    let mut client = world.connect("hostile");
    client.sneak(&open).refused(MISSING);
    for name in ["docs", "kept"] {
        let within = json!({ "paths": { "roles": ["read-path"], "within": world.path(name) } });
        world.changes_policy(|w| w.put_first(rule(name, within, "allow")));
    }
    eventually("both are roots", TIMEOUT, || world.roots().len() == 2);
    assert_eq!(client.open(&open).ok(), "open");
    assert_eq!((client.sneak(&open).ok(), client.sneak(&other).ok()), ("open", "kept"));
    let server = world.sessions()[0].server_pid;
    world.changes_policy(|w| w.edit(POLICY, |p| rules(p).retain(|rule| rule["name"] != "docs")));
    let entries = world.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let changes = entries.iter().filter(|entry| !entry["policyChange"].is_null());
    let told = changes.map(|entry| (entry["summary"].clone(), entry["policyChange"]["closed"].clone()));
    let (opened, closed) =
        ("the policy changed: 1 new rule", "the policy changed: 1 removed rule, 1 folder no longer open");
    let expected = [(opened, json!([])), (opened, json!([])), (closed, json!([world.path("docs")]))];
    assert_eq!(told.collect::<Vec<_>>(), expected.map(|(summary, closed)| (json!(summary), closed)));
    // The next call requires approval even while the path is still mounted.
    client.open(&open).refused("the user denied this call");
    eventually("the folder is no longer a root", TIMEOUT, || world.roots() == [world.path("kept")]);
    // The path is first removed from the roots and then unmounted.
    eventually("the folder is unmounted", TIMEOUT, || client.sneak(&open).text.contains(MISSING));
    assert_eq!(client.sneak(&other).ok(), "kept");
    assert_eq!(world.sessions()[0].server_pid, server);
}

#[test]
fn server_holding_files_removed_from_rule_is_restarted() {
    let world = hostile::world();
    let open = world.file("docs/open.txt", "open");
    let within = json!({ "paths": { "roles": ["read-path"], "within": world.path("docs") } });
    world.changes_policy(|w| w.put_first(rule("docs", within, "allow")));
    let mut client = world.connect("hostile");
    client.call("clutch", json!({ "where": open })).ok();
    let server = world.sessions()[0].server_pid;
    world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
    eventually("the server is restarted", TIMEOUT, || {
        let now = world.sessions()[0].server_pid;
        now.is_some() && now != server
    });
    client.plain("recall").refused("entity not found");
    client.sneak(&open).refused(MISSING);
    client.plain("now").ok();
}

#[test]
fn in_flight_call_loses_access_removed_by_policy() {
    let world = hostile::world();
    world.changes_policy(|w| w.edit(ANNOTATIONS, |f| annotate(f, "slow", json!({ "path": ["read-path"] }))));
    // The new policy requires approval for the call.
    world.changes_policy(|w| {
        w.edit(POLICY, |policy| {
            let free = rules(policy)[0]["if"]["tool"].as_array_mut().unwrap();
            free.retain(|tool| tool != "slow");
        });
    });
    let within = |name: &str| json!({ "paths": { "roles": ["read-path"], "within": world.path(name) }, "tool": ["slow"] });
    for name in ["docs", "kept"] {
        world.changes_policy(|w| w.put_first(rule(name, within(name), "allow")));
    }
    let (secret, kept) = (world.file("docs/secret.txt", "secret"), world.file("kept/kept.txt", "kept"));
    let mut client = world.connect("hostile");
    client.begin_call("slow", json!({ "path": secret }));
    client.begin_call("slow", json!({ "path": kept }));
    eventually("both calls hold their mounts", TIMEOUT, || {
        [&secret, &kept].iter().all(|path| !client.sneak(path).is_error)
    });
    world.changes_policy(|w| w.edit(POLICY, |p| rules(p).retain(|rule| rule["name"] != "docs")));
    eventually("the path is unmounted", TIMEOUT, || client.sneak(&secret).text.contains(MISSING));
    assert_eq!(client.sneak(&kept).ok(), "kept");
}

#[test]
fn policy_change_rejudges_open_question() {
    for (then, outcome) in [("deny", Err("DENIED: settled (rule `settled`)")), ("allow", Ok("note"))] {
        let world = hostile::world();
        let note = world.file("docs/note.txt", "note");
        let mut client = world.connect("hostile");
        world.user.will(Next::Ignore);
        let call = client.begin_call("open", json!({ "path": note }));
        eventually("the question is asked", TIMEOUT, || world.user.count() == 1);
        world.changes_policy(|w| w.put_first(rule("settled", json!({ "tool": ["open"] }), then)));
        match outcome {
            Err(because) => drop(client.outcome(call).refused(because).to_owned()),
            Ok(text) => assert_eq!(client.outcome(call).ok(), text),
        }
        assert_eq!(world.user.withdrawn(), [WithdrawalReason::Settled]);
        assert_eq!(world.user.count(), 1);
    }
}

#[test]
fn policy_change_invalidates_late_approval() {
    let world = hostile::world();
    world.edit(SETTINGS, |settings| settings["questionDeadlineSeconds"] = json!(1));
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    for then in ["escalate", "deny"] {
        world.user.will(Next::Ignore);
        client.open(&note).refused("did not answer within 1 s");
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        assert!(world.ask_again());
        world.user.asked();
        world.changes_policy(|w| w.put_first(rule("other", json!({ "tool": ["open"] }), then)));
        let is_asked = then == "escalate";
        if is_asked {
            // A denial would also discard the late approval.
            world.user.will(Next::Close);
        }
        let denied = if is_asked { "closed without an answer" } else { "DENIED: other (rule `other`)" };
        client.open(&note).refused(denied);
        assert_eq!(world.user.asked().len(), usize::from(is_asked));
        world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
        // The approval applies to the question that the user answered.
        assert_eq!(client.open(&note).ok(), "note");
        assert_eq!((world.user.count(), world.questions().missed), (0, vec![]));
    }
}

#[test]
fn file_changes_are_detected_for_every_write_style() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let elsewhere = world.path("dotfiles/policy.json");
    std::fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    let free = world.read(POLICY);
    let mut strict: Value = serde_json::from_str(&free).unwrap();
    rules(&mut strict).insert(0, rule("quiet", json!({ "tool": ["heard"] }), "deny"));
    let strict = strict.to_string();
    let mut both = |write: &dyn Fn(&str)| {
        world.changes_policy(|_| write(&strict));
        client.plain("heard").refused("quiet");
        world.changes_policy(|_| write(&free));
        client.plain("heard").ok();
    };
    both(&|text| std::fs::write(world.config(POLICY), text).unwrap());
    both(&|text| world.replaces(POLICY, text));
    both(&|text| {
        std::fs::remove_file(world.config(POLICY)).unwrap();
        std::fs::write(world.config(POLICY), text).unwrap();
    });
    // Changes to the target of a symlink are noticed too.
    std::fs::copy(world.config(POLICY), &elsewhere).unwrap();
    std::fs::remove_file(world.config(POLICY)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.config(POLICY)).unwrap();
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    // A new session shows that the symlink has been processed.
    world.connect("hostile").hang_up();
    both(&|text| std::fs::write(&elsewhere, text).unwrap());
}

#[test]
fn edited_list_applies() {
    let world = hostile::world();
    let lists = |names: &[&str]| json!({ "lists": { "friends": { "values": names } } }).to_string();
    world.changes_policy(|w| w.replaces(LISTS, &lists(&["alice"])));
    let arguments = json!({ "n": ["none"], "text": ["github-owner"] });
    world.changes_policy(|w| w.edit(ANNOTATIONS, |file| annotate(file, "echo", arguments)));
    let friends = json!([{ "roles": ["github-owner"], "allowed": ["@friends"], "matchType": "identifiers" }]);
    let friends = rule("friends", json!({ "lists": friends }), "allow");
    let strangers = rule("strangers", json!({ "tool": ["echo"] }), "deny");
    world.changes_policy(|w| w.edit(POLICY, |policy| *rules(policy) = vec![friends, strangers]));
    let mut client = world.connect("hostile");
    let mut call = |name: &str| client.call("echo", json!({ "text": name }));
    call("alice").ok();
    call("bob").refused("strangers");
    world.changes_policy(|w| w.replaces(LISTS, &lists(&["bob"])));
    call("bob").ok();
    call("alice").refused("strangers");
    // A list that a rule uses must exist.
    world.replaces(LISTS, r#"{ "lists": {} }"#);
    assert!(world.trouble().contains("unknown list `friends`"), "{}", world.trouble());
    call("bob").ok();
}

#[test]
fn policy_change_and_each_call_record_policy_hashes() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    let before = world.status().policy;
    world.changes_policy(|w| w.put_first(rule("quiet", json!({ "tool": ["heard"] }), "deny")));
    let after = world.status().policy;
    client.plain("heard").refused("quiet");
    let entries: Vec<Value> = world.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let change = entries.iter().find(|entry| entry["event"] == "policy").unwrap();
    assert_eq!((&change["policyHash"], after.len()), (&json!(after), 64));
    let expected =
        json!({ "before": before, "added": ["quiet"], "removed": [], "changed": [], "closed": [] });
    assert_eq!(change["policyChange"], expected);
    assert_eq!(change["summary"], "the policy changed: 1 new rule");
    let by = |status: &str| {
        let decided =
            |entry: &&Value| entry["event"] == "decision" && entry["policyDecision"]["status"] == status;
        entries.iter().filter(decided).map(|entry| entry["policyHash"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((by("allow"), by("deny")), (vec![json!(before)], vec![json!(after)]));
    let started = entries.iter().find(|entry| entry["summary"] == "the trusted process started").unwrap();
    assert_eq!(started["policyHash"], json!(before));
    assert!(world.audit().intact);
    let counted = "Call types with a different decision: 0 looser, 1 stricter";
    eventually("the counts are current", TIMEOUT, || {
        world.activity().iter().any(|entry| entry.summary == counted)
    });
    world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
    let counted = "Call types with a different decision: 1 looser, 0 stricter";
    eventually("the counts are current", TIMEOUT, || {
        world.activity().iter().any(|entry| entry.summary == counted)
    });
}

#[test]
fn next_session_uses_current_servers() {
    let world = hostile::world();
    let mut running = world.connect("hostile");
    let environ = |client: &mut Client| client.plain("environ").ok().contains("MARK");
    assert!(!environ(&mut running));
    world.edit(SERVERS, |servers| servers["hostile"]["env"] = json!({ "MARK": "1" }));
    let mut next = world.connect("hostile");
    assert_eq!((environ(&mut next), environ(&mut running)), (true, false));
    // An invalid file leaves the servers unchanged.
    let good = world.read(SERVERS);
    world.edit(SERVERS, |servers| servers["hostile"]["comand"] = json!("x"));
    let trouble = world.trouble();
    assert!(trouble.starts_with("The last change of the configured servers is not in force: "), "{trouble}");
    assert!(trouble.contains("server `hostile`: `comand`: unknown field"), "{trouble}");
    assert!(environ(&mut world.connect("hostile")));
    world.replaces(SERVERS, &good);
    eventually("no problem is reported", TIMEOUT, || world.status().troubles.is_empty());
    // A removed server remains available only in sessions that already use it.
    world.edit(SERVERS, |servers| *servers = json!({ "other": servers["hostile"] }));
    let refused = world.start("hostile").request("initialize", json!({}));
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(said.contains("no server is named `hostile`; pass one of `other` to `--server`"), "{said}");
    running.plain("now").ok();
    assert_eq!(world.status().servers, ["other"]);
    let told = "For new sessions the servers changed (new: `other`; removed: `hostile`)";
    assert!(world.activity().iter().any(|entry| entry.summary == told), "{:?}", world.activity());
}

#[test]
fn next_session_uses_current_settings() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "note");
    let mut running = world.connect("hostile");
    world.replaces(SETTINGS, r#"{ "questionDeadlineSeconds": 7, "denialHoldsSeconds": 0 }"#);
    let mut next = world.connect("hostile");
    let seconds = |client: &mut Client| {
        client.open(&note).refused("the user denied this call");
        world.user.asked()[0].deadline.as_secs()
    };
    assert_eq!((seconds(&mut running), seconds(&mut next)), (45, 7));
    world.replaces(SETTINGS, r#"{ "questionDeadlineSeconds": 0 }"#);
    let trouble = world.trouble();
    assert!(trouble.starts_with("The last change of the settings is not in force: "), "{trouble}");
    assert_eq!(seconds(&mut world.connect("hostile")), 7);
}

#[test]
fn policy_change_ends_grants_it_no_longer_permits() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.open(&note).ok();
    let within = json!({ "paths": { "roles": ["read-path"], "within": world.path("docs") } });
    world.changes_policy(|w| w.put_first(rule("closed", within, "deny")));
    client.open(&note).refused("DENIED: closed (rule `closed`)");
    world.changes_policy(|w| w.edit(POLICY, |policy| drop(rules(policy).remove(0))));
    assert_eq!(client.open(&note).ok(), "note");
}
