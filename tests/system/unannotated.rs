//! Unannotated tools: their calls are refused. If the server's entry says `ask`, the calls are shown to the user with
//! all arguments.

use crate::client::TIMEOUT;
use crate::scripted;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Consequence, Lifetime, Reach, TextPart, Verb};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use serde_json::{Value, json};

/// Script of a server that reads the file named by any argument called `file`, if it has access.
const READS: &str = r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        file = m["params"]["arguments"].get("file", "/dev/null")
        try: answer(m, "read: " + open(file).read())
        except OSError as e: answer(m, e.strerror)
"#;

/// Creates a test environment with the shipped policy, whose server has access outside its session and these keys in
/// its entry.
fn world(keys: Value) -> World {
    let mut entry = json!({ "sandbox": { "network": { "allowedDomains": ["a.example"] } } });
    entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    World::with(|prepared| {
        scripted::install_with_keys(prepared, READS, &entry);
        std::fs::remove_file(prepared.home.policy().join("compiled-policy.json")).unwrap();
    })
}

fn asking() -> World {
    world(json!({ "unannotated": "ask" }))
}

#[test]
fn unannotated_tool_is_refused_unless_entry_asks() {
    let world = world(json!({}));
    let mut client = world.connect("hostile");
    client.call("zap", json!({})).refused("the tool `hostile/zap` has not been reviewed yet; the user can run: ironcurtain servers annotate hostile");
    assert_eq!(world.user.count(), 0);
    let world = asking();
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("zap", json!({})).ok(), "read: ");
    assert!(world.log().contains(r#""rule":"structural-unannotated""#));
    // The approval covered only one call.
    client.call("zap", json!({})).refused("the user denied this call");
    assert_eq!(world.user.count(), 2);
    // Calls to annotated tools are judged as usual.
    client.call("open", json!({ "path": "/x", "more": 1 })).refused("has no argument `more`");
}

#[test]
fn unannotated_tool_question_shows_arguments_and_no_effects() {
    let world = asking();
    let mut client = world.connect("hostile");
    let (long, nested) = ("x".repeat(7_000), json!({ "to": ["a", null], "deep": { "b": 1 } }));
    let given = json!({ "query": long, "options": nested, "none": null, "path": "/etc/passwd" });
    client.call("delete_all", given).refused("the user denied this call");
    let [question] = &*world.user.asked() else { panic!("not one question") };
    let foreign = |text: &str| TextPart::Untrusted(text.into());
    let object = vec![
        foreign("delete_all"),
        TextPart::Fixed(" with "),
        foreign("query"),
        TextPart::Fixed(": "),
        foreign(&long),
    ];
    let line = Consequence {
        note: Some("IronCurtain does not know what this tool does".into()),
        ..Consequence::new(Verb::Call, object)
    };
    assert_eq!(question.consequences, [line]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let all = [
        pair("query", &long),
        pair("options", r#"{"to":["a",null],"deep":{"b":1}}"#),
        pair("none", "null"),
        pair("path", "/etc/passwd"),
    ];
    assert_eq!((&*question.with, &*question.arguments), (&all[1..], &all[..]));
    assert_eq!(question.reason, "IronCurtain does not know what this tool does");
    let offers: Vec<_> = question.offers.iter().map(|offer| (offer.reach, &*offer.lifetimes)).collect();
    let timed = &[Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour][..];
    let expected = [
        (Reach::Paths, &[Lifetime::Once][..]),
        (Reach::Tool, &[Lifetime::Session]),
        (Reach::AnyUse, timed),
        (Reach::AllTools, timed),
    ];
    assert_eq!(offers, expected);
    let whole = format!("{} may call delete_all with query: \u{201c}xxx", question.client.name);
    assert!(question.offers[0].sentence.starts_with(&whole), "{:?}", question.offers);
    // A call whose question is too long to read is refused.
    let refused = client.call("delete_all", json!({ "query": "x".repeat(300 * 1024) }));
    refused.refused("this call sends 300 kB of text, too long to show");
    assert_eq!(world.user.count(), 0);
}

#[test]
fn session_approval_of_unannotated_tool_covers_same_arguments_only() {
    let world = asking();
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Tool, Lifetime::Session));
    client.call("zap", json!({ "a": 1, "b": [2] })).ok();
    client.call("zap", json!({ "b": [2], "a": 1 })).ok();
    assert_eq!(world.user.asked().len(), 1);
    for other in [json!({ "a": 1, "b": [3] }), json!({ "a": 1 }), json!({})] {
        client.call("zap", other).refused("the user denied this call");
    }
    client.call("zip", json!({ "a": 1, "b": [2] })).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 4);
    client.hang_up();
    let mut client = world.connect("hostile");
    client.call("zap", json!({ "a": 1, "b": [2] })).refused("the user denied this call");
}

