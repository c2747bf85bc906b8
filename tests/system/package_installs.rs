//! Server packages: the command installs them from real and test registries, and the servers start without network
//! access.

mod attacks;
mod interrupted;
mod real_packages;
mod registry;
mod update;

use crate::client::Client;
use crate::reference::configure;
use crate::test_home::Prepared;
use crate::world::{World, is_root, programs};
use ironcurtain_config::home::Home;
use registry::Registry;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Creates a test environment with one server, `tiny`, whose entry names a package in a test registry.
fn world(registry: &Registry, args: &[&str]) -> World {
    World::with(|prepared| prepare(prepared, registry, "npx", args))
}

fn prepare(prepared: &Prepared, registry: &Registry, command: &str, args: &[&str]) {
    registry.configure(&prepared.home.user_home);
    configure(
        prepared,
        &json!({ "tiny": { "command": command, "args": args, "sandbox": { "view": "roots" } } }),
    );
    let tool = |name: &str, args: Value| json!({ "toolName": name, "args": args });
    let tools =
        [tool("version", json!({})), tool("reach", json!({ "port": ["none"] })), tool("change", json!({}))];
    let annotations = json!({ "schemaVersion": 1, "servers": { "tiny": { "tools": tools } } });
    let file = prepared.home.policy().join("tool-annotations.json");
    std::fs::write(file, annotations.to_string()).unwrap();
}

/// Returns the `ironcurtain` command with an option that lets it run as root.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("servers").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if is_root() && arguments.first() != Some(&"list") {
        command.arg("--allow-root");
    }
    command.env("IRONCURTAIN_HOME", home.config.parent().unwrap()).env("HOME", &home.user_home);
    command
}

/// Runs the command. Returns its output or its error message.
fn run(home: &Home, arguments: &[&str]) -> Result<String, String> {
    let output = command(home, arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let said = run(home, &[arguments, &["--json"]].concat()).unwrap();
    serde_json::from_str(&said).unwrap()
}

/// Installs a server's package. Returns the folder that the command prints.
fn install(home: &Home, server: &str) -> PathBuf {
    json_of(home, &["install", server])["folder"].as_str().unwrap().into()
}

/// Returns all package folders and everything else in their parent folder.
fn folders(home: &Home) -> Vec<String> {
    let mut found = Vec::new();
    let list = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    for registry in list(&home.installs()) {
        if registry.file_name().unwrap().to_str().unwrap().starts_with('.') {
            found.push("staging".to_owned());
        }
        for version in list(&registry).flat_map(|package| list(&package).collect::<Vec<_>>()) {
            let name = version.strip_prefix(&registry).unwrap().display().to_string();
            found.push(name.rsplit_once('-').map(|(name, _)| name.to_owned()).unwrap_or(name));
        }
    }
    found.retain(|name| !name.starts_with("home/") && !name.starts_with("tree/"));
    found.sort();
    found
}

/// Returns the error for `initialize` if the server fails to start.
fn refusal(world: &World, server: &str) -> String {
    let mut client = world.start(server);
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = client.request("initialize", params);
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn tell(world: &World, client: &mut Client, tool: &str, arguments: Value) -> String {
    crate::servers::free(world, client, tool, arguments).ok().to_owned()
}
