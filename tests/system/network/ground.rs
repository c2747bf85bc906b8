//! A network of the test's own: the trusted process on one side of a wire, servers with public and private addresses on
//! the other, and names for them that the system's resolver knows.
//!
//! It needs no rights: the test is started again in a user namespace, where it may make what it likes.

use crate::place::Prepared;
use crate::world::World;
use ironcurtain_daemon::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Set in the second start.
const INSIDE: &str = "IRONCURTAIN_SYSTEM_TEST_INSIDE";

/// The address of public names.
pub(super) const PUBLIC: &str = "9.9.9.9";

/// Every name there is.
const HOSTS: &str = "\
127.0.0.1 localhost
9.9.9.9 files.example.test other.example.test third.example.test evil.example.test
10.9.9.9 sly.example.test
";

pub(super) struct Ground {
    dir: tempfile::TempDir,
    servers: Child,
}

impl Drop for Ground {
    fn drop(&mut self) {
        // It is gone with its network in any case.
        let _ = self.servers.kill();
        let _ = self.servers.wait();
    }
}

/// Runs `body` in a network of its own. `test` is the whole name of the test that calls this.
pub(super) fn inside(test: &str, body: impl FnOnce(&Ground)) {
    if std::env::var_os(INSIDE).is_none() {
        return again(test);
    }
    body(&Ground::new());
}

fn again(test: &str) {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare is there");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

impl Ground {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("icnet").tempdir_in("/var/tmp").unwrap();
        let hosts = dir.path().join("hosts");
        std::fs::write(&hosts, HOSTS).unwrap();
        run(Command::new("mount").arg("--bind").args([&hosts, Path::new("/etc/hosts")]));
        let mut servers = Command::new("unshare")
            .args(["--net", "--", "/usr/bin/python3"])
            .args([script("outside.py"), dir.path().join("log")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(servers.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        wire(servers.id());
        Self { dir, servers }
    }

    /// Every connection that came: address and port.
    pub(super) fn reached(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

/// Lays a wire to the servers' namespace.
fn wire(servers: u32) {
    let there = format!("nsenter --target {servers} --net -- ip");
    let script = format!(
        "PATH=\"$PATH:/usr/sbin\"
         ip link set lo up
         ip link add near type veth peer name far netns {servers}
         ip link set near up
         ip addr add 9.9.9.1/24 dev near
         ip addr add 10.9.9.1/24 dev near
         {there} link set lo up
         {there} link set far up
         {there} addr add {PUBLIC}/24 dev far
         {there} addr add 10.9.9.9/24 dev far"
    );
    run(Command::new("sh").args(["-ec", &script]));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn script(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/network");
    dir.join(name).canonicalize().unwrap()
}

/// A world with one server, `fetcher`, that has this network.
pub(super) fn world(network: &Value) -> World {
    World::with(|prepared| install(prepared, network))
}

/// The tools that anybody may call.
const FREE: [&str; 7] = ["sneak", "many", "hold", "alive", "direct", "ssh", "proxies"];

/// Writes its configuration: what it fetches by name is asked about, everything else is free.
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

/// Writes what network the server has.
pub(super) fn configure(home: &Home, network: &Value) {
    let script = script("fetcher.py");
    let sandbox = json!({ "view": "roots", "filesystem": { "allowRead": [script] }, "network": network });
    let entry = json!({ "command": "/usr/bin/python3", "args": [script], "sandbox": sandbox });
    let servers = json!({ "fetcher": entry }).to_string();
    std::fs::write(home.config.join("mcp-servers.json"), servers).unwrap();
}
