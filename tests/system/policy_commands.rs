//! Policy commands, which run without the daemon and read its grants and its audit log.

use crate::hostile;
use crate::scripted_user::Next;
use crate::world::{World, programs};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `ironcurtain` command with a home directory.
struct Looking {
    home: Home,
    ours: PathBuf,
}

impl Looking {
    fn at(world: &World) -> Self {
        Self { home: world.home.clone(), ours: world.ours() }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = Command::new(programs().join("ironcurtain"))
            .args(["policy", "--json"])
            .args(arguments)
            .env("IRONCURTAIN_HOME", &self.ours)
            .env("HOME", &self.home.user_home)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns the decision on opening a path, and the number of grants that apply to the client.
    fn explain_open(&self, path: &Path, client: &str) -> (String, usize) {
        let args = json!({ "path": path }).to_string();
        let call = ["explain", "--server", "hostile", "--tool", "open", "--args", &args, "--client", client];
        let found = self.json(&call);
        (found["decision"].as_str().unwrap().to_owned(), found["client"]["grants"].as_array().unwrap().len())
    }

    /// Replays the log. Returns the calls whose decision changed, each with its old and new decision and rule, and
    /// the total number of calls.
    fn replay(&self, arguments: &[&str]) -> Replayed {
        let found = self.json(&[&["replay"], arguments].concat());
        assert_eq!(found["problem"], Value::Null);
        let side = |side: &Value| format!("{}:{}", side["decision"], side["rule"]).replace('"', "");
        let groups = |name: &str| {
            let groups = found[name].as_array().unwrap().iter();
            let words = |group: &Value| {
                let count = group["calls"].as_array().unwrap().len();
                format!("{} {} {} {count}", group["tool"], side(&group["then"]), side(&group["now"]))
            };
            groups.map(words).collect::<Vec<_>>()
        };
        Replayed {
            calls: found["calls"].as_u64().unwrap(),
            looser: groups("looser"),
            stricter: groups("stricter"),
            same: found["same"].as_u64().unwrap(),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Replayed {
    calls: u64,
    looser: Vec<String>,
    stricter: Vec<String>,
    same: u64,
}

#[test]
fn policy_explain_denies_what_the_entry_makes_unreadable() {
    let world = hostile::contained(&json!({ "filesystem": { "denyRead": ["~/docs/private"] } }));
    let (open, private) = (world.file("docs/a.txt", "a"), world.file("docs/private/key", "key"));
    let looking = Looking::at(&world);
    assert_eq!(looking.explain_open(&private, "another"), ("deny".to_owned(), 0));
    assert_eq!(looking.explain_open(&open, "another"), ("escalate".to_owned(), 0));
}

#[test]
fn policy_explain_counts_standing_grants_with_and_without_daemon() {
    let mut world = hostile::world();
    hostile::answers_before(&world);
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Always));
    client.open(&secret).ok();
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    let other = world.file("docs/other.txt", "other");
    client.open(&other).ok();
    let name = world.grants()[0].client.clone();
    let exe = std::env::current_exe().unwrap();
    let looking = Looking::at(&world);
    let look = || {
        for named in [name.as_str(), exe.to_str().unwrap()] {
            assert_eq!(looking.explain_open(&secret, named), ("allow".to_owned(), 1));
            // The grant ended with its session, so it is not in the database.
            assert_eq!(looking.explain_open(&other, named), ("escalate".to_owned(), 1));
        }
        assert_eq!(looking.explain_open(&secret, "another"), ("escalate".to_owned(), 0));
    };
    look();
    client.hang_up();
    world.restart_after(look);
    world.revoke_only_grant();
    assert_eq!(looking.explain_open(&secret, &name), ("escalate".to_owned(), 0));
}

#[test]
fn audit_log_is_replayed_with_current_and_other_policy() {
    let world = hostile::world();
    let (secret, key) = (world.file("docs/secret.txt", "secret"), world.file(".ssh/key", "key"));
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    client.call("echo", json!({ "n": 1, "text": "ghp_0123456789abcdefghij" })).ok();
    client.call("change", json!({ "path": world.sandbox().join("mine.txt") })).ok();
    world.user.will(Next::Deny);
    client.open(&secret).refused("the user denied this call");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Hour));
    client.open(&secret).ok();
    client.open(&secret).ok();
    client.open(&key).refused("structural-protected-path");
    client.call("open", json!({ "path": "~nobody/x" })).refused("structural-invalid-argument");
    client.call("unheard", json!({})).refused("the tool `hostile/unheard` has not been reviewed yet");
    client.hang_up();
    let looking = Looking::at(&world);
    let same = Replayed { calls: 9, looser: vec![], stricter: vec![], same: 9 };
    assert_eq!(looking.replay(&[]), same);
    assert_eq!(looking.replay(&["--since", "1h"]), same);
    let none = Replayed { calls: 0, looser: vec![], stricter: vec![], same: 0 };
    assert_eq!(looking.replay(&["--since", "2999-01-01"]), none);

    let policy = |docs: &str| {
        let rule = |name: &str, condition, then: &str| json!({ "name": name, "if": condition, "then": then });
        let within = json!({ "paths": { "roles": ["read-path"], "within": "~/docs" } });
        let rules = json!({ "rules": [
            rule("quiet", json!({ "tool": ["heard"] }), "deny"),
            rule("free", json!({ "tool": ["echo"] }), "allow"),
            rule("docs", within, docs),
            rule("ask", json!({}), "escalate"),
        ] });
        world.file("other-policy.json", &rules.to_string()).to_str().unwrap().to_owned()
    };
    let quiet = "\"heard\" allow:free deny:quiet 1".to_owned();
    let opened = Replayed {
        calls: 9,
        looser: vec!["\"open\" escalate:ask allow:docs 2".to_owned()],
        stricter: vec![quiet.clone()],
        same: 6,
    };
    assert_eq!(looking.replay(&["--policy", &policy("allow")]), opened);
    // A rule that denies takes precedence over grants.
    let closed = Replayed {
        calls: 9,
        looser: vec![],
        stricter: vec![
            quiet,
            "\"open\" allow:grant deny:docs 1".to_owned(),
            "\"open\" escalate:ask deny:docs 2".to_owned(),
        ],
        same: 5,
    };
    assert_eq!(looking.replay(&["--policy", &policy("deny")]), closed);
}
