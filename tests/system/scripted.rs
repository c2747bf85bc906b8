//! A test environment with a scripted server that lists the hostile server's tools and implements them as the test
//! defines.

use crate::hostile;
use crate::test_home::Prepared;
use crate::world::World;
use serde_json::{Value, json};

/// Prelude of each script. `answer` answers a call, `fail` exits without output, and `greet` answers `initialize`.
pub const PRELUDE: &str = r#"
import json, os, signal, sys, time

def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()

def raw(data):
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()

def answer(m, text="done"):
    say(id=m["id"], result={"content": [{"type": "text", "text": text}], "isError": False})

def greet(m):
    say(id=m["id"], result={"protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": True}},
        "serverInfo": {"name": "scripted", "version": "1"}})

# The number of this process, of all that were started in this session.
def number():
    with open("starts", "a") as f:
        f.write("x")
    return os.path.getsize("starts")

heard = []

def messages():
    for line in sys.stdin:
        m = json.loads(line)
        heard.append(m["method"] if "method" in m else "answer")
        yield m
"#;

/// Creates a test environment whose server runs [`PRELUDE`] followed by this script.
pub fn world(script: &str) -> World {
    World::with(|prepared| install(prepared, script))
}

/// Configures a server that runs [`PRELUDE`] followed by this script.
pub fn install(prepared: &Prepared, script: &str) {
    install_with_keys(prepared, script, &json!({}));
}

/// Like [`install`], with additional keys in the entry.
pub fn install_with_keys(prepared: &Prepared, script: &str, keys: &Value) {
    hostile::install(prepared);
    let script = format!("{PRELUDE}\n{script}");
    let mut entry = json!({ "command": "/usr/bin/python3", "args": ["-c", script] });
    entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let servers = json!({ "hostile": entry });
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
}
