//! Tests of input requests, and of the states in the client's retries.

use super::*;
use std::time::Duration;

#[tokio::test]
async fn an_input_request_ends_the_request_and_the_retry_continues_the_call() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(5);
    conversation.client_sends(&retry(6, &state));
    let answer = json!({ "action": "accept", "content": { "x": 1 } });
    assert_eq!(conversation.session_receives(), [json!({ "jsonrpc": "2.0", "id": "a", "result": answer })]);
    conversation.session_sends(&done(5));
    let received = conversation.client_receives();
    assert_eq!(
        (received.len(), &received[0]["id"], &received[0]["result"]["resultType"]),
        (1, &json!(6), &json!("complete"))
    );
}

#[tokio::test]
async fn a_request_state_is_valid_once_for_its_own_call() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(5);
    let refused = |conversation: &mut TestConversation, message: &Value, because: &str| {
        conversation.client_sends(message);
        let received = conversation.client_receives();
        assert_eq!(received[0]["error"]["code"], -32602, "{received:?}");
        assert!(received[0]["error"]["message"].as_str().unwrap().contains(because), "{received:?}");
        assert_eq!(conversation.session_receives(), [] as [Value; 0]);
    };
    let mut other = retry(6, &state);
    other["params"]["arguments"] = json!({ "n": 2.0 });
    refused(&mut conversation, &other, "belongs to another call");
    let mut other = retry(6, &state);
    other["params"]["name"] = json!("other");
    refused(&mut conversation, &other, "belongs to another call");
    refused(&mut conversation, &retry(6, &format!("{state}x")), "is unknown");
    refused(&mut conversation, &retry(6, &"x".repeat(1_000_000)), "is unknown");
    let mut without = retry(6, &state);
    without["params"].as_object_mut().unwrap().remove("requestState");
    refused(&mut conversation, &without, "require the `requestState`");
    let mut bad = retry(6, &state);
    bad["params"]["inputResponses"]["input-1"] = json!("yes");
    refused(&mut conversation, &bad, "no object for `input-1`");
    conversation.client_sends(&retry(6, &state));
    assert_eq!(conversation.session_receives().len(), 1);
    refused(&mut conversation, &retry(7, &state), "is unknown");
    conversation.session_sends(&done(5));
    assert_eq!(conversation.client_receives()[0]["id"], 6);
    refused(&mut conversation, &retry(8, &state), "is unknown");
}

