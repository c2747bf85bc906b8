//! Sampling requests from a server: the user sees each one and allows or denies it.

use crate::client::{Client, TIMEOUT};
use crate::scripted;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Preview, Reach, Verb};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};

/// Script of a server that sends a sampling request when `heard` is called, and returns the result of the request.
/// `now` returns the client's capabilities.
const SCRIPT: &str = r#"
import time
waits, capabilities = None, None
for m in messages():
    if m.get("method") == "initialize":
        capabilities = m["params"]["capabilities"]
        greet(m)
    elif m.get("method") == "tools/call" and m["params"]["name"] == "now":
        answer(m, json.dumps(capabilities))
    elif m.get("method") == "tools/call":
        waits = m
        if m["params"]["name"] == "slow":
            while not os.path.exists("go"): time.sleep(0.01)
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
    client.handshake_with(capabilities);
    client
}

/// Answers a sampling request as a model would.
fn answer_as_model(client: &mut Client) -> Value {
    let asked = client.wait_for(|m| m["method"] == "sampling/createMessage");
    let result =
        json!({ "role": "assistant", "content": { "type": "text", "text": "a bill" }, "model": "m" });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    asked
}

#[test]
fn sampling_question_shows_full_text_and_approval_reaches_the_model() {
    let world = world("");
    world.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let mut client = connect(&world, &json!({ "sampling": {} }));
    assert!(client.call("now", json!({})).ok().contains("\"sampling\": {}"));
    let call = client.begin_call("heard", json!({}));
    let asked = answer_as_model(&mut client);
    assert_eq!(asked["params"]["messages"][0]["content"]["text"], "what is in the letter?");
    assert!(client.outcome(call).ok().contains("a bill"));
    let question = world.user.asked().remove(0);
    assert_eq!((question.consequences[0].verb, question.rule.as_str()), (Verb::AskModel, "sampling"));
    let Some(Preview::Prompt(text)) = &question.preview else { panic!("{question:?}") };
    assert_eq!(text, "system: be brief\nuser: what is in the letter?\nmaxTokens: 9");
    let log = world.log();
    assert!(
        log.contains("\"method\":\"sampling/createMessage\"") && log.contains("the user allowed it"),
        "{log}"
    );
    assert!(world.audit().intact);
}

#[test]
fn denied_sampling_never_reaches_client_and_server_gets_error() {
    let world = world("ask");
    world.user.will(Next::Deny);
    let mut client = connect(&world, &json!({ "sampling": {} }));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("DENIED: the user denied it"), "{}", refused.text);
    client.call("now", json!({})).ok();
    // The user may allow the next request.
    world.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let call = client.begin_call("heard", json!({}));
    answer_as_model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
}

#[test]
fn sampling_setting_allows_or_denies_without_a_question() {
    let allowing = world("allow");
    let mut client = connect(&allowing, &json!({ "sampling": {} }));
    let call = client.begin_call("heard", json!({}));
    answer_as_model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
    assert!(allowing.user.asked().is_empty() && allowing.log().contains("`sampling` is `allow`"));

    let denying = world("deny");
    let mut client = connect(&denying, &json!({ "sampling": {} }));
    assert!(!client.call("now", json!({})).ok().contains("sampling"));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("not available through IronCurtain to this client"), "{}", refused.text);
    assert!(denying.user.asked().is_empty());
}

#[test]
fn sampling_without_client_support_asks_nobody() {
    let world = world("");
    let mut client = connect(&world, &json!({}));
    assert!(!client.call("now", json!({})).ok().contains("sampling"));
    let refused = client.call("heard", json!({}));
    assert!(refused.ok().contains("not available through IronCurtain to this client"), "{}", refused.text);
    assert!(world.user.asked().is_empty());
}

