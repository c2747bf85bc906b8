//! Conversations: what a client says, what the core says, and what each of them hears.

use super::front::Front;
use super::ways::ForCore;
use crate::wire::{Outgoing, meta_key};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A front with what comes out of it on both sides.
struct Talk {
    front: Front,
    for_core: UnboundedReceiver<ForCore>,
    client: Vec<Value>,
}

impl Talk {
    fn new() -> Self {
        let (to_core, for_core) = unbounded_channel();
        Self { front: Front::new(to_core, None), for_core, client: Vec::new() }
    }

    /// A talk in which the core was greeted and everything about it read.
    fn greeted(capabilities: &Value) -> Self {
        let mut talk = Self::new();
        talk.client_says(&request(&json!(0), "server/discover", json!({}), capabilities));
        let greeting = talk.core_hears();
        assert_eq!(greeting[0]["method"], "initialize", "{greeting:?}");
        let server = json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "s", "version": "1" },
            "capabilities": { "tools": {}, "logging": {}, "tasks": {}, "resources": { "subscribe": true } } });
        talk.core_says(&json!({ "jsonrpc": "2.0", "id": greeting[0]["id"], "result": server }));
        assert_eq!(talk.core_hears()[0]["method"], "notifications/initialized");
        talk.client_hears();
        talk
    }

    fn client_says(&mut self, message: &Value) {
        self.client_says_line(message.to_string().into_bytes());
    }

    fn client_says_line(&mut self, line: Vec<u8>) {
        self.front.hear(line, None, &mut |line| self.client.push(read(&line)));
    }

    fn core_says(&mut self, message: &Value) {
        let line = Outgoing::line(format!("{message}\n").into_bytes());
        self.front.tell(line, &mut |line| self.client.push(read(&line)));
    }

    fn client_hears(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.client)
    }

    fn core_hears(&mut self) -> Vec<Value> {
        let mut heard = Vec::new();
        while let Ok(for_core) = self.for_core.try_recv() {
            if let ForCore::Line(line, _) = for_core {
                heard.extend(serde_json::from_slice(&line).ok());
            }
        }
        heard
    }

    /// Begins a call of `ask` in which the server asks for something; the state that the client is given.
    fn asked(&mut self, id: u64) -> String {
        self.client_says(&call(id, json!({}), &elicits()));
        assert_eq!(self.core_hears()[0]["method"], "tools/call");
        self.core_says(&elicitation("a"));
        let heard = self.client_hears();
        assert_eq!(heard[0]["result"]["resultType"], "input_required", "{heard:?}");
        heard[0]["result"]["requestState"].as_str().unwrap().to_owned()
    }
}

fn read(line: &Outgoing) -> Value {
    let bytes: Vec<u8> = line.bytes().collect();
    assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1, "{}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap()
}

fn elicits() -> Value {
    json!({ "elicitation": {} })
}

fn request(id: &Value, method: &str, mut params: Value, capabilities: &Value) -> Value {
    let mut meta = params["_meta"].take();
    if meta.is_null() {
        meta = json!({});
    }
    meta[meta_key::PROTOCOL_VERSION] = json!("2026-07-28");
    meta[meta_key::CLIENT_CAPABILITIES] = capabilities.clone();
    params["_meta"] = meta;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A call of the tool `ask`, with these fields beside.
fn call(id: u64, beside: Value, capabilities: &Value) -> Value {
    let mut params = json!({ "name": "ask", "arguments": { "n": 1.0 } });
    params.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    request(&json!(id), "tools/call", params, capabilities)
}

/// A retry that brings an answer to the first question.
fn retry(id: u64, state: &str) -> Value {
    let responses = json!({ "input-1": { "action": "accept", "content": { "x": 1 } } });
    call(id, json!({ "requestState": state, "inputResponses": responses }), &elicits())
}

fn elicitation(id: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": { "message": "which?" } })
}

fn done(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [] } })
}

