//! Tests of initialization, protocol fields and notifications.

use super::*;

#[test]
fn the_core_is_initialized_for_a_stateless_client() {
    let mut conversation = TestConversation::new();
    let capabilities = json!({ "elicitation": {}, "tasks": {}, "extensions": { "io.modelcontextprotocol/tasks": {}, "x/y": {} } });
    let mut discover = request(&json!("d"), "server/discover", json!({}), &capabilities);
    discover["params"]["_meta"][meta_key::CLIENT_INFO] = json!({ "name": "c", "version": "2" });
    conversation.client_sends(&discover);
    conversation.client_sends(&request(
        &json!(7),
        "tools/list",
        json!({ "_meta": { "x": 1 } }),
        &capabilities,
    ));
    let received = conversation.session_receives();
    let expected = json!({ "protocolVersion": "2026-07-28", "clientInfo": { "name": "c", "version": "2" },
        "capabilities": { "elicitation": {}, "extensions": { "x/y": {} } } });
    assert_eq!(
        (received.len(), &received[0]["method"], &received[0]["params"]),
        (1, &json!("initialize"), &expected)
    );
    let initialized = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "tasks": {} },
        "serverInfo": { "name": "s", "version": "1" }, "instructions": "be kind" });
    conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": received[0]["id"], "result": initialized }));
    assert_eq!(
        conversation.session_receives(),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": { "_meta": { "x": 1 } } }),
        ]
    );
    let discovered = json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "instructions": "be kind", "ttlMs": 0, "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" } } });
    assert_eq!(
        conversation.client_receives(),
        [json!({ "jsonrpc": "2.0", "id": "d", "result": discovered })]
    );
    conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": 7, "result": { "tools": [] } }));
    let listed = &conversation.client_receives()[0];
    assert_eq!(
        (&listed["id"], &listed["result"]["resultType"], &listed["result"]["ttlMs"]),
        (&json!(7), &json!("complete"), &json!(0))
    );
}

#[test]
fn a_refused_initialize_is_reported_and_the_client_may_initialize() {
    let mut conversation = TestConversation::new();
    conversation.client_sends(&request(&json!(1), "server/discover", json!({}), &json!({})));
    let id = conversation.session_receives()[0]["id"].clone();
    let error = json!({ "code": -32603, "message": "the server is not running" });
    conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    assert_eq!(conversation.client_receives(), [json!({ "jsonrpc": "2.0", "id": 1, "error": error })]);
    let initialize = json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {} });
    conversation.client_sends(&initialize);
    assert_eq!(conversation.session_receives(), [initialize]);
    conversation.session_sends(&done(2));
    assert_eq!(conversation.client_receives(), [done(2)]);
}

#[test]
fn a_request_without_protocol_fields_is_refused_with_the_missing_ones() {
    let mut conversation = TestConversation::initialized(&json!({}));
    let good = request(&json!(1), "tools/list", json!({}), &json!({}));
    for (key, code, message) in [
        (meta_key::PROTOCOL_VERSION, -32602, "protocolVersion"),
        (meta_key::CLIENT_CAPABILITIES, -32602, "clientCapabilities"),
    ] {
        let mut bad = good.clone();
        bad["params"]["_meta"].as_object_mut().unwrap().remove(key);
        conversation.client_sends(&bad);
        let received = conversation.client_receives();
        assert_eq!(received[0]["error"]["code"], code, "{received:?}");
        assert!(received[0]["error"]["message"].as_str().unwrap().contains(message), "{received:?}");
    }
    let mut other = good.clone();
    other["params"]["_meta"][meta_key::PROTOCOL_VERSION] = json!("2099-01-01");
    conversation.client_sends(&other);
    let error = json!({ "code": -32022, "message": "Unsupported protocol version",
        "data": { "supported": ["2026-07-28"], "requested": "2099-01-01" } });
    assert_eq!(conversation.client_receives()[0]["error"], error);
    conversation.client_sends(&json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } }));
    assert_eq!(conversation.client_receives()[0]["error"]["code"], -32022);
    for method in ["ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"] {
        conversation.client_sends(&request(&json!(1), method, json!({}), &json!({})));
        assert_eq!(conversation.client_receives()[0]["error"]["code"], -32601, "{method}");
    }
    assert_eq!(conversation.session_receives(), [] as [Value; 0]);
    conversation.client_sends(&good);
    assert_eq!(conversation.session_receives()[0]["method"], "tools/list");
}