#[test]
fn sampling_approval_covers_one_request() {
    let world = world("");
    let mut clients = [(); 2].map(|()| connect(&world, &json!({ "sampling": {} })));
    let mut calls = Vec::new();
    for (n, client) in clients.iter_mut().enumerate() {
        world.user.will(Next::Ignore);
        calls.push(client.begin_call("heard", json!({})));
        // The same request raises another question.
        eventually("the question is asked", TIMEOUT, || world.user.count() == n + 1);
    }
    assert!(!world.log().contains("it waits for the answer to the same question"));
    world.user.answer_late(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
    answer_as_model(&mut clients[0]);
    assert!(clients[0].outcome(calls[0]).ok().contains("a bill"));
    assert_eq!(
        (world.questions().waiting.len(), world.user.withdrawn()),
        (1, vec![]),
        "the call keeps waiting"
    );
    world.user.answer_late(Answer::Deny { note: None, reach: DenialReach::Call });
    assert!(clients[1].outcome(calls[1]).ok().contains("DENIED: the user denied it"));
    // Allowing another request does not answer this one.
    world.user.will(Next::Ignore);
    let call = clients[0].begin_call("heard", json!({}));
    eventually("the question is asked", TIMEOUT, || world.user.count() == 3);
    let file = world.file("docs/a.txt", "a");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let opens = clients[1].begin_call("open", json!({ "path": file }));
    eventually("the grant exists", TIMEOUT, || world.grants().len() == 1);
    // The other server also requests sampling and is refused.
    clients[1].outcome(opens);
    assert_eq!(world.questions().waiting.len(), 1);
    world.user.answer_late(Answer::Deny { note: None, reach: DenialReach::Call });
    assert!(clients[0].outcome(call).ok().contains("DENIED: the user denied it"));
}

#[test]
fn unanswered_sampling_request_accepts_no_late_approval() {
    let world = World::with(|prepared| {
        scripted::install(prepared, SCRIPT);
        let settings = json!({ "questionDeadlineSeconds": 1, "denialHoldsSeconds": 0 });
        std::fs::write(prepared.home.config.join("config.json"), settings.to_string()).unwrap();
    });
    let mut client = connect(&world, &json!({ "sampling": {} }));
    world.user.will(Next::Ignore);
    assert!(client.call("heard", json!({})).ok().contains("did not answer within 1 s"));
    assert_eq!((world.user.asked().len(), world.questions().missed), (1, vec![]));
    // The next request raises a new question with its own answer.
    world.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let call = client.begin_call("heard", json!({}));
    answer_as_model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn paused_agent_gets_no_sampling_even_if_setting_allows() {
    let world = world("allow");
    let mut client = connect(&world, &json!({ "sampling": {} }));
    // The call was sent before the pause, and the sampling request after it.
    let call = client.begin_call("slow", json!({}));
    let session = world.sessions()[0].id.clone();
    eventually("the call has reached its server", TIMEOUT, || world.log().contains("\"slow\""));
    assert_eq!(world.request(Request::Pause { session: session.clone() }), Reply::Done);
    std::fs::write(world.sandbox().join("go"), "").unwrap();
    let refused = client.outcome(call);
    assert!(refused.ok().contains("the user paused this agent"), "{}", refused.text);
    assert_eq!(world.request(Request::Resume { session }), Reply::Done);
    let call = client.begin_call("heard", json!({}));
    answer_as_model(&mut client);
    assert!(client.outcome(call).ok().contains("a bill"));
    assert!(world.user.asked().is_empty());
}

#[test]
fn response_to_sampling_request_has_only_known_fields_and_counts_only_after_approval() {
    let world = world("");
    let mut client = connect(&world, &json!({ "sampling": {} }));
    world.user.will(Next::Ignore);
    let call = client.begin_call("heard", json!({}));
    eventually("approval is requested", TIMEOUT, || world.user.count() == 1);
    let text = |text: &str| {
        let block = json!({ "type": "text", "text": text, "annotations": { "note": "secret-1" } });
        json!({ "role": "assistant", "content": block, "model": "m", "_meta": { "note": "secret-2" }, "more": "secret-3" })
    };
    // The client has not received the request yet, so its response is ignored.
    client.send(&json!({ "jsonrpc": "2.0", "id": "s", "result": text("forged") }));
    // Messages from a client are handled in order.
    let ping = client.begin("ping", json!({}));
    client.answer(ping);
    world.user.answer_late(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
    let asked = client.wait_for(|m| m["method"] == "sampling/createMessage");
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": text("a bill") }));
    let outcome = client.outcome(call);
    let received = outcome.ok();
    assert!(received.contains("a bill"), "{received}");
    assert!(!received.contains("forged") && !received.contains("secret"), "{received}");
    let log = world.log();
    assert!(log.contains("dropped from the response: `content.annotations`, `_meta`, `more`"), "{log}");
}
