//! The reference servers from npm, which `cargo xtask test` installs.

use crate::test_home::Prepared;
use crate::world::{World, installed};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Filesystem server of a test environment.
#[derive(Debug, Clone, Copy)]
pub enum Files {
    /// The server embedded in IronCurtain.
    Embedded,
    /// The server from npm, with one configured entry.
    Reference,
}

impl Files {
    pub fn world(self, prepare: impl FnOnce(&Prepared)) -> World {
        World::with(|w| {
            if let Self::Reference = self {
                let mut entry = entry("server-filesystem");
                entry["fileWrites"] = json!("replace");
                configure(w, &json!({ "filesystem": entry }));
            }
            prepare(w);
        })
    }
}

/// Returns a configuration entry for a reference server.
pub fn entry(package: &str) -> Value {
    let modules = modules();
    json!({
        "command": "node",
        "args": [script(package)],
        "sandbox": { "filesystem": { "allowRead": [modules] } },
    })
}

pub fn configure(prepared: &Prepared, servers: &Value) {
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
}

/// Returns the path of a reference server's program.
pub fn script(package: &str) -> PathBuf {
    let script = modules().join("@modelcontextprotocol").join(package).join("dist/index.js");
    assert!(script.is_file(), "`{}` is not installed: run `cargo xtask test`", script.display());
    script
}

/// Returns the folder of the npm packages.
pub fn modules() -> PathBuf {
    installed("npm").join("node_modules")
}
