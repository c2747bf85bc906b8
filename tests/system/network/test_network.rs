//! A network for tests: a virtual link with the daemon at one end and servers with public and private addresses at
//! the other, and host names that the system resolver knows.
//!
//! Needs no privileges, because the test restarts itself in a user namespace.

use crate::test_home::Prepared;
use crate::world::World;
use ironcurtain_config::home::Home;
use ironcurtain_testkit::external_servers::ExternalServers;
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Address of the public host names.
pub(super) const PUBLIC: &str = "9.9.9.9";

/// Content of the hosts file.
const HOSTS: &str = "\
127.0.0.1 localhost
9.9.9.9 files.example.test other.example.test third.example.test evil.example.test
10.9.9.9 sly.example.test
";

pub struct Ground {
    dir: tempfile::TempDir,
    _outside: ExternalServers,
}

/// Runs `body` in a separate network. `test` is the calling test's full name.
pub fn inside(test: &str, body: impl FnOnce(&Ground)) {
    if !is_inside() {
        return run_inside(test, &["--net", "--mount"]);
    }
    body(&Ground::new());
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("icnet").tempdir_in("/var/tmp").unwrap();
        let hosts = dir.path().join("hosts");
        std::fs::write(&hosts, HOSTS).unwrap();
        let bind = Command::new("mount").arg("--bind").args([&hosts, Path::new("/etc/hosts")]).status();
        assert!(bind.unwrap().success());
        let servers = ["/usr/bin/python3".into(), script("outside.py"), dir.path().join("log")];
        let far = [format!("{PUBLIC}/24"), "10.9.9.9/24".to_owned()];
        let outside = ExternalServers::start(servers, &["9.9.9.1/24", "10.9.9.1/24"], &far);
        Self { dir, _outside: outside }
    }

    /// Returns the address and port of each incoming connection.
    pub fn reached(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

fn script(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/network");
    dir.join(name).canonicalize().unwrap()
}

/// Creates a test environment with one server, `fetcher`, that has these network settings.
pub(super) fn world(network: &Value) -> World {
    World::with(|prepared| install(prepared, network))
}

/// Tools that need no approval.
const FREE: [&str; 7] = ["sneak", "many", "hold", "alive", "direct", "ssh", "proxies"];

/// Writes a policy that allows the tools in [`FREE`] and requires approval for `get`.
fn install(prepared: &Prepared, network: &Value) {
    let tool = |name: &str, args: Value| json!({ "toolName": name, "serverName": "fetcher", "comment": "", "args": args });
    let mut tools: Vec<Value> = FREE.iter().map(|name| tool(name, json!({ "where": ["none"] }))).collect();
    tools.push(tool("get", json!({ "url": ["fetch-url"] })));
    let annotations = json!({ "schemaVersion": 1, "servers": { "fetcher": { "tools": tools } } });
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    let rules = [rule("free", json!({ "tool": FREE }), "allow"), rule("ask", json!({}), "escalate")];
    let rules = json!({ "schemaVersion": 1, "rules": rules });
    let policy = prepared.home.policy();
    std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
    std::fs::write(policy.join("compiled-policy.json"), rules.to_string()).unwrap();
    configure(&prepared.home, network);
}

/// Writes the server's network settings.
pub(super) fn configure(home: &Home, network: &Value) {
    let script = script("fetcher.py");
    let sandbox = json!({ "view": "roots", "filesystem": { "allowRead": [script] }, "network": network });
    let entry = json!({ "command": "/usr/bin/python3", "args": [script], "sandbox": sandbox });
    let servers = json!({ "fetcher": entry }).to_string();
    std::fs::write(home.config.join("mcp-servers.json"), servers).unwrap();
}
