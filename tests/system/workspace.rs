//! Questions about a workspace: the project in which an agent starts, and the folders that it reports.

use crate::client::{Client, TIMEOUT};
use crate::scripted_user::{Next, paths};
use crate::test_home::Prepared;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Question, Reach, Verb};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Connects a client with this working directory.
fn connect(world: &World, folder: &Path) -> Client {
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    shim.args(["--server", "filesystem"]).current_dir(folder);
    let mut client = Client::spawn(shim, &world.ours());
    client.handshake();
    client
}

fn world() -> World {
    let world = World::new();
    world.file("src/app/.git/HEAD", "ref: refs/heads/main");
    world.file("src/app/lib/notes.txt", "in the project");
    world
}

#[test]
fn approved_workspace_is_mounted_as_an_ordinary_grant() {
    let world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    let mut client = connect(&world, &project.join("lib"));
    eventually("the workspace is granted", TIMEOUT, || world.grants().len() == 1);
    let question = world.user.asked().remove(0);
    assert_eq!((question.consequences[0].verb, question.tool.as_deref()), (Verb::WorkIn, None));
    assert_eq!(paths(&question), [project.to_str().unwrap()]);
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").ok();
    let grant = world.grants().remove(0);
    assert_eq!(
        (grant.provenance.as_str(), grant.access.join("+").as_str()),
        ("proposed workspace", "read+write")
    );
    // The answer still applies, so no further question is asked.
    let mut again = connect(&world, &project);
    assert_eq!(again.read(&notes).ok(), "in the project");
    assert!(world.user.asked().is_empty());
    world.revoke_only_grant();
    again.read(&notes).refused("the user denied");
    assert!(world.audit().intact);
}

#[test]
fn workspace_denial_is_remembered_and_can_be_undone() {
    let mut world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    let mut client = connect(&world, &project);
    eventually("the denial is listed", TIMEOUT, || {
        world.grants().iter().any(|grant| grant.kind == "declined")
    });
    assert_eq!(world.user.asked().len(), 1);
    client.read(&notes).refused("the user denied");
    client.hang_up();
    world.user.asked();
    world.restart();
    let mut client = connect(&world, &project);
    client.read(&notes).refused("the user denied");
    assert!(world.user.asked().iter().all(|question| question.rule != "workspace"));
    client.hang_up();
    let no = world.grants().remove(0);
    assert_eq!((no.path.as_str(), no.access.len()), (project.to_str().unwrap(), 0));
    let revoked = world.request(Request::Revoke { grant: no.id });
    assert!(matches!(revoked, Reply::Revoked { .. }), "{revoked:?}");
    world.user.will(Next::Allow(Reach::ProjectToRead, Lifetime::Session));
    let mut client = connect(&world, &project);
    eventually("the workspace is granted", TIMEOUT, || {
        world.grants().iter().any(|grant| grant.access == ["read"])
    });
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").refused("the user denied");
}

#[test]
fn home_is_not_proposed_as_workspace_but_project_outside_home_is() {
    let world = world();
    world.file(".git/HEAD", "ref: refs/heads/main");
    let notes = world.file("docs/notes.txt", "x");
    for folder in [world.home.user_home.clone(), world.path("docs"), Path::new("/").to_owned()] {
        let mut client = connect(&world, &folder);
        client.read(&notes).refused("the user denied");
        let asked = world.user.asked();
        assert!(asked.iter().all(|question| question.rule != "workspace"), "{}: {asked:?}", folder.display());
    }
    // A project outside the home directory is proposed.
    let project = outside(&world);
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Session));
    let mut client = connect(&world, &project);
    eventually("the workspace is granted", TIMEOUT, || world.grants().len() == 1);
    assert_eq!(paths(&world.user.asked()[0]), [project.to_str().unwrap()]);
    client.write(&project.join("new.txt"), "new").ok();
}

