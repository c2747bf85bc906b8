//! A server that asks its client for something, and the states by which the client's retries find their calls.

use super::*;
use std::time::Duration;

#[tokio::test]
async fn a_question_of_the_server_ends_the_request_and_the_retry_answers_it_while_the_call_goes_on() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    talk.client_sends(&retry(6, &state));
    let answer = json!({ "action": "accept", "content": { "x": 1 } });
    assert_eq!(talk.session_receives(), [json!({ "jsonrpc": "2.0", "id": "a", "result": answer })]);
    talk.session_sends(&done(5));
    let heard = talk.client_receives();
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
        talk.client_sends(message);
        let heard = talk.client_receives();
        assert_eq!(heard[0]["error"]["code"], -32602, "{heard:?}");
        assert!(heard[0]["error"]["message"].as_str().unwrap().contains(because), "{heard:?}");
        assert_eq!(talk.session_receives(), [] as [Value; 0]);
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
    talk.client_sends(&retry(6, &state));
    assert_eq!(talk.session_receives().len(), 1);
    refused(&mut talk, &retry(7, &state), "is not known");
    talk.session_sends(&done(5));
    assert_eq!(talk.client_receives()[0]["id"], 6);
    refused(&mut talk, &retry(8, &state), "is not known");
}

#[tokio::test]
async fn what_is_missing_in_a_retry_is_asked_for_again_under_another_state() {
    let mut talk = Talk::greeted(&elicits());
    let first = talk.asked(5);
    // Both are open now.
    talk.session_sends(&elicitation("b"));
    assert_eq!(talk.client_receives(), [] as [Value; 0]);
    talk.client_sends(&retry(6, &first));
    let heard = talk.client_receives();
    let requests = heard[0]["result"]["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["input-2"], "{heard:?}");
    let second = heard[0]["result"]["requestState"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    assert_eq!(talk.session_receives()[0]["id"], "a");
    // The call may be over before that is answered.
    talk.session_sends(&done(5));
    assert_eq!(talk.client_receives(), [] as [Value; 0]);
    talk.client_sends(&call(7, json!({ "requestState": second, "inputResponses": {} }), &elicits()));
    assert_eq!(talk.client_receives()[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_asked_for_no_more_and_its_call_ends() {
    let mut talk = Talk::greeted(&elicits());
    let mut state = talk.asked(5);
    let mut rounds = 1;
    let refused = loop {
        let id = 100 + rounds;
        talk.client_sends(&call(id, json!({ "requestState": state }), &elicits()));
        let heard = talk.client_receives();
        let Some(next) = heard[0]["result"]["requestState"].as_str() else { break heard };
        state = next.to_owned();
        rounds += 1;
        assert!(rounds < 100, "it never ends");
    };
    assert!(
        refused[0]["error"]["message"].as_str().unwrap().contains("asked for input 32 times"),
        "{refused:?}"
    );
    let heard = talk.session_receives();
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
    talk.conversation.expire(&mut |_| panic!());
    assert_eq!(talk.session_receives(), [] as [Value; 0]);
    tokio::time::advance(Duration::from_secs(2)).await;
    talk.conversation.expire(&mut |_| panic!());
    let heard = talk.session_receives();
    assert_eq!(heard[0]["result"], json!({ "action": "cancel" }));
    assert_eq!(heard[1]["params"]["requestId"], 5);
    talk.client_sends(&retry(6, &state));
    assert!(talk.client_receives()[0]["error"]["message"].as_str().unwrap().contains("is too old"));
}

#[tokio::test]
async fn a_client_is_asked_for_nothing_that_it_did_not_declare_and_never_outside_of_a_call() {
    let mut talk = Talk::greeted(&elicits());
    let refused = |talk: &mut Talk, message: &Value| {
        talk.session_sends(message);
        assert_eq!(talk.client_receives(), [] as [Value; 0]);
        let heard = talk.session_receives();
        assert_eq!(
            (&heard[0]["id"], &heard[0]["error"]["code"]),
            (&message["id"], &json!(-32601)),
            "{heard:?}"
        );
    };
    refused(&mut talk, &elicitation("a"));
    talk.client_sends(&call(5, json!({}), &json!({})));
    talk.session_receives();
    refused(&mut talk, &elicitation("a"));
    talk.client_sends(&request(&json!(6), "tools/list", json!({}), &elicits()));
    talk.session_receives();
    refused(&mut talk, &elicitation("a"));
    talk.client_sends(&call(7, json!({}), &elicits()));
    talk.session_receives();
    refused(
        &mut talk,
        &json!({ "jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {} }),
    );
    let mut long = elicitation("a");
    long["params"]["message"] = json!("x".repeat(70_000));
    refused(&mut talk, &long);
    talk.session_sends(&elicitation("a"));
    assert_eq!(talk.client_receives()[0]["id"], 7);
}

#[tokio::test]
async fn a_call_is_taken_back_by_the_id_of_whichever_request_waits_for_it() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    // The id is free again, and the core still has a call of it.
    talk.client_sends(&call(5, json!({}), &elicits()));
    let second = talk.session_receives()[0]["id"].clone();
    assert_ne!(second, json!(5));
    talk.client_sends(&retry(6, &state));
    talk.session_receives();
    talk.client_sends(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6, "reason": "no" } }));
    assert_eq!(talk.session_receives()[0]["params"], json!({ "requestId": 5, "reason": "no" }));
    talk.session_sends(&json!({ "jsonrpc": "2.0", "id": second, "result": { "content": [] } }));
    assert_eq!(talk.client_receives()[0]["id"], 5);
}

#[tokio::test]
async fn a_late_error_about_a_call_that_was_taken_back_is_not_the_answer_to_a_later_one_of_its_id() {
    let mut talk = Talk::greeted(&elicits());
    let state = talk.asked(5);
    talk.client_sends(&call(5, json!({}), &elicits()));
    let later = talk.session_receives()[0]["id"].clone();
    talk.client_sends(&retry(6, &state));
    talk.client_sends(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 6 } }),
    );
    let error =
        |id: Value| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": "DENIED" } });
    talk.session_sends(&error(json!(5)));
    assert_eq!(talk.client_receives(), [] as [Value; 0]);
    talk.session_sends(&error(later));
    assert_eq!(talk.client_receives(), [error(json!(5))]);
    // About a line that was no message.
    talk.session_sends(&error(json!(7)));
    assert_eq!(talk.client_receives(), [error(json!(7))]);
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_no_call_waiting_for_it() {
    let mut talk = Talk::greeted(&elicits());
    talk.asked(5);
    assert!(talk.conversation.hung_up(&mut |_| panic!()));
    assert_eq!(talk.session_receives()[1]["params"]["requestId"], 5);
}
