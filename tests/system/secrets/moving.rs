//! Moving plain-text secrets from IronCurtain's and a client's settings to the keyring.

use super::{NONE, PROOF, SECRET, UNLOCKED, install, ironcurtain, on_a_bus, sha256, text};
use crate::client::TIMEOUT;
use crate::test_home::TestHome;
use crate::world::{World, eventually, programs};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn plain_secrets_move_to_keyring_and_still_reach_server() {
    on_a_bus("secrets::moving::plain_secrets_move_to_keyring_and_still_reach_server", UNLOCKED, || {
        let world = World::with(|prepared| {
            install(prepared, "api");
            let path = prepared.home.config.join("mcp-servers.json");
            let text = fs::read_to_string(&path).unwrap().replace("keyring:api", SECRET);
            fs::write(&path, text).unwrap();
        });
        let run = |arguments: &[&str]| {
            let mut command = Command::new(programs().join("ironcurtain"));
            command.args(arguments).env("IRONCURTAIN_HOME", world.ours());
            let output = command.env("HOME", &world.home.user_home).output().unwrap();
            (output.status.success(), text(&output))
        };
        let looked = run(&["secrets", "move", "--json"]);
        assert!(looked.0 && looked.1.contains("hostile-API_KEY") && !looked.1.contains(SECRET), "{looked:?}");
        let file = || fs::read_to_string(world.home.config.join("mcp-servers.json")).unwrap();
        assert!(file().contains(SECRET), "secrets moved without approval");
        // A different secret that already has this name is kept, and the plain-text secret stays in the file.
        assert!(ironcurtain(&["set", "hostile-API_KEY"], "another").status.success());
        let refused = run(&["secrets", "move", "--yes"]);
        assert!(
            !refused.0 && refused.1.contains("already has a different secret `hostile-API_KEY`"),
            "{refused:?}"
        );
        assert!(file().contains(SECRET));
        assert!(ironcurtain(&["remove", "hostile-API_KEY"], "").status.success());
        let moved = run(&["secrets", "move", "--yes"]);
        assert!(moved.0 && !moved.1.contains(SECRET), "{moved:?}");
        assert!(file().contains("\"keyring:hostile-API_KEY\"") && !file().contains(SECRET), "{}", file());
        let mut client = None;
        eventually("the server is initialized", TIMEOUT, || {
            let mut next = world.start("hostile");
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let good = next.request("initialize", params).get("result").is_some();
            client = good.then_some(next);
            good
        });
        let mut client = client.unwrap();
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let sessions = world.sessions();
        let session = Path::new(&sessions.last().unwrap().sandbox_dir).to_path_buf();
        let said = client.run(&session, &format!("/usr/bin/python3 -c \"{PROOF}\""));
        assert_eq!(said.ok().trim(), sha256(SECRET));
    });
}

#[test]
fn importing_client_server_moves_its_secret_to_keyring() {
    on_a_bus("secrets::moving::importing_client_server_moves_its_secret_to_keyring", UNLOCKED, || {
        let place = TestHome::new(|_| {});
        let entry = json!({ "command": "/usr/bin/true", "args": [], "env": { "TOKEN": SECRET } });
        let settings =
            place.file(".cursor/mcp.json", &json!({ "mcpServers": { "notes": entry } }).to_string());
        let run = |arguments: &[&str]| {
            let mut command = Command::new(programs().join("ironcurtain"));
            command.args(arguments).env("IRONCURTAIN_HOME", place.ours());
            let output = command.env("HOME", &place.home.user_home).output().unwrap();
            (output.status.success(), text(&output))
        };
        let diff = run(&["clients", "diff", "cursor", "--move", "--move-secrets"]);
        let line = "Move to the keyring: `env.TOKEN` of notes, as `keyring:notes-TOKEN`.";
        assert!(
            diff.0 && diff.1.contains(line) && diff.1.contains("(hidden)") && !diff.1.contains(SECRET),
            "{diff:?}"
        );
        let connected = run(&["clients", "connect", "cursor", "--move", "--move-secrets", "--yes"]);
        assert!(connected.0 && !connected.1.contains(SECRET), "{connected:?}");
        let servers = fs::read_to_string(place.home.config.join("mcp-servers.json")).unwrap();
        assert!(servers.contains("keyring:notes-TOKEN") && !servers.contains(SECRET), "{servers}");
        assert!(!fs::read_to_string(&settings).unwrap().contains(SECRET));
        assert_eq!(text(&ironcurtain(&["list"], "")).trim(), "notes-TOKEN");
        // Disconnecting restores the client's settings.
        let back = run(&["clients", "disconnect", "cursor", "--yes"]);
        assert!(back.0 && !back.1.contains(SECRET), "{back:?}");
        assert!(fs::read_to_string(&settings).unwrap().contains(SECRET));
    });
}

#[test]
fn without_keyring_plain_secret_stays_in_place() {
    on_a_bus("secrets::moving::without_keyring_plain_secret_stays_in_place", NONE, || {
        let place = TestHome::new(|_| {});
        let entry = json!({ "command": "/usr/bin/true", "args": [], "env": { "TOKEN": SECRET } });
        let settings =
            place.file(".cursor/mcp.json", &json!({ "mcpServers": { "notes": entry } }).to_string());
        let before = fs::read_to_string(&settings).unwrap();
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["clients", "connect", "cursor", "--move", "--move-secrets", "--yes"]);
        let output =
            command.env("IRONCURTAIN_HOME", place.ours()).env("HOME", &place.home.user_home).output();
        let output = output.unwrap();
        let said = text(&output);
        assert!(!output.status.success() && said.contains("there is no keyring here"), "{said}");
        assert!(!said.contains(SECRET));
        assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    });
}
