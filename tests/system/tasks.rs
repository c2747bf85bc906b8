//! Tasks: calls whose result the client fetches later.

use crate::client::{Client, Outcome, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::servers;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::path::Path;

fn begin(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    client.request("tools/call", json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } }))
}

/// Fetches the result of the hostile server's only task.
fn fetch(client: &mut Client) -> Outcome {
    let id = client.begin("tasks/result", json!({ "taskId": "t" }));
    client.outcome(id)
}

/// Connects a client and starts a task that reads a file, which the user allows once.
fn allowed(world: &World, secret: &Path) -> Client {
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let made = begin(&mut client, "open", &json!({ "path": secret }));
    assert_eq!(made["result"]["task"]["taskId"], "t", "{made}");
    assert_eq!(world.user.asked().len(), 1);
    client
}

#[test]
fn task_needs_approval_like_a_call_and_returns_its_result() {
    let world = World::with(|prepared| {
        servers::install(prepared, "everything");
        let rule = json!({ "name": "ask", "description": "ask", "principle": "ask", "if": {}, "then": "escalate", "reason": "ask" });
        let policy = json!({ "schemaVersion": 1, "rules": [rule] }).to_string();
        std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    });
    let mut client = world.connect("everything");
    let arguments = json!({ "topic": "curtains" });
    let refused = begin(&mut client, "simulate-research-query", &arguments);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the user denied this call"), "{refused}");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let made = begin(&mut client, "simulate-research-query", &arguments);
    let task = &made["result"]["task"]["taskId"];
    assert!(task.is_string(), "{made}");
    let all = client.request("tasks/list", json!({}));
    assert_eq!(all["result"]["tasks"][0]["taskId"], *task, "{all}");
    let state = client.request("tasks/get", json!({ "taskId": task }));
    assert_eq!(state["result"]["status"], "working", "{state}");
    let result = client.request("tasks/result", json!({ "taskId": task }));
    let text = result["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("# Research Report: curtains"), "{result}");
    assert!(world.log().contains("tasks/result"), "the task is not recorded");
    let unknown = client.request("tasks/cancel", json!({ "taskId": "no-such-task" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn one_time_task_grant_lasts_until_result_is_fetched() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = allowed(&world, &secret);
    let state = client.request("tasks/get", json!({ "taskId": "t" }));
    assert_eq!(state["result"]["status"], "working");
    assert_eq!(world.grants().len(), 1);
    assert_eq!(fetch(&mut client).ok(), "secret");
    eventually("the grant ends", TIMEOUT, || world.grants().is_empty());
    eventually("the file is unmounted", TIMEOUT, || fetch(&mut client).text.contains("os error 2)"));
}

#[test]
fn one_time_task_grant_can_be_revoked() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = allowed(&world, &secret);
    world.revoke_only_grant();
    fetch(&mut client).refused("os error 2)");
}

#[test]
fn one_time_task_grant_ends_with_session() {
    let world = hostile::world();
    let client = allowed(&world, &world.file("docs/secret.txt", "secret"));
    assert_eq!(world.grants().len(), 1);
    client.hang_up();
    eventually("the grant ends", TIMEOUT, || world.sessions().is_empty() && world.grants().is_empty());
}