#[test]
fn the_core_is_greeted_for_a_client_that_never_greets() {
    let mut talk = Talk::new();
    let capabilities = json!({ "elicitation": {}, "tasks": {}, "extensions": { "io.modelcontextprotocol/tasks": {}, "x/y": {} } });
    let mut discover = request(&json!("d"), "server/discover", json!({}), &capabilities);
    discover["params"]["_meta"][meta_key::CLIENT_INFO] = json!({ "name": "c", "version": "2" });
    talk.client_says(&discover);
    talk.client_says(&request(&json!(7), "tools/list", json!({ "_meta": { "x": 1 } }), &capabilities));
    let heard = talk.core_hears();
    let expected = json!({ "protocolVersion": "2026-07-28", "clientInfo": { "name": "c", "version": "2" },
        "capabilities": { "elicitation": {}, "extensions": { "x/y": {} } } });
    assert_eq!((heard.len(), &heard[0]["method"], &heard[0]["params"]), (1, &json!("initialize"), &expected));
    let welcome = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "tasks": {} },
        "serverInfo": { "name": "s", "version": "1" }, "instructions": "be kind" });
    talk.core_says(&json!({ "jsonrpc": "2.0", "id": heard[0]["id"], "result": welcome }));
    assert_eq!(
        talk.core_hears(),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": { "_meta": { "x": 1 } } }),
        ]
    );
    let discovered = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "instructions": "be kind", "ttlMs": 0, "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } } });
    assert_eq!(talk.client_hears(), [json!({ "jsonrpc": "2.0", "id": "d", "result": discovered })]);
    talk.core_says(&json!({ "jsonrpc": "2.0", "id": 7, "result": { "tools": [] } }));
    let listed = &talk.client_hears()[0];
    assert_eq!(
        (&listed["id"], &listed["result"]["resultType"], &listed["result"]["ttlMs"]),
        (&json!(7), &json!("complete"), &json!(0))
    );
}

#[test]
fn a_core_that_refuses_the_greeting_is_heard_and_the_client_may_greet_by_itself() {
    let mut talk = Talk::new();
    talk.client_says(&request(&json!(1), "server/discover", json!({}), &json!({})));
    let id = talk.core_hears()[0]["id"].clone();
    let error = json!({ "code": -32603, "message": "the server is not running" });
    talk.core_says(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    assert_eq!(talk.client_hears(), [json!({ "jsonrpc": "2.0", "id": 1, "error": error })]);
    let greeting = json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {} });
    talk.client_says(&greeting);
    assert_eq!(talk.core_hears(), [greeting]);
    talk.core_says(&done(2));
    assert_eq!(talk.client_hears(), [done(2)]);
}

#[test]
fn a_request_without_what_every_request_has_is_refused_and_says_what_is_missing() {
    let mut talk = Talk::greeted(&json!({}));
    let good = request(&json!(1), "tools/list", json!({}), &json!({}));
    for (key, code, message) in [
        (meta_key::PROTOCOL_VERSION, -32602, "protocolVersion"),
        (meta_key::CLIENT_CAPABILITIES, -32602, "clientCapabilities"),
    ] {
        let mut bad = good.clone();
        bad["params"]["_meta"].as_object_mut().unwrap().remove(key);
        talk.client_says(&bad);
        let heard = talk.client_hears();
        assert_eq!(heard[0]["error"]["code"], code, "{heard:?}");
        assert!(heard[0]["error"]["message"].as_str().unwrap().contains(message), "{heard:?}");
    }
    let mut other = good.clone();
    other["params"]["_meta"][meta_key::PROTOCOL_VERSION] = json!("2099-01-01");
    talk.client_says(&other);
    let error = json!({ "code": -32022, "message": "Unsupported protocol version",
        "data": { "supported": ["2026-07-28"], "requested": "2099-01-01" } });
    assert_eq!(talk.client_hears()[0]["error"], error);
    talk.client_says(&json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } }));
    assert_eq!(talk.client_hears()[0]["error"]["code"], -32022);
    for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        talk.client_says(&request(&json!(1), method, json!({}), &json!({})));
        assert_eq!(talk.client_hears()[0]["error"]["code"], -32601, "{method}");
    }
    assert_eq!(talk.core_hears(), [] as [Value; 0]);
    talk.client_says(&good);
    assert_eq!(talk.core_hears()[0]["method"], "tools/list");
}