#[test]
fn workspace_denied_by_policy_is_not_proposed() {
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let policy = |rules: Value| {
        move |prepared: &Prepared| {
            let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
            std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
        }
    };
    let asks = rule("ask", json!({}), "escalate");
    let no_writing = rule("no-writing", json!({ "roles": ["write-path"] }), "deny");
    let world = World::with(policy(json!([no_writing, asks])));
    let project = outside(&world);
    let _client = connect(&world, &project);
    eventually("read access is proposed", TIMEOUT, || world.user.count() == 1);
    let question = world.user.asked().remove(0);
    assert_eq!(question.offers.iter().map(|offer| offer.reach).collect::<Vec<_>>(), [Reach::ProjectToRead]);
    let no_reading = rule("no-reading", json!({ "roles": ["read-path"] }), "deny");
    let world = World::with(policy(json!([no_reading, asks])));
    let project = outside(&world);
    let _client = connect(&world, &project);
    let why = format!("{} is not proposed: the policy denies it", project.display());
    eventually("the session's log contains the reason", TIMEOUT, || logs(&world).contains(&why));
    assert_eq!(world.user.count(), 0);
}

#[test]
fn client_root_is_proposed_as_a_claim_and_mounted_only_after_approval() {
    let world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    std::os::unix::fs::symlink(&project, world.path("link")).unwrap();
    let mut client = connect(&world, Path::new("/"));
    // Calls wait neither for the client's roots nor for the user's answer.
    client.read(&notes).refused("the user denied");
    world.user.asked();
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    report_roots(&mut client, json!([{ "uri": uri(&world.path("link")), "name": "nothing to worry about" }]));
    eventually("the workspace is granted", TIMEOUT, || world.grants().len() == 1);
    let question = workspace_questions(&world).remove(0);
    assert_eq!(paths(&question), [project.to_str().unwrap()]);
    assert_eq!(question.reason, "the agent says it works in this folder; IronCurtain cannot confirm it");
    assert_eq!(question.consequences[0].note.as_deref(), Some("unverified, only the agent says so"));
    client.write(&project.join("new.txt"), "new").ok();
    assert_eq!(world.grants()[0].provenance, "proposed workspace");
    // Each folder raises at most one question, even if the client reports more changes.
    let other = world.file("src/other/a.txt", "other");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    world.user.will(Next::Deny);
    let named = [&project, other.parent().unwrap()].map(|folder| json!({ "uri": uri(folder) }));
    report_roots(&mut client, json!(named));
    eventually("the new folder is proposed", TIMEOUT, || world.grants().len() == 2);
    let asked = workspace_questions(&world);
    assert_eq!(asked.iter().flat_map(paths).collect::<Vec<_>>(), [world.path("src/other").to_str().unwrap()]);
    client.hang_up();
    // Both answers are remembered.
    let mut client = connect(&world, Path::new("/"));
    report_roots(&mut client, json!(named));
    world.user.will(Next::Deny);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    report_roots(&mut client, json!([{ "uri": uri(&outside(&world)) }]));
    eventually("a third folder is proposed", TIMEOUT, || world.grants().len() == 3);
    assert_eq!(workspace_questions(&world).len(), 1);
    assert!(world.audit().intact);
}

#[test]
fn client_root_equal_to_working_directory_is_confirmed() {
    let world = world();
    let folder = world.path("src/app/lib");
    std::fs::remove_dir_all(world.path("src/app/.git")).unwrap();
    let mut client = connect(&world, &folder);
    report_roots(&mut client, json!([{ "uri": uri(&folder) }]));
    eventually("the folder is proposed", TIMEOUT, || world.user.count() == 1);
    let question = workspace_questions(&world).remove(0);
    assert_eq!(question.reason, "the agent says it works in this folder, and was started there");
    assert_eq!(question.consequences[0].note, None);
}

