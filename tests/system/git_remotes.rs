//! Git remotes are judged by the URL that git would use, which is resolved only in granted folders.

use crate::client::{Client, Outcome};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// Creates a test environment in which the server's `echo` tool is annotated as one that pushes to a remote.
fn world() -> World {
    World::with(|prepared| {
        hostile::install(prepared);
        let arguments = json!({ "path": ["read-path"], "remote": ["git-remote-url"] });
        let tool = json!({ "toolName": "echo", "serverName": "hostile", "args": arguments });
        let annotations = json!({ "servers": { "hostile": { "tools": [tool] } } });
        let rule = |name: &str, condition, then: &str| json!({ "name": name, "if": condition, "then": then });
        let rules = json!({ "rules": [
            rule("work", json!({ "paths": { "roles": ["read-path"], "within": "~/work" } }), "allow"),
            rule("forge", json!({ "domains": { "roles": ["git-remote-url"], "allowed": ["github.com"] } }), "allow"),
            rule("closed", json!({ "paths": { "roles": ["read-path"], "within": "~/closed" } }), "deny"),
            rule("rest", json!({}), "escalate"),
        ] });
        let policy = prepared.home.policy();
        std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
        std::fs::write(policy.join("compiled-policy.json"), rules.to_string()).unwrap();
    })
}

fn repository(world: &World, below: &str, url: &str) {
    let path = world.path(below);
    std::fs::create_dir_all(&path).unwrap();
    git(&path, &["init", "-q", "-b", "main"]);
    git(&path, &["remote", "add", "origin", url]);
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    assert!(git.arg("-C").arg(folder).args(arguments).status().unwrap().success());
}

fn push(client: &mut Client, path: &Path, remote: &str) -> Outcome {
    client.call("echo", json!({ "path": path, "remote": remote }))
}

#[test]
fn git_remote_name_is_judged_by_its_url() {
    let world = world();
    repository(&world, "work/app", "https://github.com/acme/app.git");
    let repo = world.path("work/app");
    let mut client = world.connect("hostile");
    assert!(push(&mut client, &repo, "origin").ok().contains("origin"));
    push(&mut client, &repo, "https://github.com/acme/other").ok();
    assert_eq!(world.user.asked(), []);
    git(&repo, &["remote", "set-url", "--push", "origin", "https://evil.example/x"]);
    push(&mut client, &repo, "origin").refused("the user denied this call");
    git(&repo, &["config", "url.https://evil.example/.insteadOf", "https://github.com/acme/"]);
    push(&mut client, &repo, "https://github.com/acme/other").refused("the user denied this call");
    let asked = format!("{:?}", world.user.asked());
    assert!(
        asked.contains("https://evil.example/x") && asked.contains("https://evil.example/other"),
        "{asked}"
    );
}

#[test]
fn git_remote_changed_during_question_asks_again() {
    let world = world();
    repository(&world, "work/app", "https://one.example/x");
    let repo = world.path("work/app");
    let mut client = world.connect("hostile");
    let change = {
        let repo = repo.clone();
        move |_: &_| git(&repo, &["remote", "set-url", "origin", "https://two.example/x"])
    };
    world.user.will(Next::After(Box::new(change), Box::new(Next::Allow(Reach::Paths, Lifetime::Once))));
    push(&mut client, &repo, "origin").refused("the user denied this call");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(format!("{:?}", asked[0]).contains("https://one.example/x"));
    assert!(format!("{:?}", asked[1]).contains("https://two.example/x"));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    push(&mut client, &repo, "origin").ok();
}

#[test]
fn git_config_outside_granted_paths_is_not_read() {
    let world = world();
    repository(&world, "closed/app", "https://github.com/closed/app");
    repository(&world, ".ssh/app", "https://github.com/secret/app");
    std::fs::create_dir_all(world.path("work/app")).unwrap();
    let mut client = world.connect("hostile");
    push(&mut client, &world.path("closed/app"), "origin").refused("rule `closed`");
    push(&mut client, &world.path(".ssh/app"), "origin").refused("structural-protected-path");
    for elsewhere in ["closed/app", ".ssh/app"] {
        let target = world.path(elsewhere).join(".git");
        world.file("work/app/.git", &format!("gitdir: {}\n", target.display()));
        push(&mut client, &world.path("work/app"), "origin").refused("the user denied this call");
        let asked = format!("{:?}", world.user.asked());
        assert!(asked.contains("in a location that may not be read"), "{asked}");
        assert!(!asked.contains("github.com"), "{asked}");
    }
    repository(&world, "work/lib", "https://github.com/acme/lib");
    world.file("work/app/.git", &format!("gitdir: {}\n", world.path("work/lib/.git").display()));
    push(&mut client, &world.path("work/app"), "origin").ok();
}
