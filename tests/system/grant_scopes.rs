//! Grants for a whole project, and grants for a tool with fixed resources.

use crate::hostile;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Question, Reach};
use serde_json::{Value, json};

/// Creates a test environment in which all of the server's tools act on GitHub repositories.
fn tracker() -> World {
    World::with(|prepared| {
        hostile::install_contained(prepared, &json!({ "network": { "allowedDomains": ["api.github.com"] } }));
        let args = json!({ "owner": ["github-owner"], "repo": ["github-repo"], "title": ["none"] });
        let tool = |name: &str| json!({ "toolName": name, "serverName": "hostile", "args": args });
        let tools = [tool("create_issue"), tool("delete_issue"), tool("run_workflow")];
        let annotations = json!({ "servers": { "hostile": { "tools": tools } } });
        let policy = prepared.home.policy();
        std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
        std::fs::remove_file(policy.join("compiled-policy.json")).unwrap();
    })
}

/// Makes the server answer a call in an earlier session, so that it no longer counts as a new server.
fn answers_before(world: &World) {
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("create_issue", issue("app", "before")).ok();
    assert_eq!(world.user.asked().len(), 1);
    client.hang_up();
}

fn issue(repo: &str, title: &str) -> Value {
    json!({ "owner": "acme", "repo": repo, "title": title })
}

#[test]
fn lasting_tool_grant_covers_its_repository_until_revoked() {
    let mut world = tracker();
    answers_before(&world);
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Tool, Lifetime::Always));
    client.call("create_issue", issue("app", "one")).ok();
    assert_eq!(world.user.asked().len(), 1);
    let grants = world.grants();
    let [grant] = grants.as_slice() else { panic!("{grants:?}") };
    assert_eq!((grant.kind.as_str(), grant.path.as_str()), ("tool", "create_issue in acme/app"));
    assert_eq!(grant.access, ["use"]);
    client.call("create_issue", issue("app", "two")).ok();
    client.call("create_issue", issue("App", "three")).ok();
    assert_eq!(world.user.asked().len(), 0);
    for (tool, repo) in [("create_issue", "other"), ("delete_issue", "app")] {
        client.call(tool, issue(repo, "x")).refused("the user denied this call");
        assert_eq!(world.user.asked().len(), 1, "{tool} {repo}");
    }
    client.hang_up();
    world.restart();
    let mut client = world.connect("hostile");
    client.call("create_issue", issue("app", "four")).ok();
    assert_eq!(world.user.asked().len(), 0);
    world.revoke_only_grant();
    client.call("create_issue", issue("app", "five")).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn new_server_gets_no_permanent_grants() {
    let mut world = tracker();
    let always = |world: &World| -> Vec<bool> {
        let asked = world.user.asked();
        let lasts =
            |question: &Question| question.offers.iter().any(|o| o.lifetimes.contains(&Lifetime::Always));
        asked.iter().map(lasts).collect()
    };
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Tool, Lifetime::Always));
    // An answer that was not offered allows nothing.
    client.call("create_issue", issue("app", "x")).refused("the question was closed without an answer");
    world.user.will(Next::Allow(Reach::Tool, Lifetime::Session));
    client.call("create_issue", issue("app", "x")).ok();
    client.call("create_issue", issue("other", "x")).refused("the user denied this call");
    assert_eq!(always(&world), [false, false, false], "the server counts as new during its first session");
    client.hang_up();
    // The server has answered a call. The daemon remembers that across a restart.
    world.restart();
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Tool, Lifetime::Always));
    client.call("create_issue", issue("app", "x")).ok();
    assert_eq!((always(&world), world.grants().len()), (vec![true], 1));
    client.hang_up();
    // A changed command line makes the entry a different server.
    let file = world.home.config.join("mcp-servers.json");
    let mut servers: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    servers["hostile"]["args"] = json!(["--other"]);
    std::fs::write(&file, servers.to_string()).unwrap();
    world.restart();
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = world.start("hostile").request("initialize", params);
    let told = answer["error"]["message"].as_str().unwrap();
    assert!(told.contains("is not the program that you allowed before: its arguments changed"), "{told}");
}

#[test]
fn destructive_and_executing_tools_get_no_permanent_grant() {
    let world = tracker();
    answers_before(&world);
    let mut client = world.connect("hostile");
    for tool in ["delete_issue", "run_workflow"] {
        world.user.will(Next::Allow(Reach::Tool, Lifetime::Always));
        // An answer that was not offered allows nothing.
        client.call(tool, issue("app", "x")).refused("the question was closed without an answer");
        assert_eq!(world.grants(), [], "{tool}");
        world.user.will(Next::Allow(Reach::Tool, Lifetime::Session));
        // The server itself rejects this unknown tool.
        client.call(tool, issue("app", "x")).refused("no tool");
        world.revoke_only_grant();
    }
}

#[test]
fn project_grant_covers_whole_project_only() {
    let world = World::new();
    let inside = [world.file("app/src/a.rs", "a"), world.file("app/docs/b.md", "b")];
    world.file("app/.git/HEAD", "ref: refs/heads/main");
    let beside = world.file("app2/secret.txt", "s");
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::ProjectToRead, Lifetime::Session));
    client.read(&inside[0]).ok();
    client.read(&inside[1]).ok();
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(world.grants()[0].path, world.path("app").display().to_string());
    // A read grant does not allow writing.
    client.write(&inside[1], "c").refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Session));
    client.write(&inside[1], "c").ok();
    client.write(&world.path("app/new/d.md").parent().unwrap().with_extension("md"), "d").ok();
    client.read(&inside[0]).ok();
    assert_eq!(world.user.asked().len(), 1);
    for path in [&beside, &world.file("loose.txt", "l")] {
        client.read(path).refused("the user denied this call");
        assert_eq!(world.user.asked().len(), 1);
    }
}

#[test]
fn home_repository_is_not_offered_as_project() {
    let world = World::new();
    let file = world.file("docs/a.txt", "a");
    world.file(".git/HEAD", "ref: refs/heads/main");
    let mut client = world.connect("filesystem");
    client.read(&file).refused("the user denied this call");
    let asked = world.user.asked();
    let reaches: Vec<Reach> = asked[0].offers.iter().map(|offer| offer.reach).collect();
    assert_eq!(reaches, [Reach::Paths, Reach::Folders]);
}
