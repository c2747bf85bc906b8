//! Streams of a remote server: responses, unsolicited messages, and streams that never end.

use super::fake_server::{FakeServer, ReceivedRequest, Responder, said};
use super::world;
use crate::client::TIMEOUT;
use crate::world::eventually;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn is_call(asked: &ReceivedRequest) -> bool {
    asked.method() == "tools/call"
}

fn result(asked: &ReceivedRequest, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": said(text) })
}

fn progress(n: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": "t", "progress": n } })
}

#[test]
fn stream_delivers_notifications_before_the_response() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    far.set_behaviour(|asked, back| {
        if is_call(asked) {
            back.begin_events();
            back.raw(b": welcome\n\n");
            back.event("1", &progress(1));
            // Sends one message split into several `data` lines, as the specification allows.
            back.raw(
                b"data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/tools/list_changed\"}\n\n",
            );
            back.event("2", &result(asked, "done"));
        }
        is_call(asked)
    });
    let id = client.begin_call("say", json!({ "text": "x" }));
    let heard: Vec<Value> = (0..3).map(|_| client.wait_for(|_| true)).collect();
    assert_eq!(heard[0]["params"]["progress"], 1);
    assert_eq!(heard[1]["method"], "notifications/tools/list_changed");
    assert_eq!((&heard[2]["id"], &heard[2]["result"]), (&json!(id), &said("done")));
}

#[test]
fn token_echoed_by_server_is_redacted() {
    let far = FakeServer::start();
    let token = "tok3n-of-the-remote-server";
    let headers = json!({ "Authorization": format!("Bearer {token}"), "X-Team": "blue" });
    let world = world(&json!({ "url": far.url(), "headers": headers }));
    let mut client = world.connect("far");
    far.set_behaviour(move |asked, back| {
        let got = asked.header("authorization").to_owned();
        if is_call(asked) && asked.body["params"]["arguments"]["text"] == "stream" {
            back.begin_events();
            back.event("1", &result(asked, &format!("you sent {got} for blue")));
        } else if is_call(asked) {
            back.json(&result(asked, &format!("you sent {got} for blue")));
        }
        is_call(asked)
    });
    for text in ["stream", "message"] {
        assert_eq!(client.say(text).ok(), "you sent Bearer [secret] for blue");
    }
    assert!(!world.log().contains(token));
}

#[test]
fn broken_stream_resumes_after_last_event_id() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    let call = Arc::new(std::sync::Mutex::new(Value::Null));
    far.set_behaviour(move |asked, back| {
        if is_call(asked) {
            *call.lock().unwrap() = result(asked, "done");
            back.begin_events();
            back.raw(b"retry: 10\n");
            back.event("e-1", &progress(1));
            return true;
        }
        match asked.header("last-event-id") {
            "e-1" => {
                back.begin_events();
                back.event("e-2", &progress(2))
            }
            "e-2" => {
                back.begin_events();
                back.event("e-3", &call.lock().unwrap())
            }
            _ => false,
        }
    });
    assert_eq!(client.say("x").ok(), "done");
    assert_eq!(far.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

#[test]
fn unsolicited_server_messages_are_received() {
    let far = FakeServer::start();
    far.set_behaviour(|asked, back| {
        if asked.verb == "GET" {
            back.begin_events();
            back.event("1", &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            // Sends until the client closes the connection.
            while back.raw(b": still here\n\n") {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        asked.verb == "GET"
    });
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    client.wait_for(|message| message["method"] == "notifications/tools/list_changed");
    client.say("x").ok();
    client.hang_up();
}

#[test]
fn server_requests_on_a_stream_are_answered() {
    let far = FakeServer::start();
    far.set_behaviour(|asked, back| {
        if is_call(asked) {
            back.begin_events();
            back.event("1", &json!({ "jsonrpc": "2.0", "id": "a-1", "method": "ping" }));
            back.event("2", &json!({ "jsonrpc": "2.0", "id": "a-2", "method": "roots/list" }));
            back.event("3", &result(asked, "done"));
        }
        is_call(asked)
    });
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    client.say("x").ok();
    let answer =
        |id: &str| far.asked().iter().find(|asked| asked.body["id"] == id).map(|asked| asked.body.clone());
    eventually("both are answered", TIMEOUT, || answer("a-1").is_some() && answer("a-2").is_some());
    assert_eq!(answer("a-1").unwrap()["result"], json!({}));
    assert_eq!(answer("a-2").unwrap()["result"], json!({ "roots": [] }), "the user's paths are not sent");
}

#[test]
fn endless_streams_do_not_block_others() {
    let far = FakeServer::start();
    let (open, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, until) = (open.clone(), stop.clone());
    far.set_behaviour(move |asked, back| {
        let is_endless = asked.verb == "GET" || asked.body["params"]["arguments"]["text"] == "endless";
        if is_endless {
            back.begin_events();
            count.fetch_add(1, Ordering::Relaxed);
            endless(back, &until);
        }
        is_endless
    });
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    let calls: Vec<u64> = (0..20).map(|_| client.begin_call("say", json!({ "text": "endless" }))).collect();
    eventually("all streams are open", TIMEOUT, || open.load(Ordering::Relaxed) == 21);
    assert_eq!(client.say("beside").ok(), r#"{"text":"beside"}"#);
    // Cancelling a call closes its stream, because its result is no longer needed.
    for id in calls {
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        );
    }
    client.say("after").ok();
    let told = || far.methods().iter().filter(|method| *method == "notifications/cancelled").count();
    eventually("the server receives the cancellations", TIMEOUT, || told() == 20);
    client.hang_up();
    eventually("the session ends", TIMEOUT, || far.methods().contains(&"DELETE".to_owned()));
    stop.store(true, Ordering::Relaxed);
}

fn endless(back: &mut Responder, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) && back.raw(b": nothing\n\n") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn requests_over_per_server_limit_are_refused() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    let stop = Arc::new(AtomicBool::new(false));
    let until = stop.clone();
    far.set_behaviour(move |asked, back| {
        if is_call(asked) {
            back.begin_events();
            endless(back, &until);
        }
        is_call(asked)
    });
    for _ in 0..128 {
        client.begin_call("say", json!({ "text": "x" }));
    }
    client.say("one more").refused("128 requests to the server are already pending");
    stop.store(true, Ordering::Relaxed);
    for _ in 0..128 {
        client.next_outcome().1.refused("before it was complete");
    }
    far.behave_correctly();
    client.say("y").ok();
}
