//! A script that uses every feature of the server.

use super::peer::Peer;
use serde_json::{Value, json};

/// Runs all steps. `has_roots` is `true` if the client declares roots.
pub fn act(peer: &mut Peer, has_roots: bool) {
    handshake_with(peer, has_roots);
    lists(peer);
    tools(peer);
    questions(peer);
    tasks(peer);
    prompts(peer);
    resources(peer);
    errors(peer);
    // The server answers this request only after it has sent its preceding notifications.
    peer.request("prompts/list", json!({}));
}

fn handshake_with(peer: &mut Peer, has_roots: bool) {
    let capabilities = json!({
        "roots": { "listChanged": true },
        "sampling": {},
        "elicitation": { "form": {}, "url": {} },
        "tasks": {
            "list": {},
            "cancel": {},
            "requests": { "sampling": { "createMessage": {} }, "elicitation": { "create": {} } },
        },
        "experimental": { "x": { "y": 1 } },
    });
    let client = json!({ "name": "comparer", "title": "Comparer", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    peer.step("initialize", "initialize", params);
    peer.tell("notifications/initialized");
    // The server has already requested the roots.
    if has_roots {
        peer.wait_for("notifications/message");
        peer.keep_asked("roots/list");
    }
}

fn lists(peer: &mut Peer) {
    let listed = peer.request("tools/list", json!({}));
    for tool in listed["result"]["tools"].as_array().unwrap() {
        peer.keep(&format!("listed {}", tool["name"].as_str().unwrap()), tool);
    }
    for method in ["ping", "prompts/list", "resources/list", "resources/templates/list"] {
        peer.step(method, method, json!({}));
    }
    peer.step("logging/setLevel", "logging/setLevel", json!({ "level": "debug" }));
}

fn tools(peer: &mut Peer) {
    let echo =
        json!({ "name": "echo", "arguments": { "message": "grüße \u{202e}" }, "_meta": { "x": [1.5] } });
    peer.step("echo", "tools/call", echo);
    peer.call("get-sum", "get-sum", json!({ "a": 1.5, "b": 2 }));
    for kind in ["error", "success", "debug"] {
        let arguments = json!({ "messageType": kind, "includeImage": true });
        peer.call(&format!("get-annotated-message {kind}"), "get-annotated-message", arguments);
    }
    peer.call("get-resource-links", "get-resource-links", json!({ "count": 3 }));
    for kind in ["Text", "Blob"] {
        let arguments = json!({ "resourceType": kind, "resourceId": 2 });
        peer.call(&format!("get-resource-reference {kind}"), "get-resource-reference", arguments);
    }
    peer.call("get-structured-content", "get-structured-content", json!({ "location": "New York" }));
    peer.call("get-tiny-image", "get-tiny-image", json!({}));
    peer.call("get-env", "get-env", json!({}));
    peer.call("get-roots-list", "get-roots-list", json!({}));
    for output in ["resource", "resourceLink"] {
        let data = "data:text/plain;base64,aGVsbG8gaGVsbG8gaGVsbG8=";
        let arguments = json!({ "name": format!("{output}.gz"), "data": data, "outputType": output });
        peer.call(&format!("gzip-file-as-resource {output}"), "gzip-file-as-resource", arguments);
    }
    peer.step(
        "trigger-long-running-operation",
        "tools/call",
        json!({
            "name": "trigger-long-running-operation",
            "arguments": { "duration": 0.2, "steps": 2 },
            "_meta": { "progressToken": "p" },
        }),
    );
    peer.call("toggle-simulated-logging on", "toggle-simulated-logging", json!({}));
    peer.call("toggle-simulated-logging off", "toggle-simulated-logging", json!({}));
}

fn questions(peer: &mut Peer) {
    peer.call("trigger-elicitation-request", "trigger-elicitation-request", json!({}));
    peer.call("trigger-elicitation-request-async", "trigger-elicitation-request-async", json!({}));
    let url = json!({ "url": "https://example.com/Open/../it", "elicitationId": "e" });
    peer.call("trigger-url-elicitation", "trigger-url-elicitation", url);
    let failing = json!({ "url": "https://example.com/", "errorPath": true });
    peer.call("trigger-url-elicitation error", "trigger-url-elicitation", failing);
    for tool in ["trigger-sampling-request", "trigger-sampling-request-async"] {
        peer.call(tool, tool, json!({ "prompt": "hello", "maxTokens": 10 }));
    }
}

fn tasks(peer: &mut Peer) {
    let arguments = json!({ "topic": "curtains", "ambiguous": true });
    let research =
        json!({ "name": "simulate-research-query", "arguments": arguments, "task": { "ttl": 60_000 } });
    let task = |made: &Value| made["result"]["task"]["taskId"].clone();
    let one = peer.step("simulate-research-query", "tools/call", research.clone());
    peer.step("tasks/get", "tasks/get", json!({ "taskId": task(&one) }));
    peer.step("tasks/list", "tasks/list", json!({}));
    let other = peer.step("simulate-research-query again", "tools/call", research.clone());
    peer.step("tasks/cancel", "tasks/cancel", json!({ "taskId": task(&other) }));
    peer.step("tasks/result", "tasks/result", json!({ "taskId": task(&one) }));
    peer.step("tasks/get unknown", "tasks/get", json!({ "taskId": "none" }));
    let at_once = json!({ "name": "simulate-research-query", "arguments": { "topic": "x" } });
    peer.step("simulate-research-query without a task", "tools/call", at_once);
}

fn prompts(peer: &mut Peer) {
    let get = |peer: &mut Peer, name: &str, arguments: Value| {
        peer.step(name, "prompts/get", json!({ "name": name, "arguments": arguments }));
    };
    get(peer, "simple-prompt", json!({}));
    get(peer, "args-prompt", json!({ "city": "Bern" }));
    get(peer, "completable-prompt", json!({ "department": "Sales", "name": "Eve" }));
    get(peer, "resource-prompt", json!({ "resourceType": "Text", "resourceId": "1" }));
    get(peer, "no-such-prompt", json!({}));
    let prompt = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let department = json!({ "ref": prompt, "argument": { "name": "department", "value": "S" } });
    peer.step("completion of a prompt", "completion/complete", department);
    let context = json!({ "arguments": { "department": "Sales" } });
    let name = json!({ "ref": prompt, "argument": { "name": "name", "value": "" }, "context": context });
    peer.step("completion in a context", "completion/complete", name);
    let template = json!({ "type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}" });
    let number = json!({ "ref": template, "argument": { "name": "resourceId", "value": "1" } });
    peer.step("completion of a resource", "completion/complete", number);
}

fn resources(peer: &mut Peer) {
    for (step, uri) in [
        ("resource text", "demo://resource/dynamic/text/1"),
        ("resource blob", "demo://resource/dynamic/blob/1"),
        ("resource document", "demo://resource/static/document/features.md"),
        ("resource of the session", "demo://resource/session/resourceLink.gz"),
        ("resource unknown", "demo://resource/none"),
        ("resource file", "file:///etc/hostname"),
    ] {
        peer.step(step, "resources/read", json!({ "uri": uri }));
    }
    let watched = json!({ "uri": "demo://resource/dynamic/text/1" });
    peer.step("resources/subscribe", "resources/subscribe", watched.clone());
    peer.call("toggle-subscriber-updates on", "toggle-subscriber-updates", json!({}));
    peer.wait_for("notifications/resources/updated");
    peer.call("toggle-subscriber-updates off", "toggle-subscriber-updates", json!({}));
    peer.step("resources/unsubscribe", "resources/unsubscribe", watched);
}

fn errors(peer: &mut Peer) {
    peer.step("method unknown", "no/such", json!({}));
    peer.step("tool unknown", "tools/call", json!({ "name": "no-such-tool", "arguments": {} }));
    peer.step("call without a name", "tools/call", json!({}));
    let extra = json!({ "name": "echo", "arguments": { "message": "m" }, "extra": 1 });
    peer.step("call with an unknown field", "tools/call", extra);
    peer.step(
        "call with arguments that do not fit",
        "tools/call",
        json!({ "name": "get-sum", "arguments": { "a": "x", "b": 1 } }),
    );
    peer.step("initialize again", "initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }));
}
