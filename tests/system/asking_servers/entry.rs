//! Tests the restrictions in a server's entry: denied paths, denied hosts, and environment variables.

use super::{TIMEOUT, at, connect_to, eval, install, service, world};
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const DENIED: &str = "PermissionError: Permission denied";
const MISSING: &str = "FileNotFoundError: No such file or directory";

#[test]
fn paths_that_the_entry_hides_stay_hidden_in_a_granted_folder() {
    let denied = json!(["~/docs/private", "~/way", "~/docs/later"]);
    let world = world(json!({ "sandbox": { "filesystem": { "denyRead": denied } } }));
    let docs = world.file("docs/a", "a").parent().unwrap().to_owned();
    let private = world.file("docs/private/key", "key");
    let behind_link = world.file("docs/behind/key", "key");
    symlink(docs.join("behind"), world.path("way")).unwrap();
    let other = world.file("other/a", "a");
    let mut client = world.connect("hostile");
    for file in [docs.join("a"), other] {
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        assert_eq!(client.call("scribble", at(&file)).ok(), "7");
    }
    assert_eq!(world.user.asked().len(), 2);
    // Folders are mounted in the order of their paths.
    let mounted = format!("' {} ' in open('/proc/self/mountinfo').read()", world.path("other").display());
    eventually("folders are mounted", TIMEOUT, || client.call("run", eval(&mounted)).ok() == "True");
    let later = world.file("docs/later", "later");
    for hidden in [private, behind_link, later] {
        assert_eq!(client.call("sneak", at(&hidden)).ok(), MISSING, "{}", hidden.display());
        assert!(client.call("scribble", at(&hidden)).ok().contains("Error"), "{}", hidden.display());
    }
    assert_eq!(client.call("run", eval(&format!("sorted(os.listdir({docs:?}))"))).ok(), "['a']");
    assert_eq!((client.call("sneak", at(&docs.join("a"))).ok(), world.user.count()), ("changed", 0));
}

#[test]
fn a_folder_is_not_moved_past_a_rule_about_its_contents() {
    let world = World::with(|prepared| {
        install(prepared, json!({}));
        let file = prepared.home.policy().join("compiled-policy.json");
        let mut policy: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let rule = |name: &str, role: &str, within: &str| {
            json!({
                "name": name, "description": name, "principle": name, "reason": name, "then": "deny",
                "if": { "paths": { "roles": [role], "within": within } },
            })
        };
        let rules = policy["rules"].as_array_mut().unwrap();
        rules.insert(0, rule("unread", "read-path", "~/work/private"));
        rules.insert(0, rule("unwritten", "write-path", "~/settings/kept"));
        std::fs::write(&file, policy.to_string()).unwrap();
        let limit = r#"{ "questionsPerMinute": 100 }"#;
        std::fs::write(prepared.home.config.join("config.json"), limit).unwrap();
    });
    let key = world.file("work/private/key", "key");
    world.file("plain/a", "a");
    let mut client = world.connect("hostile");
    let mut renames = |from: &str, to: &str| {
        for _ in 0..3 {
            world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        }
        let rename = format!("os.rename({:?}, {:?})", world.path(from), world.path(to));
        let said = client.call("run", eval(&rename)).ok().to_owned();
        world.user.forget();
        said
    };
    assert_eq!(renames("work", "elsewhere"), DENIED);
    assert_eq!(renames("plain", "settings"), DENIED);
    assert_eq!(renames("plain", "moved"), "None");
    assert!(key.exists() && world.path("moved/a").exists() && !world.path("settings").exists());
}

#[test]
fn startup_files_are_recognized_whatever_home_the_entry_names() {
    let world = world(json!({ "env": { "HOME": "/tmp" } }));
    world.file("made/evil.desktop", "[Desktop Entry]");
    world.file(".config/other", "");
    let mut client = world.connect("hostile");
    let mut renames = |to: &str| {
        for _ in 0..3 {
            world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        }
        let rename = format!("os.rename({:?}, {:?})", world.path("made"), world.path(to));
        let said = client.call("run", eval(&rename)).ok().to_owned();
        world.user.forget();
        said
    };
    assert_eq!(renames(".config/autostart"), "OSError: Invalid cross-device link");
    assert!(!world.path(".config/autostart").exists());
    assert_eq!(renames("plain"), "None");
    let link = format!("os.symlink('/tmp/x', {:?})", world.path(".bashrc"));
    assert_eq!(client.call("run", eval(&link)).ok(), "PermissionError: Operation not permitted");
}

#[test]
fn services_of_this_computer_are_subject_to_the_rules_of_the_entry() {
    let port = service();
    let reaches = |network: Value| {
        let world = world(json!({ "sandbox": { "network": network } }));
        let mut client = world.connect("hostile");
        let said = client.call("run", eval(&connect_to(port))).ok().to_owned();
        (said.contains("alive"), world.user.asked().len())
    };
    for denied in ["localhost", "127.0.0.1", &format!("[::1]:{port}"), "*"] {
        let network = json!({ "allowedDomains": [], "deniedDomains": [denied], "askUnknown": true });
        assert_eq!(reaches(network), (false, 0), "{denied}");
    }
    // Without `askUnknown`, only listed ports are reachable.
    assert_eq!(reaches(json!({ "allowedDomains": ["a.example.com"] })), (false, 0));
    for allowed in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(reaches(json!({ "allowedDomains": [allowed] })), (true, 0), "{allowed}");
    }
    assert_eq!(reaches(json!("ask")), (false, 1));
}
