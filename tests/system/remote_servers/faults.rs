//! Faults of a remote server. Each is reported with advice until it is resolved.

use super::fake_server::{FakeServer, ReceivedRequest, Responder, said};
use super::{audit_entries, world};
use crate::client::TIMEOUT;
use crate::world::eventually;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn is_call(asked: &ReceivedRequest) -> bool {
    asked.method() == "tools/call"
}

/// Returns a behaviour that answers tool calls with this complete response.
fn calls(
    status: &'static str,
    headers: &'static str,
    body: &'static str,
) -> impl Fn(&ReceivedRequest, &mut Responder) -> bool {
    move |asked, back| {
        if is_call(asked) {
            back.answer(status, headers, body);
        }
        is_call(asked)
    }
}

#[test]
fn remote_http_errors_are_reported_with_advice() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url(), "headers": { "Authorization": "Bearer abc123def" } }));
    let mut client = world.connect("far");
    for (status, headers, body, told) in [
        (
            "401 Unauthorized",
            "WWW-Authenticate: Bearer\r\n",
            "",
            "did not accept the token in its entry (401); to replace the token, run: ironcurtain servers add http://",
        ),
        ("403 Forbidden", "", "", "refused access to the token in its entry (403)"),
        ("503 Service Unavailable", "Retry-After: 30\r\n", "", "(503); try again in 30 s"),
        ("429 Too Many Requests", "", "", "(429); try again later"),
        (
            "500 Oops",
            "Content-Type: application/json\r\n",
            r#"{"error":{"message":"no disk for abc123def"}}"#,
            "(500): `no disk for [secret]`",
        ),
        ("200 OK", "Content-Type: text/html\r\n", "<html>", "received a web page"),
        ("200 OK", "Content-Type: text/plain\r\n", "hello", "answered with `text/plain`"),
        (
            "200 OK",
            "Content-Type: application/json\r\n",
            r#"{"jsonrpc":"2.0","id":77777,"result":{}}"#,
            "before it was complete",
        ),
        ("202 Accepted", "", "", "refused the request (202)"),
    ] {
        far.set_behaviour(calls(status, headers, body));
        let text = client.say("x").refused(told).to_owned();
        assert!(!text.contains("abc123def"), "{text}");
        far.behave_correctly();
        client.say("y").ok();
    }
    assert!(!world.log().contains("abc123def"));
}

#[test]
fn redirects_are_not_followed() {
    let (far, other) = (FakeServer::start(), FakeServer::start());
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    for to in [other.url(), "http://169.254.169.254/latest/meta-data?x=1".to_owned()] {
        let shown = to.split('?').next().unwrap().to_owned();
        far.set_behaviour(move |asked, back| {
            if is_call(asked) {
                back.answer("307 Temporary Redirect", &format!("Location: {to}\r\n"), "");
            }
            is_call(asked)
        });
        client.say("x").refused(&format!("has moved (307) to `{shown}`, and redirects are not followed"));
    }
    assert_eq!(other.methods(), Vec::<String>::new());
    let hosts: Vec<_> = audit_entries(&world, "network").iter().map(|entry| entry["port"].clone()).collect();
    assert!(hosts.iter().all(|port| port == &json!(far.port)), "{hosts:?}");
    far.behave_correctly();
    client.say("y").ok();
}

#[test]
fn unreachable_server_fails_initialize_with_a_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = world(&json!({ "url": format!("http://{closed}/mcp") }));
    let mut client = world.start("far");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = client.request("initialize", greeting.clone());
    let told = answer["error"]["message"].as_str().unwrap();
    assert!(told.contains(&format!("`{closed}` cannot be reached")), "{told}");

    let far = FakeServer::start();
    far.set_behaviour(|_, back| {
        back.answer("401 Unauthorized", "", "");
        true
    });
    // A server with the same name but a different address is a different server and has no access to the first server's
    // state.
    super::write_entry(&world.home.config, "far", &json!({ "url": far.url() }));
    eventually("another address is suspended", TIMEOUT, || {
        let answer = world.start("far").request("initialize", greeting.clone());
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        told.contains("the server `far` is not the") && told.contains("Suspended: ")
    });
    assert!(far.asked().is_empty(), "a suspended address was connected to");
    super::write_entry(&world.home.config, "other", &json!({ "url": far.url() }));
    eventually("its entry is in force", TIMEOUT, || {
        let mut client = world.start("other");
        let answer = client.request("initialize", greeting.clone());
        answer["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .contains("wants you to log in (401); run: ironcurtain servers login other")
    });
    far.behave_correctly();
    world.connect("other");
}

#[test]
fn possibly_delivered_call_is_not_resent() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    // The server accepts the call but sends nothing, or only part of a response.
    for half in
        [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"json"]
    {
        let before = far.methods().iter().filter(|method| *method == "tools/call").count();
        far.set_behaviour(move |asked, back| {
            if is_call(asked) {
                back.raw(half);
            }
            is_call(asked)
        });
        client.say("once").refused("not sent again");
        let after = far.methods().iter().filter(|method| *method == "tools/call").count();
        assert_eq!(after, before + 1);
    }
    // The stream ends before the server has sent an event id from which the stream could be resumed.
    far.set_behaviour(|asked, back| {
        if is_call(asked) {
            back.begin_events();
        }
        is_call(asked)
    });
    client.say("once").refused("so it was not sent again");
    far.behave_correctly();
    client.say("again").ok();
}

