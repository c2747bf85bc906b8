//! A restarted server receives everything that the client sent to its previous process before it receives a call.

use crate::client::TIMEOUT;
use crate::reference::Files;
use crate::scripted;
use crate::scripted_user::Next;
use crate::world::eventually;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};

#[test]
fn restarted_server_gets_the_original_handshake() {
    let world = scripted::world(
        r#"
n = number()
for m in messages():
    method = m["method"]
    if method == "initialize":
        time.sleep(0.2)
        greet(m)
    elif method == "tools/call":
        if m["params"]["name"] == "die": sys.exit(3)
        answer(m, json.dumps(heard))
    elif "id" in m:
        heard.append(json.dumps(m["params"], sort_keys=True))
        say(id=m["id"], result={})
"#,
    );
    let mut client = world.connect("hostile");
    for level in ["debug", "warning"] {
        client.request("logging/setLevel", json!({ "level": level }));
    }
    for uri in ["memo://a", "memo://b"] {
        client.request("resources/subscribe", json!({ "uri": uri }));
    }
    client.request("resources/unsubscribe", json!({ "uri": "memo://a" }));
    client.plain("die").refused("the server stopped before it answered: exit status 3");
    let heard: Vec<String> = serde_json::from_str(client.plain("heard").ok()).unwrap();
    let told = heard.iter().filter(|said| !said.starts_with("notifications/roots")).collect::<Vec<_>>();
    assert_eq!(
        told,
        [
            "initialize",
            "notifications/initialized",
            "logging/setLevel",
            r#"{"level": "warning"}"#,
            "resources/subscribe",
            r#"{"uri": "memo://b"}"#,
            "tools/call"
        ]
    );
}

#[test]
fn server_exiting_during_repeated_handshake_is_restarted_once() {
    let world = scripted::world(
        r#"
n = number()
for m in messages():
    if m["method"] == "initialize":
        if n == 2: sys.exit(4)
        greet(m)
    elif m["method"] == "tools/call":
        if m["params"]["name"] == "die": sys.exit(3)
        answer(m, str(n) + " " + " ".join(heard))
"#,
    );
    let mut client = world.connect("hostile");
    client.plain("die").refused("the server stopped before it answered");
    let heard = client.plain("heard");
    assert_eq!(heard.ok(), "3 initialize notifications/initialized tools/call");
    let record = world.log();
    assert_eq!(record.matches("reinitializing the server hostile: exit status 4").count(), 1, "{record}");
}

#[test]
fn server_always_exiting_during_handshake_is_a_clear_error() {
    let world = scripted::world(
        r#"
for m in messages():
    sys.stderr.write("no database\n")
    sys.exit(5)
"#,
    );
    let mut client = world.start("hostile");
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    for _ in 0..2 {
        let answer = client.request("initialize", params.clone());
        let message = answer["error"]["message"].as_str().unwrap();
        let expected = "the server `hostile` is not running: exit status 5; its last line on standard error: `no database`";
        assert_eq!(message, expected);
    }
}

#[test]
fn restart_by_revocation_during_handshake_still_answers_initialize() {
    let world = scripted::world(
        r#"
held = None
try:
    held = open(os.path.expanduser("~/docs/secret.txt"))
except OSError:
    pass
for m in messages():
    if m["method"] == "initialize":
        if held:
            # It is heard of by that file only, and never answers.
            open("holds", "w").close()
            continue
        greet(m)
    elif m["method"] == "tools/call":
        answer(m, " ".join(heard))
"#,
    );
    let secret = world.file("docs/secret.txt", "secret");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Hour));
    let mut first = world.connect("hostile");
    first.open(&secret).ok();
    first.hang_up();
    eventually("the server exits", TIMEOUT, || world.sessions().is_empty());

    let mut client = world.start("hostile");
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let greeting = client.begin("initialize", params);
    eventually("the session starts", TIMEOUT, || world.sessions().len() == 1);
    let holds = world.sandbox().join("holds");
    eventually("the server holds the file", TIMEOUT, || holds.exists());
    assert_eq!(world.revoke_only_grant().len(), 1);
    let answer: Value = client.answer(greeting);
    assert_eq!(answer["result"]["serverInfo"]["name"], "scripted", "{answer}");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(client.plain("heard").ok(), "initialize notifications/initialized tools/call");
}

#[test]
fn first_call_of_every_session_follows_roots_notification() {
    let world = Files::Reference.world(|_| {});
    for _ in 0..12 {
        let mut client = world.connect("filesystem");
        client.write("note.txt".as_ref(), "mine").ok();
    }
}
