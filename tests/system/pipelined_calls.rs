//! Calls that arrive in one write run concurrently. Each is ordered, recorded and cancelled separately.

use crate::client::TIMEOUT;
use crate::hostile;
use crate::world::eventually;
use serde_json::{Value, json};

/// Number of calls in one write. Exceeds the maximum number of concurrent calls.
const CALLS: u64 = 50;

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn calls_from_one_write_are_answered_in_order_and_recorded() {
    in_their_order(true);
}

#[test]
fn calls_received_before_server_start_are_answered_in_order() {
    in_their_order(false);
}

fn in_their_order(is_there: bool) {
    let world = hostile::world();
    let mut client = world.start("hostile");
    if is_there {
        client.handshake();
        client.plain("now").ok();
    } else {
        let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
        client.request("initialize", greeting);
    }
    let (denied, silent) = (1020, 1030);
    let mut messages: Vec<Value> = (1000..1000 + CALLS)
        .map(|id| match id {
            _ if id == denied => call(id, "open", &json!({ "path": "/etc/shadow" })),
            _ if id == silent => call(id, "slow", &json!({})),
            _ => call(id, "now", &json!({})),
        })
        .collect();
    // The cancellation is in the same write.
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": silent } });
    messages.insert(31, cancelled);
    if !is_there {
        // The server accepts no call before this notification.
        messages.push(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }
    let piece: String = messages.iter().map(|message| format!("{message}\n")).collect();
    client.send_raw(piece.as_bytes());
    let answered: Vec<u64> = (0..CALLS - 1)
        .map(|_| {
            let (id, outcome) = client.next_outcome();
            if id == denied {
                drop(outcome.refused("structural-protected-path").to_owned())
            } else {
                outcome.ok();
            }
            id
        })
        .filter(|id| *id != denied)
        .collect();
    let expected: Vec<u64> = (1000..1000 + CALLS).filter(|id| ![denied, silent].contains(id)).collect();
    assert_eq!(answered, expected);
    // A server that was already running received exactly one cancellation.
    let heard: Value = serde_json::from_str(client.plain("heard").ok()).unwrap();
    let told =
        heard.as_array().unwrap().iter().filter(|told| told["method"] == "notifications/cancelled").count();
    assert!(told == 1 || !is_there, "{heard}");

    let entries = || -> Vec<Value> {
        let log = world.log();
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of_piece = |entry: &&Value| {
        let id = entry["requestId"].as_str().and_then(|id| id.parse().ok());
        entry["event"] == "decision" && id.is_some_and(|id: u64| (1000..1000 + CALLS).contains(&id))
    };
    eventually("every result is recorded", TIMEOUT, || {
        let entries = entries();
        let decided = entries.iter().filter(of_piece).filter(|e| e["policyDecision"]["status"] == "allow");
        decided.into_iter().all(|decision| {
            let ends = |entry: &&Value| {
                entry["of"] == decision["seq"] || entry["summary"] == "the client cancelled the call"
            };
            entries.iter().any(|entry| ends(&entry))
        })
    });
    let entries = entries();
    let decided: Vec<&str> =
        entries.iter().filter(of_piece).filter_map(|e| e["requestId"].as_str()).collect();
    let allowed = |id: &u64| is_there || ![denied, silent].contains(id);
    let of_all: Vec<String> = (1000..1000 + CALLS).filter(allowed).map(|id| id.to_string()).collect();
    // A denied call does not wait for the server. A call that was cancelled before the server started has no
    // decision.
    let decided: Vec<&str> = decided.into_iter().filter(|id| is_there || *id != denied.to_string()).collect();
    assert_eq!(decided, of_all);
    assert!(world.audit().intact);
}
