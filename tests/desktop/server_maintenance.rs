//! Tests changing servers in the app: allowing and removing a host, removing and restoring a server, adding a bundle,
//! and restoring a quarantined file.

use crate::app::{App, agent, listens};
use crate::screen::{Screen, until};
use crate::{tray, window};
use ironcurtain_config::home::Home;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const WINDOW: &str = "^IronCurtain$";

#[test]
fn host_and_server_edits_leave_other_settings_unchanged() {
    let screen = tray::with_panel();
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    home.prepare().expect("the folders");
    let file = home.config.join("mcp-servers.json");
    let text = "{\n  \"_comment\": \"mine\",\n  \"filesystem\": { \"command\": \"ironcurtain-filesystem\", \"args\": [] }\n}\n";
    fs::write(&file, text).expect("the servers");
    let _app = App::start(&screen, &[]);
    listens(&screen);
    let first = agent(&screen);
    window::open(&screen, "Servers");
    let hosts = || entry(&file).map(|entry| entry["sandbox"]["network"]["allowedDomains"].clone());
    screen.press(WINDOW, "push button", "Details of filesystem");
    type_host(&screen, "http://api.example.com");
    window::says(&screen, "http://api.example.com is not a host");
    assert_eq!(fs::read_to_string(&file).expect("the servers"), text);
    type_host(&screen, "api.example.com");
    window::says(&screen, "filesystem may send anything it knows to api.example.com, at any time");
    screen.picture("opening");
    screen.press(WINDOW, "push button", "Allow it permanently: api.example.com to filesystem");
    until("the host to be allowed", || (hosts() == Some(json!(["api.example.com"]))).then_some(()));

    screen.press(WINDOW, "push button", "Close api.example.com to filesystem");
    window::says(&screen, "1 session ends now, so that this applies immediately.");
    screen.press(WINDOW, "push button", "Close");
    until("the host to be removed", || (hosts() == Some(json!([]))).then_some(()));
    window::says(&screen, "api.example.com is closed. Its session was closed.");
    drop(first);
    window::open(&screen, "Home");
    window::says(&screen, "Not protected");
    window::open(&screen, "Agents");

    let _second = agent(&screen);
    window::says(&screen, "Pause");
    window::open(&screen, "Servers");
    screen.press(WINDOW, "push button", "More about filesystem");
    screen.press(WINDOW, "push button", "Remove\u{2026} filesystem");
    window::says(&screen, "It stops now for 1 session; calls in flight fail.");
    screen.picture("removal");
    screen.press(WINDOW, "push button", "Remove it: filesystem");
    window::says(&screen, "filesystem was removed. Its session was closed.");
    assert_eq!(entry(&file), None);
    assert!(fs::read_to_string(&file).expect("the servers").contains("\"_comment\": \"mine\""));
    screen.press(WINDOW, "push button", "Put back filesystem");
    window::says(&screen, "filesystem was restored.");
    assert_eq!(entry(&file).expect("its entry")["command"], "ironcurtain-filesystem");
}

#[test]
fn bundle_added_in_window_is_written_as_shown() {
    let screen = tray::with_panel();
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    home.prepare().expect("the folders");
    // The picker completes typed names, so no name may be a prefix of another.
    let (notes, bundle) = (screen.home().join("notes"), screen.home().join("packed.mcpb"));
    let broken = screen.home().join("broken.mcpb");
    fs::create_dir_all(&notes).expect("the folder");
    pack(&bundle);
    fs::write(&broken, "no").expect("the file");
    let _app = App::start(&screen, &[]);
    window::skip_setup(&screen);
    window::open(&screen, "Servers");
    screen.activate(&screen.window(WINDOW));
    window::open(&screen, "Add");
    let choose = |file: &Path| {
        screen.press(WINDOW, "push button", "Choose a bundle (.mcpb)\u{2026}");
        picked(&screen, "^Choose a bundle with a server$", file);
    };
    choose(&broken);
    window::says(&screen, "broken.mcpb: ");
    choose(&bundle);
    window::says(&screen, "It stays closed until you allow it for the agent that uses it.");
    screen.press(WINDOW, "push button", "Pick a folder\u{2026} Where notes are");
    picked(&screen, "^Pick a folder for notes$", &notes);
    window::says(&screen, "~/notes");
    screen.press(WINDOW, "push button", "Show what would be added");
    window::says(&screen, &format!("Works with, after you allow it for an agent: {}", notes.display()));
    screen.picture("bundle");
    let file = home.config.join("mcp-servers.json");
    assert!(!file.exists(), "nothing is written before approval");
    screen.press(WINDOW, "push button", "Add it: notes");
    window::says(&screen, "It has not been started.");
    let text = fs::read_to_string(&file).expect("the servers");
    let entry = serde_json::from_str::<Value>(&text).expect("JSON")["notes"].clone();
    assert_eq!(entry["worksWith"], json!([notes]));
    let script = Path::new(entry["args"][0].as_str().expect("its script"));
    assert!(script.starts_with(home.data.join("bundles")) && script.is_file());
    assert_eq!(fs::read_dir(home.data.join("bundles")).expect("the bundles").count(), 1);
}

