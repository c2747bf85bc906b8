//! A server that wants the client's model to answer something: the person sees it and says yes or no.

use crate::client::Client;
use crate::consent::Next;
use crate::scripted;
use crate::world::World;
use ironcurtain_daemon::consent::{Lifetime, Preview, Reach, Verb};
use serde_json::{Value, json};

/// Asks the model when `heard` is called, and answers with what it gets; `now` tells what the client can.
const SCRIPT: &str = r#"
waits, capabilities = None, None
for m in messages():
    if m.get("method") == "initialize":
        capabilities = m["params"]["capabilities"]
        greet(m)
    elif m.get("method") == "tools/call" and m["params"]["name"] == "now":
        answer(m, json.dumps(capabilities))
    elif m.get("method") == "tools/call":
        waits = m
        say(id="s", method="sampling/createMessage", params={"systemPrompt": "be brief", "maxTokens": 9,
            "messages": [{"role": "user", "content": {"type": "text", "text": "what is in the letter?"}}]})
    elif m.get("id") == "s":
        answer(waits, json.dumps(m.get("result") or m["error"]))
    elif "id" in m:
        say(id=m["id"], result={})
"#;

fn world(setting: &str) -> World {
    World::with(|prepared| {
        scripted::install(prepared, SCRIPT);
        let file = prepared.home.config.join("mcp-servers.json");
        let mut servers: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        if !setting.is_empty() {
            servers["hostile"]["sampling"] = json!(setting);
        }
        std::fs::write(&file, servers.to_string()).unwrap();
    })
}

fn connect(world: &World, capabilities: &Value) -> Client {
    let mut client = world.start("hostile");
    client.greet(capabilities);
    client
}

/// Answers as a model does.
fn model(client: &mut Client) -> Value {
    let asked = client.wait_for(|m| m["method"] == "sampling/createMessage");
    let result =
        json!({ "role": "assistant", "content": { "type": "text", "text": "a bill" }, "model": "m" });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    asked
}

#[test]
fn the_person_sees_the_whole_text_and_a_yes_lets_the_model_answer() {
    let world = world("");
    world.person.will(Next::Allow(Reach::Request, Lifetime::Once));
    let mut client = connect(&world, &json!({ "sampling": {} }));
    assert!(client.call("now", json!({})).ok().contains("\"sampling\": {}"));
    let call = client.begin_call("heard", json!({}));
    let asked = model(&mut client);
    assert_eq!(asked["params"]["messages"][0]["content"]["text"], "what is in the letter?");
    assert!(client.outcome(call).ok().contains("a bill"));
    let question = world.person.asked().remove(0);
    assert_eq!((question.consequences[0].verb, question.rule.as_str()), (Verb::AskModel, "sampling"));
    let Some(Preview::Content(text)) = &question.preview else { panic!("{question:?}") };
    assert_eq!(text, "system: be brief\nuser: what is in the letter?\nmaxTokens: 9");
    let log = world.log();
    assert!(
        log.contains("\"method\":\"sampling/createMessage\"") && log.contains("the user allowed it"),
        "{log}"
    );
    assert!(world.audit().intact);
}

#[test]
fn a_no_keeps_it_from_the_client_and_tells_the_server() {
    let world = world("ask");
    world.person.will(Next::Deny);
    let mut client = connect(&world, &json!({ "sampling": {} }));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("DENIED: the user denied it"), "{}", refused.text);
    client.call("now", json!({})).ok();
    // The next one may be allowed.
    world.person.will(Next::Allow(Reach::Request, Lifetime::Once));
    let call = client.begin_call("heard", json!({}));
    model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
}

#[test]
fn the_setting_allows_or_denies_without_a_question() {
    let allowing = world("allow");
    let mut client = connect(&allowing, &json!({ "sampling": {} }));
    let call = client.begin_call("heard", json!({}));
    model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
    assert!(allowing.person.asked().is_empty() && allowing.log().contains("`sampling` is `allow`"));

    let denying = world("deny");
    let mut client = connect(&denying, &json!({ "sampling": {} }));
    assert!(!client.call("now", json!({})).ok().contains("sampling"));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("not available through IronCurtain to this client"), "{}", refused.text);
    assert!(denying.person.asked().is_empty());
}

#[test]
fn a_client_without_a_model_is_not_asked_and_nor_is_the_person() {
    let world = world("");
    let mut client = connect(&world, &json!({}));
    assert!(!client.call("now", json!({})).ok().contains("sampling"));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("not available through IronCurtain to this client"), "{}", refused.text);
    assert!(world.person.asked().is_empty());
}
