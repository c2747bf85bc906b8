//! Tests servers with `"access": "ask"`: opening a file blocks until the user answers, and the same call then succeeds.

mod entry;
mod foreign;
mod life;

use crate::scripted;
use crate::scripted_user::{Next, paths};
use crate::test_home::Prepared;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Script of a server with tools that need no approval and open the path in the `where` argument.
const OPENS: &str = r#"
held = []
def tool(name, where, script):
    if name == "sneak": return open(where).read()
    if name == "scribble": return str(open(where, "w").write("changed"))
    if name == "clutch": held.append(open(where)); return "held"
    if name == "recall":
        held[0].seek(0)
        return held[0].read()
    if name == "run": return str(eval(script))
    if name == "environ": return " ".join(sorted(os.listdir(os.environ["HOME"])))
    return "done"

for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        try: 
            given = m["params"]["arguments"]
            answer(m, tool(m["params"]["name"], given.get("where"), given.get("script")))
        except OSError as e: answer(m, type(e).__name__ + ": " + e.strerror)
"#;

/// Creates a test environment with the server. `keys` are added to the server's entry.
fn world(keys: Value) -> World {
    World::with(|prepared| install(prepared, keys))
}

fn install(prepared: &Prepared, keys: Value) {
    let mut entry = json!({ "access": "ask" });
    entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    scripted::install_with_keys(prepared, OPENS, &entry);
}

fn eval(script: &str) -> Value {
    json!({ "where": "/", "script": script })
}

fn at(path: &Path) -> Value {
    json!({ "where": path })
}

#[test]
fn a_file_is_asked_about_granted_listed_and_revoked() {
    let world = world(json!({}));
    let notes = world.file("notes.txt", "my notes");
    let mut client = world.connect("hostile");
    // File names are visible, and using the session folder raises no question.
    assert_eq!(client.call("environ", json!({})).ok(), "docs notes.txt");
    client.call("scribble", json!({ "where": "own" })).ok();
    assert_eq!(std::fs::read_to_string(world.sandbox().join("own")).unwrap(), "changed");
    assert_eq!(world.user.count(), 0);
    // The same call succeeds after one answer, and the grant covers later calls.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    assert_eq!(client.call("sneak", at(&notes)).ok(), "my notes");
    assert_eq!(client.call("sneak", at(&notes)).ok(), "my notes");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(paths(&asked[0]), [notes.to_str().unwrap()]);
    assert_eq!(asked[0].server, "hostile");
    let with = |name: &str| asked[0].with.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
    assert_eq!(with("call in progress"), Some("sneak"));
    assert!(
        with("program, by its own name").is_some_and(|program| program.starts_with("python3")),
        "{:?}",
        asked[0].with
    );
    let grants = world.grants();
    assert_eq!(grants.len(), 1);
    assert_eq!((&*grants[0].server, &*grants[0].access), ("hostile", &["read".to_owned()][..]));
    // Revoking the grant also ends access through an open descriptor.
    client.call("clutch", at(&notes)).ok();
    assert_eq!(client.call("recall", json!({})).ok(), "my notes");
    assert_eq!(world.revoke_only_grant(), Vec::<String>::new());
    assert_eq!(client.call("recall", json!({})).ok(), "OSError: Input/output error");
    assert_eq!(client.call("sneak", at(&notes)).ok(), "PermissionError: Permission denied");
    assert_eq!(world.user.asked().len(), 1);
    // The denial holds for the rest of the session.
    assert_eq!(client.call("sneak", at(&notes)).ok(), "PermissionError: Permission denied");
    assert_eq!((world.user.count(), world.questions().denied.len()), (0, 1));
}