#[tokio::test]
async fn progress_uses_the_token_of_the_pending_request() {
    let mut conversation = TestConversation::initialized(&elicitation_capability());
    conversation.client_sends(&call(
        5,
        json!({ "_meta": { "progressToken": 5 } }),
        &elicitation_capability(),
    ));
    assert_eq!(conversation.session_receives()[0]["params"]["_meta"], json!({ "progressToken": 5 }));
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 5, "progress": 1 } });
    conversation.session_sends(&progress);
    assert_eq!(conversation.client_receives(), std::slice::from_ref(&progress));
    conversation.session_sends(&elicitation("a"));
    let state = conversation.client_receives()[0]["result"]["requestState"].as_str().unwrap().to_owned();
    conversation.session_sends(&progress);
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    let mut again = retry(6, &state);
    again["params"]["_meta"]["progressToken"] = json!("p6");
    conversation.client_sends(&again);
    conversation.session_sends(&progress);
    assert_eq!(conversation.client_receives()[0]["params"], json!({ "progressToken": "p6", "progress": 1 }));
}

#[test]
fn log_messages_go_only_to_requests_that_want_them() {
    let mut conversation = TestConversation::initialized(&json!({}));
    let message = |level: &str| json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": level, "data": 1 } });
    conversation.client_sends(&call(5, json!({}), &json!({})));
    assert_eq!(conversation.session_receives().len(), 1);
    conversation.session_sends(&message("error"));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.client_sends(&call(6, json!({ "_meta": { (meta_key::LOG_LEVEL): "warning" } }), &json!({})));
    let received = conversation.session_receives();
    assert_eq!(
        (&received[0]["method"], &received[0]["params"]),
        (&json!("logging/setLevel"), &json!({ "level": "warning" }))
    );
    assert_eq!(received[1]["params"].get("_meta"), None);
    conversation.session_sends(&message("error"));
    conversation.session_sends(&message("info"));
    assert_eq!(conversation.client_receives(), [message("error")]);
}

#[test]
fn notifications_go_to_subscribers_with_their_subscription_id() {
    let mut conversation = TestConversation::initialized(&json!({}));
    let subscription = |id: &str, wanted: Value| {
        request(&json!(id), "subscriptions/listen", json!({ "notifications": wanted }), &json!({}))
    };
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    conversation.session_sends(&changed);
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation
        .client_sends(&subscription("l1", json!({ "toolsListChanged": true, "promptsListChanged": false })));
    let stamp = json!({ "io.modelcontextprotocol/subscriptionId": "l1" });
    let acknowledged = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "notifications": { "toolsListChanged": true }, "_meta": stamp } });
    assert_eq!(conversation.client_receives(), [acknowledged]);
    conversation.session_sends(&changed);
    assert_eq!(
        conversation.client_receives(),
        [
            json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": { "_meta": stamp } })
        ]
    );

    conversation
        .client_sends(&subscription("l2", json!({ "resourceSubscriptions": ["memo://a", "file:///x"] })));
    let asked = conversation.session_receives();
    assert_eq!(asked.iter().map(|m| &m["params"]["uri"]).collect::<Vec<_>>(), ["file:///x", "memo://a"]);
    conversation.session_sends(
        &json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "error": { "code": -32600, "message": "DENIED" } }),
    );
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.session_sends(&json!({ "jsonrpc": "2.0", "id": asked[1]["id"], "result": {} }));
    assert_eq!(
        conversation.client_receives()[0]["params"]["notifications"],
        json!({ "resourceSubscriptions": ["memo://a"] })
    );
    let updated = |uri: &str| json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } });
    conversation.session_sends(&updated("memo://b"));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    conversation.session_sends(&updated("memo://a"));
    assert_eq!(
        conversation.client_receives()[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "l2"
    );

    conversation.client_sends(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "l2" } }),
    );
    let received = conversation.session_receives();
    assert_eq!(
        (&received[0]["method"], &received[0]["params"]["uri"]),
        (&json!("resources/unsubscribe"), &json!("memo://a"))
    );
    conversation.session_sends(&updated("memo://a"));
    assert_eq!(conversation.client_receives(), [] as [Value; 0]);
    for n in 0..31 {
        conversation.client_sends(&subscription(&format!("m{n}"), json!({})));
    }
    conversation.client_receives();
    conversation.client_sends(&subscription("m31", json!({})));
    assert!(
        conversation.client_receives()[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("32 subscriptions are open")
    );
}