#[tokio::test]
async fn a_question_of_the_server_ends_the_request_and_the_retry_answers_it_while_the_call_goes_on() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    talk.client_says(&retry(6, &state));
    let answer = json!({ "action": "accept", "content": { "x": 1 } });
    assert_eq!(talk.core_hears(), [json!({ "jsonrpc": "2.0", "id": "a", "result": answer })]);
    talk.core_says(&done(5));
    let heard = talk.client_hears();
    assert_eq!(
        (heard.len(), &heard[0]["id"], &heard[0]["result"]["resultType"]),
        (1, &json!(6), &json!("complete"))
    );
}

#[tokio::test]
async fn a_state_opens_its_own_call_once_and_no_other() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    let refused = |talk: &mut Talk, message: &Value, because: &str| {
        talk.client_says(message);
        let heard = talk.client_hears();
        assert_eq!(heard[0]["error"]["code"], -32602, "{heard:?}");
        assert!(heard[0]["error"]["message"].as_str().unwrap().contains(because), "{heard:?}");
        assert_eq!(talk.core_hears(), [] as [Value; 0]);
    };
    let mut other = retry(6, &state);
    other["params"]["arguments"] = json!({ "n": 2.0 });
    refused(&mut talk, &other, "belongs to another call");
    let mut other = retry(6, &state);
    other["params"]["name"] = json!("other");
    refused(&mut talk, &other, "belongs to another call");
    refused(&mut talk, &retry(6, &format!("{state}x")), "is not known");
    refused(&mut talk, &retry(6, &"x".repeat(1_000_000)), "is not known");
    let mut without = retry(6, &state);
    without["params"].as_object_mut().unwrap().remove("requestState");
    refused(&mut talk, &without, "without the `requestState`");
    let mut bad = retry(6, &state);
    bad["params"]["inputResponses"]["input-1"] = json!("yes");
    refused(&mut talk, &bad, "no object for `input-1`");
    talk.client_says(&retry(6, &state));
    assert_eq!(talk.core_hears().len(), 1);
    refused(&mut talk, &retry(7, &state), "is not known");
    talk.core_says(&done(5));
    assert_eq!(talk.client_hears()[0]["id"], 6);
    refused(&mut talk, &retry(8, &state), "is not known");
}