#[test]
fn unannotated_tool_arguments_mount_nothing() {
    let world = asking();
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    for argument in ["file", "path"] {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let answer = client.call("zap", json!({ "file": file, argument: file }));
        assert_eq!(answer.ok(), "No such file or directory", "{argument}");
    }
    assert!(world.grants().is_empty());
}

#[test]
fn unannotated_tool_of_confined_server_is_free() {
    let world = world(json!({ "unannotated": "ask", "sandbox": {} }));
    let file = world.file("docs/plan.txt", "secret");
    let mut client = world.connect("hostile");
    assert_eq!(client.call("zap", json!({ "file": file })).ok(), "No such file or directory");
    assert_eq!(world.user.count(), 0);
    assert!(world.log().contains(r#""rule":"allow-what-reaches-nothing""#));
}

#[test]
fn deny_rule_on_unannotated_tool_does_not_ask() {
    for (condition, denied) in [
        (json!({ "roles": ["delete-path"] }), true),
        (json!({ "server": ["hostile"], "tool": ["zap"] }), true),
        (json!({ "server": ["another"] }), false),
    ] {
        let mut entry = json!({ "sandbox": { "network": { "allowedDomains": ["a.example"] } } });
        entry["unannotated"] = json!("ask");
        let world = World::with(|prepared| {
            scripted::install_with_keys(prepared, READS, &entry);
            let rules = json!({ "schemaVersion": 1, "rules": [
                { "name": "never", "if": condition, "then": "deny", "reason": "Never." },
                { "name": "ask", "if": {}, "then": "escalate", "reason": "Ask." },
            ] });
            std::fs::write(prepared.home.policy().join("compiled-policy.json"), rules.to_string()).unwrap();
        });
        let mut client = world.connect("hostile");
        let outcome = client.call("zap", json!({}));
        outcome.refused(if denied { "never" } else { "the user denied this call" });
        assert_eq!(world.user.count(), usize::from(!denied), "{condition}");
    }
}

/// Script of a server that lists `act`, and `see` and `scan`, which it declares to be read-only.
const HINTS: &str = r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/list":
        tool = lambda name, hints: {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}
        reads = {"readOnlyHint": True}
        say(id=m["id"], result={"tools": [tool("see", reads), tool("scan", reads), tool("do", {})]})
    elif m["method"] == "tools/call": answer(m)
"#;

#[test]
fn read_only_hint_counts_only_without_network_and_writable_folder() {
    let world_with = |sandbox: &Value| {
        let entry = json!({ "unannotated": "ask", "sandbox": sandbox });
        World::with(|prepared| {
            scripted::install_with_keys(prepared, HINTS, &entry);
            std::fs::create_dir(prepared.home.user_home.join("out")).unwrap();
            let rules = json!({ "schemaVersion": 1, "rules": [
                { "name": "ask", "if": {}, "then": "escalate", "reason": "Ask." },
            ] });
            std::fs::write(prepared.home.policy().join("compiled-policy.json"), rules.to_string()).unwrap();
        })
    };
    let world = world_with(&json!({}));
    let mut client = world.connect("hostile");
    client.request("tools/list", json!({}));
    world.user.will(Next::Allow(Reach::ReadingTools, Lifetime::Session));
    client.call("see", json!({ "a": 1 })).ok();
    client.call("scan", json!({})).ok();
    assert_eq!(world.user.count(), 1);
    client.call("do", json!({})).refused("the user denied this call");
    let granted = |folder: &str, access: &[Access]| {
        let access = access.iter().fold(AccessSet::default(), |all, access| all.with(*access));
        let path = world.home.user_home.join(folder);
        std::fs::create_dir_all(&path).unwrap();
        let known = world.daemon.known_clients();
        let what = GrantTarget::Files { path, access };
        let request = GrantRequest {
            client: known[0].key.clone(),
            server: "hostile".into(),
            what,
            lifetime: Lifetime::Session,
        };
        world.wait(world.daemon.grant(request)).unwrap();
    };
    granted("to-read", &[Access::Read]);
    client.call("see", json!({ "a": 2 })).ok();
    granted("to-write", &[Access::Read, Access::Write]);
    eventually("the hint does not count beside a writable folder", TIMEOUT, || {
        client.call("see", json!({ "a": 3 })).is_error
    });
    client.call("see", json!({ "a": 4 })).refused("the user denied this call");
    for sandbox in [
        json!({ "network": { "allowedDomains": ["a.example"] } }),
        json!({ "filesystem": { "allowWrite": ["~/out"] } }),
    ] {
        let world = world_with(&sandbox);
        let mut client = world.connect("hostile");
        client.request("tools/list", json!({}));
        client.call("see", json!({})).refused("the user denied this call");
        let [question] = &*world.user.asked() else { panic!("not one question") };
        assert!(question.offers.iter().all(|offer| offer.reach != Reach::ReadingTools), "{sandbox}");
        world.user.will(Next::Allow(Reach::AllTools, Lifetime::Session));
        client.call("see", json!({ "a": 1 })).ok();
    }
}
