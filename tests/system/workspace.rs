//! The project that an agent is started in, and the folders that it names itself, are proposed to the person.

use crate::client::{BOUND, Client};
use crate::consent::{Next, paths};
use crate::place::Prepared;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Question, Reach, Verb};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A client that is started in this folder.
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
fn a_yes_opens_the_project_and_is_a_grant_like_any_other() {
    let world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    let mut client = connect(&world, &project.join("lib"));
    eventually("it is granted", BOUND, || world.grants().len() == 1);
    let question = world.person.asked().remove(0);
    assert_eq!((question.consequences[0].verb, question.tool.as_deref()), (Verb::WorkIn, None));
    assert_eq!(paths(&question), [project.to_str().unwrap()]);
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").ok();
    let grant = world.grants().remove(0);
    assert_eq!(
        (grant.provenance.as_str(), grant.access.join("+").as_str()),
        ("proposed workspace", "read+write")
    );
    // It is not asked again, as long as that holds.
    let mut again = connect(&world, &project);
    assert_eq!(again.read(&notes).ok(), "in the project");
    assert!(world.person.asked().is_empty());
    world.revoke_only_grant();
    again.read(&notes).refused("the user denied");
    assert!(world.audit().intact);
}

#[test]
fn a_no_is_remembered_and_can_be_taken_back() {
    let mut world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    let mut client = connect(&world, &project);
    eventually("the no is listed", BOUND, || world.grants().iter().any(|grant| grant.kind == "declined"));
    assert_eq!(world.person.asked().len(), 1);
    client.read(&notes).refused("the user denied");
    client.hang_up();
    world.person.asked();
    world.restart();
    let mut client = connect(&world, &project);
    client.read(&notes).refused("the user denied");
    assert!(world.person.asked().iter().all(|question| question.rule != "workspace"));
    client.hang_up();
    let no = world.grants().remove(0);
    assert_eq!((no.path.as_str(), no.access.len()), (project.to_str().unwrap(), 0));
    let revoked = world.request(Request::Revoke { grant: no.id });
    assert!(matches!(revoked, Reply::Revoked { .. }), "{revoked:?}");
    world.person.will(Next::Allow(Reach::ProjectToRead, Lifetime::Session));
    let mut client = connect(&world, &project);
    eventually("it is granted", BOUND, || world.grants().iter().any(|grant| grant.access == ["read"]));
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").refused("the user denied");
}

#[test]
fn the_home_is_not_proposed_and_a_project_outside_of_it_is() {
    let world = world();
    world.file(".git/HEAD", "ref: refs/heads/main");
    let notes = world.file("docs/notes.txt", "x");
    for folder in [world.home.person.clone(), world.path("docs"), Path::new("/").to_owned()] {
        let mut client = connect(&world, &folder);
        client.read(&notes).refused("the user denied");
        let asked = world.person.asked();
        assert!(asked.iter().all(|question| question.rule != "workspace"), "{}: {asked:?}", folder.display());
    }
    // The allowed twin.
    let project = outside(&world);
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Session));
    let mut client = connect(&world, &project);
    eventually("it is granted", BOUND, || world.grants().len() == 1);
    assert_eq!(paths(&world.person.asked()[0]), [project.to_str().unwrap()]);
    client.write(&project.join("new.txt"), "new").ok();
}

#[test]
fn what_the_policy_denies_is_not_proposed() {
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
    eventually("reading is proposed", BOUND, || world.person.count() == 1);
    let question = world.person.asked().remove(0);
    assert_eq!(question.offers.iter().map(|offer| offer.reach).collect::<Vec<_>>(), [Reach::ProjectToRead]);
    let no_reading = rule("no-reading", json!({ "roles": ["read-path"] }), "deny");
    let world = World::with(policy(json!([no_reading, asks])));
    let project = outside(&world);
    let _client = connect(&world, &project);
    let why = format!("{} is not proposed: the policy denies it", project.display());
    eventually("its log says why", BOUND, || logs(&world).contains(&why));
    assert_eq!(world.person.count(), 0);
}

#[test]
fn a_folder_that_the_client_names_is_proposed_as_its_word_and_opens_nothing_before_a_yes() {
    let world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    std::os::unix::fs::symlink(&project, world.path("link")).unwrap();
    let mut client = connect(&world, Path::new("/"));
    // Nothing waits for the client's answer, nor for the person's.
    client.read(&notes).refused("the user denied");
    world.person.asked();
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    tell_roots(&mut client, json!([{ "uri": uri(&world.path("link")), "name": "nothing to worry about" }]));
    eventually("it is granted", BOUND, || world.grants().len() == 1);
    let question = workspace_questions(&world).remove(0);
    assert_eq!(paths(&question), [project.to_str().unwrap()]);
    assert_eq!(question.reason, "the agent says it works in this folder; IronCurtain cannot confirm it");
    assert_eq!(question.consequences[0].note.as_deref(), Some("unverified, only the agent says so"));
    client.write(&project.join("new.txt"), "new").ok();
    assert_eq!(world.grants()[0].provenance, "proposed workspace");
    // It is asked once for each folder, however often the client says that they have changed.
    let other = world.file("src/other/a.txt", "other");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    world.person.will(Next::Deny);
    let named = [&project, other.parent().unwrap()].map(|folder| json!({ "uri": uri(folder) }));
    tell_roots(&mut client, json!(named));
    eventually("the new one is proposed", BOUND, || world.grants().len() == 2);
    let asked = workspace_questions(&world);
    assert_eq!(asked.iter().flat_map(paths).collect::<Vec<_>>(), [world.path("src/other").to_str().unwrap()]);
    client.hang_up();
    // Both answers are remembered.
    let mut client = connect(&world, Path::new("/"));
    tell_roots(&mut client, json!(named));
    world.person.will(Next::Deny);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    tell_roots(&mut client, json!([{ "uri": uri(&outside(&world)) }]));
    eventually("a third one is proposed", BOUND, || world.grants().len() == 3);
    assert_eq!(workspace_questions(&world).len(), 1);
    assert!(world.audit().intact);
}