#[test]
fn protected_files_do_not_exist_and_other_folders_of_ours_stay_invisible() {
    let world = world(json!({}));
    world.file(".ssh/id_ed25519", "key");
    let mut client = world.connect("hostile");
    let state = world.ours().join("state");
    for hidden in
        [world.path(".ssh/id_ed25519"), state.join("audit/audit.jsonl"), world.ours().join("run/socket")]
    {
        let refused = client.call("sneak", at(&hidden));
        assert_eq!(refused.ok(), "FileNotFoundError: No such file or directory", "{}", hidden.display());
    }
    // The session folder is inside a hidden folder. In the hidden folder, only the path to the session folder is
    // visible.
    let listed = |folder: &Path| eval(&format!("os.listdir({:?})", folder.to_str().unwrap()));
    assert_eq!(client.call("run", listed(&state)).ok(), "['sessions']");
    assert_eq!(client.call("run", listed(world.sandbox().parent().unwrap())).ok(), "['sandbox']");
    let moved = format!("os.rename({0:?}, {0:?} + '2')", state.to_str().unwrap());
    assert!(client.call("run", eval(&moved)).ok().contains("Error"), "{moved}");
    assert_eq!(world.user.count(), 0);
    let other = world.file("other", "other");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.call("sneak", at(&other)).ok(), "other");
}

#[test]
fn a_cache_is_offered_as_a_whole_for_reading() {
    let world = world(json!({}));
    let model = world.file(".cache/models/small/weights", "weights");
    let other = world.file(".cache/models/large/weights", "more weights");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.call("sneak", at(&model)).ok(), "weights");
    assert_eq!(client.call("sneak", at(&other)).ok(), "more weights");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].offers[0].label, "everything in ~/.cache/models");
    assert_eq!(world.grants()[0].access, ["read"]);
    // The grant does not allow changes, and the first offer for a change covers only the file.
    assert_eq!(client.call("scribble", at(&model)).ok(), "PermissionError: Permission denied");
    let asked = world.user.asked();
    assert_eq!(asked[0].offers[0].reach, Reach::Paths);
    assert_eq!(std::fs::read_to_string(model).unwrap(), "weights");
}

#[test]
fn a_folder_that_may_be_changed_is_mounted_until_it_is_revoked() {
    let world = world(json!({}));
    let inside = world.file("docs/a", "a");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.call("scribble", at(&inside)).ok(), "7");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "changed");
    let mounted = format!("' {} ' in open('/proc/self/mountinfo').read()", world.path("docs").display());
    let mounted = eval(&mounted);
    eventually("the folder is mounted", TIMEOUT, || client.call("run", mounted.clone()).ok() == "True");
    assert_eq!(world.user.asked().len(), 1);
    // The server is restarted if it still has a file in the folder open.
    client.call("clutch", at(&inside)).ok();
    assert_eq!(world.revoke_only_grant(), [world.sessions()[0].id.clone()]);
    assert_eq!(client.call("run", mounted).ok(), "False");
    assert_eq!(client.call("sneak", at(&inside)).ok(), "PermissionError: Permission denied");
}

/// Starts a service on this computer that answers each connection. Returns its port.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_ok() {
                stream.write_all(b"alive").unwrap();
            }
        }
    });
    port
}

/// Returns a Python expression that connects to a service and evaluates to the service's response.
fn connect_to(port: u16) -> String {
    format!(
        "(lambda s: (s.sendall(b'x'), s.recv(9))[1])(__import__('socket').create_connection(('127.0.0.1', {port})))"
    )
}

#[test]
fn a_service_of_this_computer_is_asked_about_and_reached() {
    let port = service();
    let world = world(json!({ "sandbox": { "network": "ask" } }));
    let mut client = world.connect("hostile");
    let connect = connect_to(port);
    assert!(client.call("run", eval(&connect)).ok().contains("refused"));
    assert_eq!(world.user.asked().len(), 1);
    client.hang_up();
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Host, Lifetime::Session));
    assert_eq!(client.call("run", eval(&connect)).ok(), "b'alive'");
    assert_eq!(client.call("run", eval(&connect)).ok(), "b'alive'");
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(world.grants()[0].path, format!("localhost:{port}"));
    world.revoke_only_grant();
    assert!(client.call("run", eval(&connect)).ok().contains("refused"));
}
