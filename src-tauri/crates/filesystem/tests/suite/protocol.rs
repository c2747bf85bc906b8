//! Tests the protocol: versions, invalid input, limits and shutdown.

use serde_json::{Value, json};

use crate::client::{Client, directory, ours};

#[test]
fn every_version_with_a_handshake_is_supported() {
    let (_keep, root) = directory();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::start(ours().arg(&root));
        let answer = client.handshake(revision, &json!({}));
        assert_eq!(answer["result"]["protocolVersion"], revision);
        assert_eq!(answer["result"]["serverInfo"]["name"], "ironcurtain-filesystem");
        let tools = client.request("tools/list", &json!({}));
        assert_eq!(tools["result"]["tools"].as_array().expect("tools").len(), 14);
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
        assert!(client.hang_up());
    }
}

#[test]
fn other_versions_get_the_newest_supported_one() {
    let (_keep, root) = directory();
    for revision in ["2026-07-28", "1999-01-01", "x"] {
        let mut client = Client::start(ours().arg(&root));
        let answer = client.handshake(revision, &json!({}));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    }
    let mut client = Client::start(ours().arg(&root));
    let meta = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let refused = client.request("server/discover", &meta);
    assert_eq!(refused["error"]["data"]["requested"], "2026-07-28", "{refused}");
    let answer = client.handshake("2025-11-25", &json!({}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn malformed_input_does_not_stop_the_server() {
    let (_keep, root) = directory();
    let mut client = Client::start(ours().arg(&root));
    // Invalid input before the handshake.
    client.send_bytes(b"\n{\n\xff\xfe\nnull\n");
    assert_eq!(client.receive()["error"]["code"], -32600);
    client.notify("notifications/initialized");
    client.send(&json!({ "jsonrpc": "2.0", "id": 9, "result": {} }));
    client.handshake("2025-06-18", &json!({}));
    // Invalid input after the handshake.
    for (line, id, code) in [
        (&b"[]"[..], Value::Null, -32600),
        (b"7", Value::Null, -32600),
        (br#"{"id":5}"#, json!(5), -32600),
        (br#"{"jsonrpc":"2.0","id":"a","method":7}"#, json!("a"), -32600),
        (br#"{"jsonrpc":"2.0","id":6,"method":"nonsense"}"#, json!(6), -32601),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#, json!(7), -32602),
        (br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[]}"#, json!(8), -32600),
    ] {
        client.send_bytes(line);
        client.send_bytes(b"\n");
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{answer}");
    }
    for ignored in [&b"{\"jsonrpc\":\"2.0\",\"method\":3}\n"[..], b"}{\n", b"\0\n", b"\"\xff\"\n"] {
        client.send_bytes(ignored);
    }
    assert_eq!(client.text("list_directory", &json!({ "path": root })), "");
    assert!(client.hang_up());
}

#[test]
fn hostile_arguments_are_tool_errors() {
    let (_keep, root) = directory();
    let mut client = Client::ours(&root);
    let invalid = "MCP error -32602: Input validation error: Invalid arguments for tool ";
    for (tool, arguments, text) in [
        ("nope", json!({}), "MCP error -32602: Tool nope not found".to_owned()),
        (
            "read_file",
            json!({}),
            format!("{invalid}read_file: Invalid input: expected string, received undefined at path"),
        ),
        (
            "edit_file",
            json!({ "path": "x", "edits": [{ "oldText": "a", "newText": null }] }),
            format!("{invalid}edit_file: Invalid input: expected string, received null at edits[0].newText"),
        ),
        (
            "read_file",
            json!({ "path": "a\u{0}b" }),
            format!(
                "Access denied - path outside allowed directories: {0}/a\u{0}b not in {0}",
                root.display()
            ),
        ),
        (
            "read_file",
            json!({ "path": format!("{}/{}", root.display(), "x".repeat(300)) }),
            format!("ENAMETOOLONG: name too long, realpath '{}/{}'", root.display(), "x".repeat(300)),
        ),
    ] {
        assert_eq!(client.refusal(tool, &arguments), text);
    }
    client.refusal("read_file", &json!({ "path": "a/".repeat(100_000) }));
    client.refusal("search_files", &json!({ "path": "/", "pattern": "*" }));
    assert_eq!(
        client.text("search_files", &json!({ "path": root, "pattern": "{".repeat(50) })),
        "No matches found"
    );
}

#[test]
fn a_message_of_64_mib_is_served_and_a_longer_one_refused() {
    let (_keep, root) = directory();
    let mut client = Client::ours(&root);
    let content = "x".repeat(64 * 1024 * 1024);
    let path = root.join("big");
    client.text("write_file", &json!({ "path": path, "content": content }));
    assert_eq!(std::fs::metadata(&path).expect("written").len(), 64 * 1024 * 1024);
    assert_eq!(client.text("read_text_file", &json!({ "path": path })), content);

    client.send_bytes(&vec![b'x'; 66 * 1024 * 1024]);
    client.send_bytes(b"\n");
    let refused = client.receive();
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["message"], "Invalid request: message is longer than 68157440 bytes");
    assert_eq!(client.text("read_text_file", &json!({ "path": path, "tail": 1 })).len(), content.len());
}

#[test]
fn calls_before_eof_are_answered() {
    let (_keep, root) = directory();
    let mut client = Client::ours(&root);
    let path = root.join("file");
    let call = json!({ "name": "write_file", "arguments": { "path": path, "content": "kept" } });
    client.send_request("tools/call", &call);
    assert!(client.hang_up());
    assert_eq!(std::fs::read_to_string(path).expect("written"), "kept");
}

#[test]
fn the_command_line_is_checked() {
    let (_keep, root) = directory();
    let missing = root.join("missing");
    let run = |arguments: &[&std::ffi::OsStr]| ours().args(arguments).output().expect("runs");
    let refused = run(&[missing.as_os_str()]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("none of the directories"));
    assert!(!run(&["--bogus".as_ref()]).status.success());
    let version = run(&["--version".as_ref()]);
    assert!(version.status.success());
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("ironcurtain-filesystem "));
}