#[test]
fn forbidden_client_root_is_refused_with_a_reason() {
    let world = world();
    let file = world.path("src/app/lib/notes.txt");
    world.file(".ssh/id", "key");
    let home = world.home.user_home.clone();
    let mut client = connect(&world, Path::new("/"));
    let named = [
        (uri(Path::new("/")), "it is or contains your home folder"),
        (uri(&home), "it is or contains your home folder"),
        (uri(&home.join(".ssh")), "it contains or is inside a protected folder"),
        (uri(&world.home.config), "it contains or is inside a protected folder"),
        (uri(Path::new("/etc")), "it is one of the system's own folders"),
        (uri(&file), "it does not exist or is not a folder"),
        (uri(&home.join("gone")), "it does not exist or is not a folder"),
        (format!("file://elsewhere{}", home.display()), "it is on another machine, `elsewhere`"),
        (format!("{}/src/../..", uri(&home)), "is not in canonical form"),
        ("https://example.org/".to_owned(), "it is not a `file` URI"),
    ];
    let roots: Vec<Value> = named.iter().map(|(uri, _)| json!({ "uri": uri })).collect();
    report_roots(&mut client, json!(roots));
    for (uri, why) in &named {
        let is_said = |line: &str| line.contains(why) && (line.contains(uri) || line.contains(&uri[7..]));
        eventually(&format!("{uri}: {why}"), TIMEOUT, || logs(&world).lines().any(is_said));
    }
    assert_eq!(workspace_questions(&world).len(), 0);
    // A valid root is proposed.
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    report_roots(&mut client, json!([{ "uri": uri(&world.path("src/app")) }]));
    eventually("the folder is proposed", TIMEOUT, || workspace_questions(&world).len() == 1);
}

#[test]
fn invalid_or_excessive_client_roots_do_not_stop_the_session() {
    let world = world();
    let notes = world.path("src/app/lib/notes.txt");
    let mut client = connect(&world, Path::new("/"));
    let folders: Vec<PathBuf> = (0..12).map(|n| world.file(&format!("many/{n}/x"), "")).collect();
    let mut named: Vec<Value> =
        folders.iter().map(|file| json!({ "uri": uri(file.parent().unwrap()) })).collect();
    let more = std::iter::repeat_with(|| json!({ "uri": "file:///x" })).take(10_000);
    named.extend(more);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for (answer, told) in [
        (json!({ "result": { "roots": 7 } }), "invalid answer"),
        (json!({ "error": { "code": -32601, "message": "no" } }), "the client answered with an error"),
        (json!({ "result": { "roots": [], "x": "x".repeat(300_000) } }), "the limit is 262144 bytes"),
    ] {
        answer_roots_request(&mut client, answer);
        eventually(told, TIMEOUT, || logs(&world).contains(told));
        client.read(&notes).refused("the user denied");
        client.send(&changed);
    }
    answer_roots_request(&mut client, json!({ "result": { "roots": named } }));
    eventually("the maximum number of folders is proposed", TIMEOUT, || {
        world.grants().iter().filter(|grant| grant.kind == "declined").count() >= 4
    });
    eventually("the excess folders are reported", TIMEOUT, || {
        logs(&world).contains("ignored 9996 further folders")
    });
    client.read(&notes);
}

/// Creates a project outside the user's home directory.
fn outside(world: &World) -> PathBuf {
    let project = world.home.user_home.parent().unwrap().join("srv/app");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    project.canonicalize().unwrap()
}

fn uri(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// Waits for a roots request and answers it with these roots.
fn report_roots(client: &mut Client, roots: Value) {
    answer_roots_request(client, json!({ "result": { "roots": roots } }));
}

fn answer_roots_request(client: &mut Client, mut answer: Value) {
    let asked = client.wait_for(|message| message["method"] == "roots/list");
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = asked["id"].clone();
    client.send(&answer);
}

/// Returns the questions about a workspace since the last call of this function.
fn workspace_questions(world: &World) -> Vec<Question> {
    world.user.asked().into_iter().filter(|question| question.rule == "workspace").collect()
}

/// Returns the logs of all sessions.
fn logs(world: &World) -> String {
    let sessions = std::fs::read_dir(world.home.sessions()).into_iter().flatten().flatten();
    sessions.filter_map(|session| std::fs::read_to_string(session.path().join("session.log")).ok()).collect()
}