#[tokio::test]
async fn missing_input_is_requested_again_with_a_new_state() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let first = conversation.call_until_input_required(5);
    // Both requests are open now.
    conversation.session_sends(&elicitation("b"));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.client_sends(&retry(6, &first));
    let received = conversation.client_receives();
    let requests = received[0]["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["input-2"], "{received:?}");
    let second = received[0]["result"]["requestState"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    assert_eq!(conversation.session_receives()[0]["id"], "a");
    // The call may complete before the input arrives.
    conversation.session_sends(&done(5));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.client_sends(&call(
        7,
        json!({ "requestState": second, "inputResponses": {} }),
        &elicitation_capability(),
    ));
    assert_eq!(conversation.client_receives()[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn too_many_input_requests_end_the_call() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let mut state = conversation.call_until_input_required(5);
    let mut rounds = 1;
    let refused = loop {
        let id = 100 + rounds;
        conversation.client_sends(&call(id, json!({ "requestState": state }), &elicitation_capability()));
        let received = conversation.client_receives();
        let Some(next) = received[0]["result"]["requestState"].as_str() else { break received };
        state = next.to_owned();
        rounds += 1;
        assert!(rounds < 100, "the call must end");
    };
    assert!(
        refused[0]["error"]["message"].as_str().unwrap().contains("asked for input 32 times"),
        "{refused:?}"
    );
    let received = conversation.session_receives();
    assert_eq!(received[0], json!({ "jsonrpc": "2.0", "id": "a", "result": { "action": "cancel" } }));
    assert_eq!(
        (&received[1]["method"], &received[1]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(5))
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_without_its_input_times_out() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(5);
    tokio::time::advance(Duration::from_secs(599)).await;
    conversation.conversation.expire(&mut |_| panic!());
    assert_eq!(conversation.session_receives(), [] as [Value; 0]);
    tokio::time::advance(Duration::from_secs(2)).await;
    conversation.conversation.expire(&mut |_| panic!());
    let received = conversation.session_receives();
    assert_eq!(received[0]["result"], json!({ "action": "cancel" }));
    assert_eq!(received[1]["params"]["requestId"], 5);
    conversation.client_sends(&retry(6, &state));
    assert!(conversation.client_receives()[0]["error"]["message"].as_str().unwrap().contains("has expired"));
}

#[tokio::test]
async fn only_declared_capabilities_are_requested_and_only_during_a_call() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let refused = |conversation: &mut TestConversation, message: &Value| {
        conversation.session_sends(message);
        assert_eq!(conversation.client_receives(), [] as [Value; 0]);
        let received = conversation.session_receives();
        assert_eq!(
            (&received[0]["id"], &received[0]["error"]["code"]),
            (&message["id"], &json!(-32601)),
            "{received:?}"
        );
    };
    refused(&mut conversation, &elicitation("a"));
    conversation.client_sends(&call(5, json!({}), &json!({})));
    conversation.session_receives();
    refused(&mut conversation, &elicitation("a"));
    conversation.client_sends(&request(&json!(6), "tools/list", json!({}), &elicitation_capability()));
    conversation.session_receives();
    refused(&mut conversation, &elicitation("a"));
    conversation.client_sends(&call(7, json!({}), &elicitation_capability()));
    conversation.session_receives();
    refused(
        &mut conversation,
        &json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {} }),
    );
    let mut long = elicitation("a");
    long["params"]["message"] = json!("x".repeat(70_000));
    refused(&mut conversation, &long);
    conversation.session_sends(&elicitation("a"));
    assert_eq!(conversation.client_receives()[0]["id"], 7);
}

#[tokio::test]
async fn a_call_is_cancelled_by_the_id_of_its_pending_request() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(5);
    // The client reuses the id while the core is still handling the call.
    conversation.client_sends(&call(5, json!({}), &elicitation_capability()));
    let second = conversation.session_receives()[0]["id"].clone();
    assert_ne!(second, json!(5));
    conversation.client_sends(&retry(6, &state));
    conversation.session_receives();
    conversation.client_sends(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6, "reason": "no" } }));
    assert_eq!(conversation.session_receives()[0]["params"], json!({ "requestId": 5, "reason": "no" }));
    conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": second, "result": { "content": [] } }));
    assert_eq!(conversation.client_receives()[0]["id"], 5);
}

#[tokio::test]
async fn a_late_error_of_a_cancelled_call_does_not_answer_a_new_one_with_its_id() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    let state = conversation.call_until_input_required(5);
    conversation.client_sends(&call(5, json!({}), &elicitation_capability()));
    let later = conversation.session_receives()[0]["id"].clone();
    conversation.client_sends(&retry(6, &state));
    conversation.client_sends(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6 } }),
    );
    let error =
        |id: Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": "DENIED" } });
    conversation.session_sends(&error(json!(5)));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.session_sends(&error(later));
    assert_eq!(conversation.client_receives(), [error(json!(5))]);
    // An error response to an invalid line is forwarded.
    conversation.session_sends(&error(json!(7)));
    assert_eq!(conversation.client_receives(), [error(json!(7))]);
}

#[tokio::test]
async fn a_disconnected_client_leaves_no_pending_call() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    conversation.call_until_input_required(5);
    assert!(conversation.conversation.handle_eof(&mut |_| panic!()));
    assert_eq!(conversation.session_receives()[1]["params"]["requestId"], 5);
}
