//! Requests other than tool calls. They are judged like tool calls, and only known fields are forwarded.

use crate::client::Client;
use crate::hostile;
use crate::scripted_user::{Next, paths};
use crate::world::World;
use ironcurtain_consent::{Lifetime, Question, Reach, TextPart};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// Returns the requests with this method that the server has received.
fn received_requests(client: &mut Client, method: &str) -> Vec<String> {
    let all = client.plain("requested").ok().to_owned();
    let of = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["method"] == method;
    all.lines().filter(of).map(str::to_owned).collect()
}

/// Returns a question's verb and object.
fn headline(question: &Question) -> String {
    let line = &question.consequences[0];
    let text = |piece: &TextPart| match piece {
        TextPart::Fixed(text) => (*text).to_owned(),
        TextPart::Path(text) | TextPart::Untrusted(text) => text.clone(),
    };
    format!("{} {}", line.verb.word(), line.object.iter().map(text).collect::<String>())
}

fn problem(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

/// Returns one request of each kind, with the headline of its question.
fn one_of_each_kind() -> [(&'static str, Value, &'static str); 4] {
    let of = json!({ "type": "ref/prompt", "name": "greet" });
    [
        (
            "resources/read",
            json!({ "uri": "notes://1" }),
            "read the resource notes://1 of the server hostile",
        ),
        (
            "resources/subscribe",
            json!({ "uri": "notes://1" }),
            "follow the resource notes://1 of the server hostile",
        ),
        (
            "prompts/get",
            json!({ "name": "greet", "arguments": { "who": "5 kB of text" } }),
            "call the prompt greet of the server hostile",
        ),
        (
            "completion/complete",
            json!({ "ref": of, "argument": { "name": "who", "value": "5 kB of text" } }),
            "complete the argument who of the prompt greet of the server hostile",
        ),
    ]
}

#[test]
fn unsandboxed_server_gets_no_unapproved_request() {
    let world = hostile::contained(&json!(false));
    let mut client = world.connect("hostile");
    for (method, params, expected) in one_of_each_kind() {
        let refused = client.request(method, params.clone());
        assert_eq!(problem(&refused), "DENIED: the user denied this call.", "{method}");
        let asked = world.user.asked();
        assert_eq!((asked.len(), headline(&asked[0]).as_str()), (1, expected));
        let shown = serde_json::to_string(&asked[0].arguments).unwrap();
        let text = params["arguments"]["who"].as_str().or(params["argument"]["value"].as_str());
        assert!(text.is_none_or(|text| shown.contains(text)), "{shown}");
        assert_eq!(received_requests(&mut client, method), Vec::<String>::new());
        world.user.will(Next::Allow(Reach::Tool, Lifetime::Session));
        assert_eq!(client.request(method, params.clone())["result"], json!({}), "{method}");
        assert_eq!(client.request(method, params.clone())["result"], json!({}), "{method}");
        assert_eq!((world.user.asked().len(), received_requests(&mut client, method).len()), (1, 2));
    }
    // The approval applies only to the other resource.
    let other = client.request("resources/read", json!({ "uri": "notes://2" }));
    assert_eq!(problem(&other), "DENIED: the user denied this call.");
    assert!(world.audit().intact);
}

#[test]
fn file_resource_is_judged_by_its_path() {
    let world = hostile::contained(&json!(false));
    let key = world.file("keys/key.txt", "a private key");
    let link = world.path("docs/link.txt");
    std::fs::create_dir_all(world.path("docs")).unwrap();
    symlink(&key, &link).unwrap();
    let mut client = world.connect("hostile");
    let read = |client: &mut Client, path: &std::path::Path| {
        client.request("resources/read", json!({ "uri": format!("file://{}", path.display()) }))
    };
    assert_eq!(problem(&read(&mut client, &key)), "DENIED: the user denied this call.");
    assert_eq!(paths(&world.user.asked()[0]), [key.to_str().unwrap()]);
    let log = world.home.audit().join("audit.jsonl");
    assert!(problem(&read(&mut client, &log)).contains("(rule `structural-protected-path`)"));
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    let got = read(&mut client, &link);
    assert_eq!(got["result"]["contents"][0]["text"], "a private key", "{got}");
    assert_eq!(got["result"]["contents"][0]["uri"], format!("file://{}", key.display()));
    // The grant applies to the file, so a tool that opens the file can use it too.
    assert_eq!(client.open(&key).ok(), "a private key");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn requests_to_confined_server_are_free_and_recorded() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    for (method, params, _) in one_of_each_kind() {
        assert_eq!(client.request(method, params)["result"], json!({}), "{method}");
        let recorded = format!(r#""method":"{method}","#);
        assert!(world.log().contains(&recorded), "{method} is not recorded");
    }
    assert_eq!(world.user.count(), 0);
    // The server has no access to this file.
    let uri = json!({ "uri": format!("file://{}", secret.display()) });
    assert_eq!(problem(&client.request("resources/read", uri.clone())), "DENIED: the user denied this call.");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.request("resources/read", uri)["result"]["contents"][0]["text"], "secret");
}

#[test]
fn rule_can_match_a_request() {
    let world = World::with(|prepared| {
        hostile::install(prepared);
        let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
        let rules = [
            rule("no-prompts", json!({ "tool": ["prompts/get"] }), "deny"),
            rule("ask-resources", json!({ "tool": ["resources/read"] }), "escalate"),
            rule("all", json!({}), "allow"),
        ];
        let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
        std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    });
    let mut client = world.connect("hostile");
    let prompt = client.request("prompts/get", json!({ "name": "greet" }));
    assert_eq!(
        problem(&prompt),
        "DENIED: no-prompts (rule `no-prompts`). Asking again will not change this."
    );
    client.request("resources/read", json!({ "uri": "notes://1" }));
    assert_eq!(world.user.asked().len(), 1);
    assert_eq!(client.request("resources/subscribe", json!({ "uri": "notes://1" }))["result"], json!({}));
}

#[test]
fn server_receives_only_known_fields() {
    let world = hostile::world();
    let mut client = world.connect("hostile");
    let secret = "s".repeat(60_000);
    let meta = json!({ "claudecode/toolUseId": secret, "progressToken": 7 });
    let call = json!({ "name": "echo", "arguments": { "n": 1 }, "_meta": meta });
    assert!(client.request("tools/call", call)["result"].is_object());
    assert!(client.request("prompts/get", json!({ "name": "p", "_meta": meta }))["result"].is_object());
    assert!(client.request("tools/list", json!({ "_meta": meta }))["result"].is_object());
    for method in ["tools/call", "prompts/get", "tools/list"] {
        let got = received_requests(&mut client, method).join("\n");
        assert!(got.contains(r#""_meta":{"progressToken":7}"#) && !got.contains("sss"), "{method}");
    }
    assert!(world.log().contains("dropped from `_meta`: `claudecode/toolUseId`"));
    for field in ["extra", "inputResponses", "requestState"] {
        let refused = client.request("tools/call", json!({ "name": "echo", field: secret }));
        assert!(problem(&refused).starts_with(&format!("unknown field `{field}` in `params`")), "{refused}");
    }
    for (method, params, because) in [
        (
            "tools/list",
            json!({ "cursor": "a secret" }),
            "`params.cursor` must be a value that this server issued",
        ),
        (
            "tasks/get",
            json!({ "taskId": "a secret" }),
            "`params.taskId` must be a value that this server issued",
        ),
        ("logging/setLevel", json!({ "level": "a secret" }), "`params.level` must be one of debug, info"),
        ("resources/unsubscribe", json!({ "uri": "a:secret" }), "`a:secret` is not subscribed to"),
    ] {
        let refused = client.request(method, params);
        assert!(problem(&refused).starts_with(because), "{refused}");
    }
    let all = client.plain("requested").ok().to_owned();
    assert!(!all.contains("secret") && !all.contains("sss"), "{all}");
    // Valid requests succeed.
    client.request("resources/subscribe", json!({ "uri": "notes://1" }));
    assert_eq!(client.request("resources/unsubscribe", json!({ "uri": "notes://1" }))["result"], json!({}));
    assert_eq!(client.request("logging/setLevel", json!({ "level": "info" }))["result"], json!({}));
    assert!(world.audit().intact);
}
