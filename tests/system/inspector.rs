//! The command-line version of the official MCP inspector, with both protocol versions.

use crate::conformance::node;
use crate::servers;
use crate::world::{World, installed};
use serde_json::{Value, json};
use std::process::Command;

/// Returns the inspector's output for the server behind the shim.
fn inspected(world: &World, era: &str, arguments: &[&str]) -> Value {
    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let shim = json!({
        "command": world.programs.join("ironcurtain-shim"), "args": ["--server", "everything"],
        "env": { "IRONCURTAIN_HOME": world.ours() },
    });
    let config = world.file("inspector.json", &json!({ "mcpServers": { "everything": shim } }).to_string());
    let said = Command::new(node())
        .arg(installed("npm").join(launcher))
        .args(["--cli", "--protocol-era", era, "--server", "everything", "--config"])
        .arg(config)
        .args(arguments)
        .env("HOME", &world.home.user_home)
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&said.stderr);
    serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{era} {arguments:?}: {complaint}"))
}

#[test]
fn inspector_works_with_both_protocol_versions() {
    let world = World::with(|prepared| servers::install(prepared, "everything"));
    for era in ["legacy", "modern", "auto"] {
        let listed = inspected(&world, era, &["--method", "tools/list"]);
        let names: Vec<&str> =
            listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&"echo") && names.contains(&"get-sum"), "{era}: {names:?}");
        let call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=curtain"];
        let called = inspected(&world, era, &call);
        assert_eq!(called["content"][0]["text"], "Echo: curtain", "{era}: {called}");
        let refused = ["--method", "tools/call", "--tool-name", "get-env"];
        let refused = inspected(&world, era, &refused);
        let text = refused["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("DENIED: "), "{era}: {refused}");
    }
}