#[test]
fn a_folder_that_the_client_names_and_was_started_in_is_confirmed() {
    let world = world();
    let folder = world.path("src/app/lib");
    std::fs::remove_dir_all(world.path("src/app/.git")).unwrap();
    let mut client = connect(&world, &folder);
    tell_roots(&mut client, json!([{ "uri": uri(&folder) }]));
    eventually("it is proposed", BOUND, || world.person.count() == 1);
    let question = workspace_questions(&world).remove(0);
    assert_eq!(question.reason, "the agent says it works in this folder, and was started there");
    assert_eq!(question.consequences[0].note, None);
}

#[test]
fn what_a_client_may_not_name_is_refused_by_its_reason_and_asks_nobody() {
    let world = world();
    let file = world.path("src/app/lib/notes.txt");
    world.file(".ssh/id", "key");
    let home = world.home.person.clone();
    let mut client = connect(&world, Path::new("/"));
    let named = [
        (uri(Path::new("/")), "it is or contains your home folder"),
        (uri(&home), "it is or contains your home folder"),
        (uri(&home.join(".ssh")), "it contains or is inside a protected folder"),
        (uri(&world.home.config), "it contains or is inside a protected folder"),
        (uri(Path::new("/etc")), "it is one of the system's own folders"),
        (uri(&file), "it is not an existing folder"),
        (uri(&home.join("gone")), "it is not an existing folder"),
        (format!("file://elsewhere{}", home.display()), "it is on another machine, `elsewhere`"),
        (format!("{}/src/../..", uri(&home)), "is not in canonical form"),
        ("https://example.org/".to_owned(), "it is not a `file` URI"),
    ];
    let roots: Vec<Value> = named.iter().map(|(uri, _)| json!({ "uri": uri })).collect();
    tell_roots(&mut client, json!(roots));
    for (uri, why) in &named {
        let is_said = |line: &str| line.contains(why) && (line.contains(uri) || line.contains(&uri[7..]));
        eventually(&format!("{uri}: {why}"), BOUND, || logs(&world).lines().any(is_said));
    }
    assert_eq!(workspace_questions(&world).len(), 0);
    // The allowed twin.
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    tell_roots(&mut client, json!([{ "uri": uri(&world.path("src/app")) }]));
    eventually("it is proposed", BOUND, || workspace_questions(&world).len() == 1);
}

#[test]
fn a_client_that_answers_nonsense_or_names_thousands_of_folders_is_served_on() {
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
        (json!({ "result": { "roots": [], "x": "x".repeat(300_000) } }), "at most 262144 are accepted"),
    ] {
        answer_roots(&mut client, answer);
        eventually(told, BOUND, || logs(&world).contains(told));
        client.read(&notes).refused("the user denied");
        client.send(&changed);
    }
    answer_roots(&mut client, json!({ "result": { "roots": named } }));
    eventually("as many are proposed as may be", BOUND, || {
        world.grants().iter().filter(|grant| grant.kind == "declined").count() >= 4
    });
    eventually("the others are told of", BOUND, || logs(&world).contains("9996 folders more"));
    client.read(&notes);
}

/// A project that is not in the person's home.
fn outside(world: &World) -> PathBuf {
    let project = world.home.person.parent().unwrap().join("srv/app");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    project.canonicalize().unwrap()
}

fn uri(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// Waits until the client is asked for its roots, and answers with these.
fn tell_roots(client: &mut Client, roots: Value) {
    answer_roots(client, json!({ "result": { "roots": roots } }));
}

fn answer_roots(client: &mut Client, mut answer: Value) {
    let asked = client.wait_for(|message| message["method"] == "roots/list");
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = asked["id"].clone();
    client.send(&answer);
}

/// The questions about workspaces since the last look.
fn workspace_questions(world: &World) -> Vec<Question> {
    world.person.asked().into_iter().filter(|question| question.rule == "workspace").collect()
}

/// The logs of all sessions.
fn logs(world: &World) -> String {
    let sessions = std::fs::read_dir(world.home.sessions()).into_iter().flatten().flatten();
    sessions.filter_map(|session| std::fs::read_to_string(session.path().join("session.log")).ok()).collect()
}
