//! Tests of hostile clients and servers.

use super::*;
use proptest::prelude::*;

#[test]
fn a_servers_input_required_result_is_an_error() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    for result in [
        json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "sampling/createMessage" } } }),
        json!({ "resulttype": "input_required", "content": [] }),
        json!({ "re\u{17f}ultType": "complete" }),
        json!({ "resultType": "task" }),
        json!({ "resultType": 1 }),
        json!([]),
    ] {
        conversation.client_sends(&call(5, json!({}), &elicitation_capability()));
        conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": 5, "result": result }));
        let received = conversation.client_receives();
        assert_eq!(received[0]["error"]["code"], -32603, "{received:?}");
    }
    let twice =
        br#"{"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","resultType":"input_required"}}"#;
    conversation.client_sends(&call(5, json!({}), &elicitation_capability()));
    let line = Outgoing::line([twice.as_slice(), b"\n"].concat());
    conversation.conversation.send(line, &mut |line| conversation.client.push(read(&line)));
    assert_eq!(conversation.client_receives()[0]["error"]["code"], -32603);
    conversation.client_sends(&call(5, json!({}), &elicitation_capability()));
    conversation.session_sends(
        &json!({ "jsonrpc": "2.0", "id": 5, "result": { "resultType": "complete", "content": [] } }),
    );
    assert_eq!(conversation.client_receives()[0]["result"]["resultType"], "complete");
}

#[test]
fn every_refusal_is_reported_with_its_request_and_reason() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(1);
    conversation.session_receives();
    let bad = |id: u64, meta: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "_meta": meta } });
    let version = meta_key::PROTOCOL_VERSION;
    let of_another = json!({ "requestState": state, "inputResponses": {}, "arguments": { "n": 2 } });
    for (request, why) in [
        (bad(2, json!({ version: "2031-01-01" })), "Unsupported protocol version"),
        (bad(3, json!({ version: "2026-07-28" })), "clientCapabilities` (an object)"),
        (bad(4, json!({})), "protocolVersion` (a string)"),
        (retry(5, "forged"), "`requestState` is unknown"),
        (call(6, of_another, &elicitation_capability()), "another call"),
        (call(7, json!({ "inputResponses": {} }), &elicitation_capability()), "require the `requestState`"),
        (request(&json!(8), "ping", json!({}), &json!({})), "`ping` does not exist in protocol version"),
        (request(&json!(9), "tasks/get", json!({ "taskId": "t" }), &json!({})), "tasks are not available"),
        (call(10, json!({ "task": { "ttl": 1 } }), &json!({})), "tasks are not available"),
    ] {
        conversation.client_sends(&request);
        let received = conversation.client_receives();
        let message = received[0]["error"]["message"].as_str().unwrap_or_else(|| panic!("{received:?}"));
        let Ok(ToSession::Refused(refused)) = conversation.for_session.try_recv() else {
            panic!("no error with: {message}")
        };
        assert_eq!(refused.why, message);
        assert!(message.contains(why), "{message}");
        assert_eq!(refused.id.as_json(), request["id"].to_string());
        assert_eq!(json!(refused.method), request["method"]);
        let params: Value = serde_json::from_str(refused.params.unwrap().get()).unwrap();
        assert_eq!(params, request["params"]);
        assert!(conversation.session_receives().is_empty(), "the core received {request}");
    }
    // A valid request is accepted.
    conversation.client_sends(&call(11, json!({}), &elicitation_capability()));
    assert!(conversation.session_receives().len() == 1 && conversation.client_receives().is_empty());
}

/// One step of a conversation between a hostile client and a hostile server.
#[derive(Debug, Clone)]
enum Step {
    Client(Value),
    Raw(Vec<u8>),
    Core(Value),
    /// Retries with the last state, for the call with this argument.
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
        (0..6_u64, method, any::<bool>()).prop_map(|(id, method, supported)| {
            let capabilities = if supported { elicitation_capability() } else { json!({}) };
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
    /// Regardless of what both sides send, input requests always carry one of our states, each state works once, and an
    /// open client request gets at most one response.
    #[test]
    fn hostile_peers_get_each_response_at_most_once(steps in prop::collection::vec(step(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let mut conversation = TestConversation::new();
        let mut states: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Client(message) => conversation.client_sends(&message),
                Step::Raw(bytes) => conversation.client_sends_line(bytes),
                Step::Core(message) => conversation.session_sends(&message),
                Step::Retry(id, n) => {
                    let state = states.get(usize::from(n) % states.len().max(1)).cloned().unwrap_or_default();
                    conversation.session_receives();
                    let mut again = call(id, json!({ "requestState": state }), &elicitation_capability());
                    again["params"].as_object_mut().unwrap().remove("arguments");
                    conversation.client_sends(&again);
                    let calls = conversation.session_receives().into_iter().filter(|m| m["method"] == "tools/call").count();
                    prop_assert_eq!(calls, 0, "a retry is never a new call");
                }
            }
            for received in conversation.client_receives() {
                if received["result"]["resultType"] == "input_required" {
                    let state = received["result"]["requestState"].as_str().unwrap().to_owned();
                    prop_assert!(!states.contains(&state) && state.len() >= 32);
                    states.push(state);
                }
                prop_assert!(received.get("id").is_none() || received.get("method").is_none(), "{}", received);
            }
        }
    }
}
