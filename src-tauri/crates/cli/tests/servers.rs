//! Tests `ironcurtain servers` in a temporary home directory, without a trusted process.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use serde_json::{Value, json};
use std::process::Command;
use tempfile::TempDir;

struct Home {
    dir: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn text(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_ironcurtain"))
            .arg("servers")
            .args(arguments)
            .env("HOME", self.dir.path())
            .env("IRONCURTAIN_HOME", self.dir.path().join("ic"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        (output.status.success(), text)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat()).1).unwrap()
    }
}

#[test]
fn known_server_is_added_and_not_replaced_unless_requested() {
    let home = Home::new();
    let catalog = home.json(&["catalog"]);
    let known = catalog["servers"].as_array().unwrap().iter().find(|known| known["id"] == "memory").unwrap();
    assert_eq!(known["source"]["registry"], json!("npm"));
    assert!(home.text(&["catalog"]).1.contains("memory (Memory)\n  Remembers facts"));

    let (done, output_text) = home.text(&["add", "memory", "--later", "--name", "notes"]);
    assert!(done && output_text.contains("ironcurtain servers install notes"), "{output_text}");
    let listed = home.json(&["list"]);
    let names: Vec<_> = listed["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["filesystem", "notes"]);
    assert_eq!(listed["servers"][1]["annotatedTools"], json!(9));

    let (done, output_text) = home.text(&["add", "memory", "--later", "--name", "notes"]);
    assert!(!done && output_text.contains("`notes` already exists in"), "{output_text}");
    assert!(home.text(&["add", "memory", "--later", "--name", "notes", "--replace"]).0);
}

#[test]
fn servers_are_removed_restored_opened_and_closed() {
    let home = Home::new();
    let folder = home.dir.path().canonicalize().unwrap().join("cache");
    std::fs::create_dir(&folder).unwrap();
    assert!(home.text(&["add", "memory", "--later", "--name", "notes"]).0);
    let (done, output_text) = home.text(&["open", "notes", "--host", "a.example", "--yes"]);
    assert!(
        done && output_text.contains("notes may send anything it knows to `a.example`, at any time"),
        "{output_text}"
    );
    let (done, output_text) = home.text(&["open", "notes", "--read", folder.to_str().unwrap()]);
    assert!(!done && output_text.contains("no terminal to confirm on"), "{output_text}");
    let (done, output_text) = home.text(&["open", "notes", "--host", "https://a.example", "--yes"]);
    assert!(!done && output_text.contains("`https://a.example` is not a host"), "{output_text}");
    let (done, output_text) = home.text(&["close", "notes", "--host", "a.example", "--yes"]);
    assert!(done && output_text.contains("No longer allowed: notes may send"), "{output_text}");
    let (done, output_text) = home.text(&["remove", "notes", "--yes"]);
    assert!(done && output_text.contains("ironcurtain servers restore notes"), "{output_text}");
    assert_eq!(home.json(&["list"])["servers"].as_array().unwrap().len(), 1);
    let (done, output_text) = home.text(&["remove", "notes", "--yes"]);
    assert!(
        !done && output_text.contains("no server is named `notes`; existing servers: `filesystem`"),
        "{output_text}"
    );
    assert!(home.text(&["restore", "notes"]).0);
    assert_eq!(home.json(&["list"])["servers"][1]["annotatedTools"], json!(9));
}

#[test]
fn limits_are_shown_and_changed() {
    let home = Home::new();
    let (done, output_text) = home.text(&["limits", "filesystem"]);
    assert!(
        done && output_text.starts_with("Memory: 4096 MiB (the default)\nCPU time: no limit"),
        "{output_text}"
    );
    let (done, output_text) = home.text(&["limits", "filesystem", "memory=512", "processes=2000", "--yes"]);
    assert!(
        done && output_text.starts_with("Processes and threads: 2000 instead of 1024. Looser:"),
        "{output_text}"
    );
    assert!(output_text.contains("Memory: 512 MiB instead of 4096 MiB. Tighter:"), "{output_text}");
    assert!(output_text.contains("+      \"memoryMib\": 512"), "{output_text}");
    assert!(done, "{output_text}");
    assert!(home.text(&["limits", "filesystem"]).1.starts_with("Memory: 512 MiB\n"));
    for (wish, report) in [
        ("memory=1", "memory must be 32 to 1048576 MiB, found 1"),
        ("memory=512", "`filesystem` already has these limits"),
        ("memory=much", "expected a whole number or `default`, found `much`"),
        ("rooms=2", "unknown limit `rooms`"),
    ] {
        let (done, output_text) = home.text(&["limits", "filesystem", wish, "--yes"]);
        assert!(!done && output_text.contains(report), "{output_text}");
    }
    let (done, output_text) = home.text(&["limits", "filesystem", "memory=default"]);
    assert!(!done && output_text.contains("no terminal to confirm on"), "{output_text}");
    assert!(home.text(&["limits", "filesystem", "memory=default", "processes=default", "--yes"]).0);
    assert_eq!(home.json(&["limits", "filesystem"])["limits"][0]["own"], json!(null));
}

#[test]
fn unknown_names_are_reported() {
    let home = Home::new();
    let (done, output_text) = home.text(&["add", "no-such"]);
    assert!(
        !done && output_text.contains("`no-such` is not in the catalog; for a package, write `npm:no-such`"),
        "{output_text}"
    );
    let (done, output_text) = home.text(&["add", "no such"]);
    assert!(!done && output_text.contains("unexpected argument `such`"), "{output_text}");
    let (done, output_text) = home.text(&["add", "docker", "run", "-i", "--rm", "mcp/time"]);
    assert!(
        !done && output_text.contains("`docker` starts a container outside the sandbox"),
        "{output_text}"
    );
    let (done, output_text) = home.text(&["add", "sqlite"]);
    assert!(!done && output_text.contains("`sqlite` requires `--set folder=...`"), "{output_text}");
    let (done, output_text) = home.text(&["add", "sqlite", "--later", "--set", "folder=/no/such/folder"]);
    assert!(
        !done && output_text.contains("invalid `--set folder=...`: `/no/such/folder`: No such file"),
        "{output_text}"
    );
    let set = format!("folder={}", home.dir.path().display());
    let (done, output_text) = home.text(&["add", "sqlite", "--later", "--set", &set]);
    assert!(done && output_text.contains("ironcurtain servers install sqlite"), "{output_text}");
    let (done, output_text) = home.text(&["add", "npm:some-mcp", "--later"]);
    let fate = "Its tools are not annotated yet: you will be asked at every call. To annotate them, run: ironcurtain servers annotate some-mcp";
    let network = "You are asked about each host that it connects to";
    assert!(done && output_text.contains(fate) && output_text.contains(network), "{output_text}");
    let (done, output_text) = home.text(&["add", "--later", "--name", "quoted", "npx -y some-mcp --flag"]);
    assert!(done && output_text.contains("npx -y some-mcp --flag"), "{output_text}");
    let (done, output_text) = home.text(&["add", "https://mcp.example.com/mcp", "--later"]);
    let place = "It runs on mcp.example.com, outside this computer's sandbox. IronCurtain checks each call, but cannot limit what it does.";
    let fate = "Its tools are not annotated yet: you will be asked at every call.";
    assert!(
        done && output_text.contains(place) && output_text.contains(fate) && !output_text.contains("network"),
        "{output_text}"
    );
    let (done, output_text) = home.text(&["add", "time"]);
    assert!(!done && output_text.contains("nothing was added: no terminal to confirm on"), "{output_text}");
    let (done, output_text) = home.text(&["add", "time", "--from", "/no/such/folder"]);
    assert!(!done && output_text.contains("failed to open the folder `/no/such/folder`"), "{output_text}");
}
