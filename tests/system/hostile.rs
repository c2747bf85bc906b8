//! A test environment with a misbehaving server. The tools `open`, `change`, `hold`, `look` and `linger` have a path
//! argument that the policy checks. `sneak`, `scribble` and `clutch` do the same as `open`, `change` and `hold`, but
//! the policy treats their argument as plain text, so they need no approval.

use crate::client::{Client, Outcome};
use crate::machine::Machine;
use crate::test_home::Prepared;
use crate::world::{World, programs};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Tools whose `path` argument the policy checks, and the role of that path.
const JUDGED: [(&str, &str); 5] = [
    ("open", "read-path"),
    ("hold", "read-path"),
    ("look", "read-path"),
    // The server never answers this call.
    ("linger", "read-path"),
    ("change", "write-path"),
];

/// Tools that need no approval, and their arguments.
const FREE: [(&str, &[&str]); 18] = [
    ("sneak", &["where"]),
    ("scribble", &["where"]),
    ("clutch", &["where"]),
    ("run", &["where", "script"]),
    ("connect", &["where"]),
    ("recall", &[]),
    ("release", &[]),
    ("noise", &[]),
    ("intrude", &[]),
    ("die", &[]),
    ("blab", &[]),
    ("slow", &[]),
    ("heard", &[]),
    ("requested", &[]),
    ("big", &["bytes"]),
    ("now", &[]),
    ("environ", &[]),
    ("echo", &["n", "text"]),
];

/// Tool that makes a server report its roots.
pub const LISTS: &str = "list_allowed_directories";

pub fn world() -> World {
    World::with(install)
}

/// Makes the server answer a call in an earlier session, so that it no longer counts as a new server.
pub fn answers_before(world: &World) {
    let mut client = world.connect("hostile");
    client.plain("heard").ok();
    client.hang_up();
    crate::world::eventually("the first session is over", std::time::Duration::from_secs(10), || {
        world.sessions().is_empty()
    });
}

/// Like [`answers_before`], for a [`Machine`].
pub fn make_server_known_on(machine: &Machine) {
    let mut client = machine.connect();
    client.plain("heard").ok();
    client.hang_up();
}

/// Creates a test environment whose server requests its roots once and ignores later changes.
pub fn ignoring_root_changes() -> World {
    World::with(|w| configure(w, &json!({ "DAWDLE": "1" })))
}

/// Creates a test environment whose server lists its roots, but still uses the previous list after the first change.
pub fn with_stale_roots() -> World {
    World::with(|w| {
        configure(w, &json!({ "MISLAY": "1" }));
        let mut annotations = annotations();
        let tools = annotations["servers"]["hostile"]["tools"].as_array_mut().unwrap();
        tools.push(json!({ "toolName": LISTS, "serverName": "hostile", "comment": "", "args": {} }));
        std::fs::write(w.home.policy().join("tool-annotations.json"), annotations.to_string()).unwrap();
    })
}

/// Creates a test environment whose server executes every method, with or without an id.
pub fn executing_notifications() -> World {
    World::with(|w| configure(w, &json!({ "HASTY": "1" })))
}

/// Creates a test environment whose server has these `sandbox` settings.
pub fn contained(sandbox: &Value) -> World {
    World::with(|w| install_contained(w, sandbox))
}

/// Configures the hostile server with these `sandbox` settings.
pub fn install_contained(prepared: &Prepared, sandbox: &Value) {
    configure(prepared, &json!({}));
    let servers = json!({ "hostile": { "command": program(), "sandbox": sandbox } });
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
}

/// Configures the hostile server.
pub fn install(prepared: &Prepared) {
    configure(prepared, &json!({}));
}

/// Configures the hostile server under each of these names.
pub fn install_as(prepared: &Prepared, names: &[&str]) {
    configure(prepared, &json!({}));
    let servers: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "command": program() }))).collect();
    let mut all = annotations();
    for name in names {
        let text = all["servers"]["hostile"].to_string();
        let text = text.replace("\"serverName\":\"hostile\"", &format!("\"serverName\":\"{name}\""));
        all["servers"][*name] = serde_json::from_str(&text).unwrap();
    }
    std::fs::write(prepared.home.config.join("mcp-servers.json"), Value::Object(servers).to_string())
        .unwrap();
    let file = prepared.home.policy().join("tool-annotations.json");
    std::fs::write(file, all.to_string()).unwrap();
}

fn configure(prepared: &Prepared, env: &Value) {
    let servers = json!({ "hostile": { "command": program(), "env": env } });
    let policy = prepared.home.policy();
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    std::fs::write(policy.join("tool-annotations.json"), annotations().to_string()).unwrap();
    std::fs::write(policy.join("compiled-policy.json"), rules().to_string()).unwrap();
}

impl Client {
    /// Opens a path with the tool whose path the policy checks.
    pub fn open(&mut self, path: &Path) -> Outcome {
        self.call("open", json!({ "path": path }))
    }

    /// Opens a path with the tool whose path the policy does not check.
    pub fn sneak(&mut self, path: &Path) -> Outcome {
        self.call("sneak", json!({ "where": path }))
    }

    /// Writes to a path with the tool whose path the policy does not check.
    pub fn scribble(&mut self, path: &Path) -> Outcome {
        self.call("scribble", json!({ "where": path }))
    }

    /// Runs a shell script in a folder, without a policy check.
    pub fn run(&mut self, folder: &Path, script: &str) -> Outcome {
        self.call("run", json!({ "where": folder, "script": script }))
    }

    /// Calls a tool without arguments.
    pub fn plain(&mut self, tool: &str) -> Outcome {
        self.call(tool, json!({}))
    }
}

pub fn program() -> PathBuf {
    let program = programs().join("examples/hostile-server");
    assert!(program.is_file(), "`{}` is missing: run `cargo xtask test`", program.display());
    program
}

fn annotations() -> Value {
    let tool = |name: &str, args: Map<String, Value>| json!({ "toolName": name, "serverName": "hostile", "comment": "", "args": args });
    let judged =
        JUDGED.iter().map(|(name, role)| tool(name, Map::from_iter([("path".to_owned(), json!([role]))])));
    let free = FREE.iter().map(|(name, args)| {
        tool(name, args.iter().map(|arg| ((*arg).to_owned(), json!(["none"]))).collect())
    });
    json!({ "schemaVersion": 1, "servers": { "hostile": { "tools": judged.chain(free).collect::<Vec<_>>() } } })
}

fn rules() -> Value {
    let names: Vec<&str> = FREE.iter().map(|(name, _)| *name).chain([LISTS]).collect();
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
    json!({ "schemaVersion": 1, "rules": [
        rule("free", json!({ "server": ["hostile"], "tool": names }), "allow"),
        rule("ask", json!({}), "escalate"),
    ] })
}
