//! The main workflow: an agent requests a file, the user allows it, the kernel mounts it, and the user revokes it.

use crate::reference::Files;
use crate::scripted_user::{Next, paths};
use ironcurtain_consent::{Lifetime, Reach, Verb};
use serde_json::json;

/// Runs each test with both the embedded server and the reference server.
macro_rules! with_both_servers {
    ($($story:ident),* $(,)?) => {
        mod embedded {
            $(#[test] fn $story() { super::$story(crate::reference::Files::Embedded); })*
        }
        mod reference {
            $(#[test] fn $story() { super::$story(crate::reference::Files::Reference); })*
        }
    };
}

with_both_servers! {
    session_folder_needs_no_approval,
    one_time_approval_is_used_once,
    session_folder_grant_covers_reads_only,
    new_file_write_is_approved_once,
    denied_closed_and_unanswered_calls_never_reach_server,
    credentials_and_own_files_are_denied_for_every_tool,
}

fn session_folder_needs_no_approval(files: Files) {
    let world = files.world(|_| {});
    let mut client = world.connect("filesystem");
    let note = world.sandbox().join("note.txt");
    client.write(&note, "mine").ok();
    assert_eq!(client.read(&note).ok(), "mine");
    assert_eq!(client.read("note.txt".as_ref()).ok(), "mine");
    assert_eq!(world.user.asked(), []);
    assert_eq!(std::fs::read_to_string(note).unwrap(), "mine");
}

fn one_time_approval_is_used_once(files: Files) {
    let world = files.world(|_| {});
    let secret = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&secret).ok(), "the report");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].consequences[0].verb, paths(&asked[0])),
        (Verb::Read, vec![secret.to_str().unwrap()])
    );
    assert_eq!(asked[0].consequences[0].note.as_deref(), Some("10 bytes"));
    assert!(asked[0].sandboxed);
    client.read(&secret).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
    assert!(world.audit().intact);
}

fn session_folder_grant_covers_reads_only(files: Files) {
    let world = files.world(|_| {});
    let (one, two) = (world.file("docs/one.txt", "1"), world.file("docs/deep/two.txt", "2"));
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.read(&one).ok(), "1");
    assert_eq!(client.read(&two).ok(), "2");
    assert_eq!(world.user.asked().len(), 1);
    client.write(&one, "changed").refused("the user denied this call");
    assert_eq!(world.user.asked()[0].consequences[0].verb, Verb::Overwrite);
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "1");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.write(&one, "changed").ok();
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "changed");
}

fn new_file_write_is_approved_once(files: Files) {
    let world = files.world(|_| {});
    let new = world.path("docs/new/deep.txt");
    std::fs::create_dir(world.path("docs/new")).unwrap();
    let mut client = world.connect("filesystem");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.write(&new, "fresh").ok();
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "fresh");
    assert_eq!(world.user.asked()[0].consequences[0].note.as_deref(), Some("new file, 5 bytes"));
}

fn denied_closed_and_unanswered_calls_never_reach_server(files: Files) {
    let world = files.world(|w| {
        let settings = r#"{"questionDeadlineSeconds":1,"denialHoldsSeconds":0}"#;
        std::fs::write(w.home.config.join("config.json"), settings).unwrap();
    });
    let secret = world.file("docs/report.txt", "the report");
    let mut client = world.connect("filesystem");
    client.read(&secret).refused("the user denied this call");
    world.user.will(Next::Close);
    client.read(&secret).refused("closed without an answer");
    world.user.will(Next::Ignore);
    client.read(&secret).refused("did not answer within 1 s");
    let outcomes = world.activity().iter().filter(|e| e.event == "outcome").count();
    assert_eq!(outcomes, 0, "no call reached the server");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&secret).ok(), "the report");
}

fn credentials_and_own_files_are_denied_for_every_tool(files: Files) {
    let world = files.world(|_| {});
    let key = world.file(".ssh/id_ed25519", "key");
    let mut client = world.connect("filesystem");
    let audit = world.home.audit().join("audit.jsonl");
    for path in [&key, &audit, &world.home.config.join("mcp-servers.json"), &world.home.socket] {
        client.read(path).refused("structural-protected-path");
        client.write(path, "x").refused("structural-protected-path");
        let to = world.sandbox().join("stolen");
        client
            .call("move_file", json!({ "source": path, "destination": to }))
            .refused("structural-protected-path");
    }
    for folder in [world.home.user_home.clone(), world.home.state.clone()] {
        client.call("directory_tree", json!({ "path": folder })).refused("structural-protected-path");
        client.call("list_directory", json!({ "path": folder })).refused("structural-protected-path");
    }
    assert_eq!(world.user.asked(), []);
    let fine = world.file("docs/fine.txt", "fine");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&fine).ok(), "fine");
}