#[test]
fn expired_remote_session_is_reinitialized_before_calls() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    client.request("logging/setLevel", json!({ "level": "debug" }));
    let forgot = Arc::new(AtomicUsize::new(1));
    far.set_behaviour(move |asked, back| {
        let forgets = is_call(asked) && forgot.swap(0, Ordering::Relaxed) == 1;
        if forgets {
            back.answer("404 Not Found", "", "");
        }
        forgets
    });
    client.say("lost").refused("has forgotten the session;");
    let before = far.methods().len();
    assert_eq!(client.say("found").ok(), r#"{"text":"found"}"#);
    // Requests are sent concurrently, so this one may arrive after the call.
    let told = || far.methods().split_off(before).contains(&"logging/setLevel".to_owned());
    eventually("the server receives its log level again", TIMEOUT, told);
    let methods = far.methods().split_off(before);
    let place =
        |method: &str| methods.iter().position(|m| m == method).unwrap_or_else(|| panic!("{methods:?}"));
    assert!(place("initialize") < place("notifications/initialized"));
    assert!(place("notifications/initialized") < place("tools/call"));
    let calls: Vec<Value> = far
        .asked()
        .iter()
        .filter(|a| is_call(a))
        .map(|a| a.body["params"]["arguments"]["text"].clone())
        .collect();
    assert_eq!(calls, ["lost", "found"], "no call ran twice");
}

#[test]
fn call_rejected_for_expired_session_is_retried_in_new_session() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    for (status, body) in [
        ("404 Not Found", ""),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
        ),
    ] {
        let (before, refuses) = (far.methods().len(), Arc::new(AtomicUsize::new(1)));
        far.set_behaviour(move |asked, back| {
            let refuses = is_call(asked) && refuses.swap(0, Ordering::Relaxed) == 1;
            if refuses {
                back.answer(status, "Content-Type: application/json\r\n", body);
            }
            refuses
        });
        assert_eq!(client.say("found").ok(), r#"{"text":"found"}"#);
        // Skips messages of the earlier session, which may still be initializing or opening its listening stream.
        let sent = far.methods().split_off(before).into_iter().skip_while(|method| method != "tools/call");
        let sent: Vec<String> = sent.filter(|method| method != "GET").collect();
        let expected = ["tools/call", "initialize", "notifications/initialized", "tools/call"];
        assert_eq!(sent, expected, "the call was not carried out before");
    }
    // Status 400 for any other reason is an error of this call only.
    let before = far.methods().len();
    far.set_behaviour(calls(
        "400 Bad Request",
        "Content-Type: application/json\r\n",
        r#"{"error":{"message":"no"}}"#,
    ));
    client.say("x").refused("refused the request (400): `no`");
    assert_eq!(far.methods().split_off(before).iter().filter(|method| *method == "initialize").count(), 0);
}

#[test]
fn busy_remote_server_is_retried_after_the_requested_delay() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    let (before, refuses) = (far.methods().len(), Arc::new(AtomicUsize::new(2)));
    far.set_behaviour(move |asked, back| {
        let left = refuses.load(Ordering::Relaxed);
        let refuses = is_call(asked) && left > 0 && refuses.swap(left - 1, Ordering::Relaxed) > 0;
        if refuses {
            let status = if left == 2 { "429 Too Many Requests" } else { "503 Service Unavailable" };
            back.answer(status, "Retry-After: 0\r\n", "");
        }
        refuses
    });
    assert_eq!(client.say("found").ok(), r#"{"text":"found"}"#);
    let calls = far.methods().split_off(before).into_iter().filter(|method| method == "tools/call");
    assert_eq!(calls.count(), 3);
}

#[test]
fn oversized_remote_message_fails_its_call_only() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    for is_stream in [false, true] {
        far.set_behaviour(move |asked, back| {
            if !is_call(asked) {
                return false;
            }
            let form = if is_stream { "text/event-stream" } else { "application/json" };
            back.raw(
                format!("HTTP/1.1 200 OK\r\nContent-Type: {form}\r\nConnection: close\r\n\r\n").as_bytes(),
            );
            if is_stream {
                back.raw(b"data: ");
            }
            let piece = vec![b'x'; 1 << 20];
            let all = (0..66).all(|_| back.raw(&piece));
            if all {
                back.raw(b"\n\n");
            }
            true
        });
        client.say("x").refused("the server's answer exceeds");
        far.behave_correctly();
        client.say("y").ok();
    }
    assert!(world.audit().intact);
}

#[test]
fn html_response_is_one_line_for_the_client() {
    let far = FakeServer::start();
    let world = world(&json!({ "url": far.url() }));
    let mut client = world.connect("far");
    far.set_behaviour(|asked, back| {
        if is_call(asked) {
            let body = serde_json::to_string_pretty(
                &json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": said("a\nb") }),
            );
            back.answer("200 OK", "Content-Type: application/json; charset=utf-8\r\n", &body.unwrap());
        }
        is_call(asked)
    });
    assert_eq!(client.say("x").ok(), "a\nb");
}