#[tokio::test]
async fn what_is_missing_in_a_retry_is_asked_for_again_under_another_state() {
    let mut talk = Talk::greeted(&elicits());
    let first = talk.asked(5);
    // Both are open now.
    talk.core_says(&elicitation("b"));
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.client_says(&retry(6, &first));
    let heard = talk.client_hears();
    let requests = heard[0]["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["input-2"], "{heard:?}");
    let second = heard[0]["result"]["requestState"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    assert_eq!(talk.core_hears()[0]["id"], "a");
    // The call may be over before that is answered.
    talk.core_says(&done(5));
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.client_says(&call(7, json!({ "requestState": second, "inputResponses": {} }), &elicits()));
    assert_eq!(talk.client_hears()[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_asked_for_no_more_and_its_call_ends() {
    let mut talk = Talk::greeted(&elicits());
    let mut state = talk.asked(5);
    let mut rounds = 1;
    let refused = loop {
        let id = 100 + rounds;
        talk.client_says(&call(id, json!({ "requestState": state }), &elicits()));
        let heard = talk.client_hears();
        let Some(next) = heard[0]["result"]["requestState"].as_str() else { break heard };
        state = next.to_owned();
        rounds += 1;
        assert!(rounds < 100, "it never ends");
    };
    assert!(
        refused[0]["error"]["message"].as_str().unwrap().contains("asked for input 32 times"),
        "{refused:?}"
    );
    let heard = talk.core_hears();
    assert_eq!(heard[0], json!({ "jsonrpc": "2.0", "id": "a", "result": { "action": "cancel" } }));
    assert_eq!(
        (&heard[1]["method"], &heard[1]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(5))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_input_never_comes_is_ended() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    tokio::time::advance(Duration::from_secs(599)).await;
    talk.front.expire(&mut |_| panic!());
    assert_eq!(talk.core_hears(), [] as [Value; 0]);
    tokio::time::advance(Duration::from_secs(2)).await;
    talk.front.expire(&mut |_| panic!());
    let heard = talk.core_hears();
    assert_eq!(heard[0]["result"], json!({ "action": "cancel" }));
    assert_eq!(heard[1]["params"]["requestId"], 5);
    talk.client_says(&retry(6, &state));
    assert!(talk.client_hears()[0]["error"]["message"].as_str().unwrap().contains("is too old"));
}

#[tokio::test]
async fn a_client_is_asked_for_nothing_that_it_did_not_declare_and_never_outside_of_a_call() {
    let mut talk = Talk::greeted(&elicits());
    let refused = |talk: &mut Talk, message: &Value| {
        talk.core_says(message);
        assert_eq!(talk.client_hears(), [] as [Value; 0]);
        let heard = talk.core_hears();
        assert_eq!(
            (&heard[0]["id"], &heard[0]["error"]["code"]),
            (&message["id"], &json!(-32601)),
            "{heard:?}"
        );
    };
    refused(&mut talk, &elicitation("a"));
    talk.client_says(&call(5, json!({}), &json!({})));
    talk.core_hears();
    refused(&mut talk, &elicitation("a"));
    talk.client_says(&request(&json!(6), "tools/list", json!({}), &elicits()));
    talk.core_hears();
    refused(&mut talk, &elicitation("a"));
    talk.client_says(&call(7, json!({}), &elicits()));
    talk.core_hears();
    refused(
        &mut talk,
        &json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {} }),
    );
    let mut long = elicitation("a");
    long["params"]["message"] = json!("x".repeat(70_000));
    refused(&mut talk, &long);
    talk.core_says(&elicitation("a"));
    assert_eq!(talk.client_hears()[0]["id"], 7);
}

#[test]
fn a_result_of_the_server_that_asks_the_client_for_something_is_an_error() {
    let mut talk = Talk::greeted(&elicits());
    for result in [
        json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "sampling/createMessage" } } }),
        json!({ "resulttype": "input_required", "content": [] }),
        json!({ "re\u{17f}ultType": "complete" }),
        json!({ "resultType": "task" }),
        json!({ "resultType": 1 }),
        json!([]),
    ] {
        talk.client_says(&call(5, json!({}), &elicits()));
        talk.core_says(&json!({ "jsonrpc": "2.0", "id": 5, "result": result }));
        let heard = talk.client_hears();
        assert_eq!(heard[0]["error"]["code"], -32603, "{heard:?}");
    }
    let twice =
        br#"{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","resultType":"input_required"}}"#;
    talk.client_says(&call(5, json!({}), &elicits()));
    let line = Outgoing::line([twice.as_slice(), b"\n"].concat());
    talk.front.tell(line, &mut |line| talk.client.push(read(&line)));
    assert_eq!(talk.client_hears()[0]["error"]["code"], -32603);
    talk.client_says(&call(5, json!({}), &elicits()));
    talk.core_says(
        &json!({ "jsonrpc": "2.0", "id": 5, "result": { "resultType": "complete", "content": [] } }),
    );
    assert_eq!(talk.client_hears()[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn progress_goes_by_the_token_of_the_request_that_waits() {
    let mut talk = Talk::greeted(&elicits());
    talk.client_says(&call(5, json!({ "_meta": { "progressToken": 5 } }), &elicits()));
    assert_eq!(talk.core_hears()[0]["params"]["_meta"], json!({ "progressToken": 5 }));
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 5, "progress": 1 } });
    talk.core_says(&progress);
    assert_eq!(talk.client_hears(), [progress.clone()]);
    talk.core_says(&elicitation("a"));
    let state = talk.client_hears()[0]["result"]["requestState"].as_str().unwrap().to_owned();
    talk.core_says(&progress);
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    let mut again = retry(6, &state);
    again["params"]["_meta"]["progressToken"] = json!("p6");
    talk.client_says(&again);
    talk.core_says(&progress);
    assert_eq!(talk.client_hears()[0]["params"], json!({ "progressToken": "p6", "progress": 1 }));
}