#[test]
fn restoring_quarantined_file_warns_when_it_runs_and_overwrites_nothing() {
    let screen = tray::with_panel();
    let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
    home.prepare().expect("the folders");
    let folder = screen.home().join("work");
    fs::create_dir_all(&folder).expect("the folder");
    let within = json!({ "roles": ["read-path", "write-path"], "within": folder });
    let rule = json!({ "name": "work", "description": "Work.", "if": { "paths": within }, "then": "allow", "reason": "work" });
    let rules = json!({ "schemaVersion": 1, "rules": [rule] }).to_string();
    fs::write(home.policy().join("compiled-policy.json"), rules).expect("the rules");
    let _app = App::start(&screen, &[]);
    listens(&screen);
    let mut first = agent(&screen);
    let makefile = folder.join("Makefile");
    let call =
        first.begin_call("write_file", json!({ "path": makefile, "content": "all:\n\techo planted\n" }));
    let written = first.answer(call);
    assert!(!written["result"]["isError"].as_bool().unwrap_or_default(), "{written}");
    drop(first);
    let shown = makefile.display().to_string();
    window::open(&screen, "Agents");
    screen.press(WINDOW, "push button", "Review 1 file of filesystem");
    screen.press(WINDOW, "push button", &format!("Quarantine {shown}"));
    until("the file to be quarantined", || (!makefile.exists()).then_some(()));
    screen.press(WINDOW, "push button", "Details of In quarantine");
    fs::write(&makefile, "mine\n").expect("the user's file");

    // A second agent's connection makes the page update.
    let _second = agent(&screen);
    window::says(&screen, "There is another file in its place now.");
    screen.press(WINDOW, "push button", &format!("Put back {shown}"));
    window::says(&screen, "with all your rights. The file in its place goes to quarantine");
    screen.picture("put-back");
    assert_eq!(fs::read_to_string(&makefile).expect("the other file is kept"), "mine\n");
    screen.press(WINDOW, "push button", "Put back");
    until("the file to be restored", || {
        (fs::read_to_string(&makefile).ok()? == "all:\n\techo planted\n").then_some(())
    });
    window::says(&screen, "This file was replaced when you put the other one back.");
}

/// Types the path of a file or folder into a system file picker.
fn picked(screen: &Screen, title: &str, path: &Path) {
    screen.activate(&screen.window(title));
    screen.xdotool(&["type", "--delay", "20", path.to_str().expect("a UTF-8 path")]);
    screen.picture("picker");
    screen.key("Return");
    until("the picker to close", || {
        screen.xdotool(&["search", "--onlyvisible", "--name", title]).is_empty().then_some(())
    });
}

/// Creates a bundle that has a required folder setting.
fn pack(bundle: &Path) {
    let start = json!({ "command": "node", "args": ["${__dirname}/server.js", "${user_config.folder}"] });
    let folder = json!({ "type": "directory", "title": "Where notes are", "description": "A folder", "required": true });
    let manifest =
        json!({ "name": "notes", "server": { "mcp_config": start }, "user_config": { "folder": folder } });
    let mut writer = ZipWriter::new(fs::File::create(bundle).expect("the bundle"));
    for (name, text) in [("manifest.json", manifest.to_string()), ("server.js", String::new())] {
        writer.start_file(name, SimpleFileOptions::default()).expect("a file");
        writer.write_all(text.as_bytes()).expect("its text");
    }
    writer.finish().expect("the end");
}

/// Replaces the text in the host field and requests the plan.
fn type_host(screen: &Screen, host: &str) {
    let field = until("the field", || {
        let all = screen.controls(WINDOW);
        all.into_iter().find(|one| one.role == "entry" && one.name.starts_with("Host"))
    });
    screen.click(&field);
    screen.key("ctrl+a");
    screen.xdotool(&["type", "--delay", "20", host]);
    let ask = "Open this host\u{2026} filesystem";
    until("the host to be entered", || {
        screen.control(WINDOW, "push button", ask).is("enabled").then_some(())
    });
    screen.picture("typed-host");
    screen.press(WINDOW, "push button", ask);
}

/// Returns the filesystem server's entry, if there is one.
fn entry(file: &Path) -> Option<Value> {
    let text = fs::read_to_string(file).expect("the servers");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all.get("filesystem").cloned()
}