#[test]
fn log_messages_are_for_requests_that_want_them() {
    let mut talk = Talk::greeted(&json!({}));
    let message = |level: &str| json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": level, "data": 1 } });
    talk.client_says(&call(5, json!({}), &json!({})));
    assert_eq!(talk.core_hears().len(), 1);
    talk.core_says(&message("error"));
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.client_says(&call(6, json!({ "_meta": { (meta_key::LOG_LEVEL): "warning" } }), &json!({})));
    let heard = talk.core_hears();
    assert_eq!(
        (&heard[0]["method"], &heard[0]["params"]),
        (&json!("logging/setLevel"), &json!({ "level": "warning" }))
    );
    assert_eq!(heard[1]["params"].get("_meta"), None);
    talk.core_says(&message("error"));
    talk.core_says(&message("info"));
    assert_eq!(talk.client_hears(), [message("error")]);
}

#[test]
fn news_go_to_whoever_listens_and_name_the_subscription() {
    let mut talk = Talk::greeted(&json!({}));
    let listen = |id: &str, wanted: Value| {
        request(&json!(id), "subscriptions/listen", json!({ "notifications": wanted }), &json!({}))
    };
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    talk.core_says(&changed);
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.client_says(&listen("l1", json!({ "toolsListChanged": true, "promptsListChanged": false })));
    let stamp = json!({ "io.modelcontextprotocol/subscriptionId": "l1" });
    let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "notifications": { "toolsListChanged": true }, "_meta": stamp } });
    assert_eq!(talk.client_hears(), [acknowledged]);
    talk.core_says(&changed);
    assert_eq!(
        talk.client_hears(),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": stamp } })
        ]
    );

    talk.client_says(&listen("l2", json!({ "resourceSubscriptions": ["memo://a", "file:///x"] })));
    let asked = talk.core_hears();
    assert_eq!(asked.iter().map(|m| &m["params"]["uri"]).collect::<Vec<_>>(), ["file:///x", "memo://a"]);
    talk.core_says(
        &json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "error": { "code": -32600, "message": "DENIED" } }),
    );
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.core_says(&json!({ "jsonrpc": "2.0", "id": asked[1]["id"], "result": {} }));
    assert_eq!(
        talk.client_hears()[0]["params"]["notifications"],
        json!({ "resourceSubscriptions": ["memo://a"] })
    );
    let updated = |uri: &str| json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } });
    talk.core_says(&updated("memo://b"));
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    talk.core_says(&updated("memo://a"));
    assert_eq!(talk.client_hears()[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "l2");

    talk.client_says(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "l2" } }),
    );
    let heard = talk.core_hears();
    assert_eq!(
        (&heard[0]["method"], &heard[0]["params"]["uri"]),
        (&json!("resources/unsubscribe"), &json!("memo://a"))
    );
    talk.core_says(&updated("memo://a"));
    assert_eq!(talk.client_hears(), [] as [Value; 0]);
    for n in 0..31 {
        talk.client_says(&listen(&format!("m{n}"), json!({})));
    }
    talk.client_hears();
    talk.client_says(&listen("m31", json!({})));
    assert!(
        talk.client_hears()[0]["error"]["message"].as_str().unwrap().contains("32 subscriptions are open")
    );
}

#[tokio::test]
async fn a_call_is_taken_back_by_the_id_of_whichever_request_waits_for_it() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    // The id is free again, and the core still has a call of it.
    talk.client_says(&call(5, json!({}), &elicits()));
    let second = talk.core_hears()[0]["id"].clone();
    assert_ne!(second, json!(5));
    talk.client_says(&retry(6, &state));
    talk.core_hears();
    talk.client_says(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6, "reason": "no" } }));
    assert_eq!(talk.core_hears()[0]["params"], json!({ "requestId": 5, "reason": "no" }));
    talk.core_says(&json!({ "jsonrpc": "2.0", "id": second, "result": { "content": [] } }));
    assert_eq!(talk.client_hears()[0]["id"], 5);
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_no_call_waiting_for_it() {
    let mut talk = Talk::greeted(&elicits());
    talk.asked(5);
    assert!(talk.front.hung_up(&mut |_| panic!()));
    assert_eq!(talk.core_hears()[1]["params"]["requestId"], 5);
}

/// One step of a conversation between a hostile client and a hostile server.
#[derive(Debug, Clone)]
enum Step {
    Client(Value),
    Raw(Vec<u8>),
    Core(Value),
    /// The last state that was given out, on the call of this argument.
    Retry(u64, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let method = prop::sample::select(vec![
        "tools/call",
        "prompts/get",
        "tools/list",
        "server/discover",
        "subscriptions/listen",
        "x",
    ]);
    let result = prop::sample::select(vec![
        json!({}),
        json!({ "resultType": "input_required" }),
        json!([]),
        json!({ "_meta": 1 }),
        json!(null),
    ]);
    let kind = prop::sample::select(vec![
        "elicitation/create",
        "sampling/createMessage",
        "roots/list",
        "ping",
        "notifications/x",
    ]);
    prop_oneof![
        (0..6_u64, method, any::<bool>()).prop_map(|(id, method, takes)| {
            let capabilities = if takes { elicits() } else { json!({}) };
            Step::Client(request(&json!(id), method, json!({ "name": "ask" }), &capabilities))
        }),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Raw),
        (0..6_u64, any::<u8>()).prop_map(|(id, n)| Step::Retry(id, n)),
        (0..9_u64, result)
            .prop_map(|(id, result)| Step::Core(json!({ "jsonrpc": "2.0", "id": id, "result": result }))),
        (0..9_u64, kind)
            .prop_map(|(id, method)| Step::Core(json!({ "jsonrpc": "2.0", "id": id, "method": method }))),
        (1..5_u64).prop_map(|n| Step::Core(
            json!({ "jsonrpc": "2.0", "id": format!("ironcurtain:{n}"), "result": { "capabilities": {} } })
        )),
    ]
}

proptest! {
    /// However both sides behave: the client is never asked but under a state of ours, each state works once, and every request of
    /// the client has one answer at most while it is open.
    #[test]
    fn a_hostile_client_and_a_hostile_server_get_nothing_twice(steps in prop::collection::vec(step(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let mut talk = Talk::new();
        let mut states: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Client(message) => talk.client_says(&message),
                Step::Raw(bytes) => talk.client_says_line(bytes),
                Step::Core(message) => talk.core_says(&message),
                Step::Retry(id, n) => {
                    let state = states.get(usize::from(n) % states.len().max(1)).cloned().unwrap_or_default();
                    talk.core_hears();
                    let mut again = call(id, json!({ "requestState": state }), &elicits());
                    again["params"].as_object_mut().unwrap().remove("arguments");
                    talk.client_says(&again);
                    let calls = talk.core_hears().into_iter().filter(|m| m["method"] == "tools/call").count();
                    prop_assert_eq!(calls, 0, "a retry is never a call of its own");
                }
            }
            for heard in talk.client_hears() {
                if heard["result"]["resultType"] == "input_required" {
                    let state = heard["result"]["requestState"].as_str().unwrap().to_owned();
                    prop_assert!(!states.contains(&state) && state.len() >= 32);
                    states.push(state);
                }
                prop_assert!(heard.get("id").is_none() || heard.get("method").is_none(), "{}", heard);
            }
        }
    }
}
