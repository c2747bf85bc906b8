//! Tests creating, extending, changing and restoring every client's settings.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use ironcurtain_client_config::{
    CLIENTS, ClientDirs, Edit, FoundClient, KnownClient, ShimSelection, StartCommand,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const SHIM: &str = "/opt/ironcurtain/ironcurtain-shim";

fn after(edit: &Edit) -> &str {
    edit.after.as_deref().unwrap()
}

fn launch() -> StartCommand {
    StartCommand::of_shim(Path::new(SHIM), ShimSelection::Server("files"))
}

/// Compares a text with the golden file for a client and an operation. With `UPDATE_GOLDEN=1`, writes the
/// golden file instead.
fn golden(client: &KnownClient, operation: &str, text: &str) {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{}.{operation}", client.id));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!(kept, text, "{}", path.display());
}

/// Returns realistic settings with comments, other keys and another server.
fn existing_settings(client: &KnownClient) -> String {
    let file = format!("{}.before", client.id);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn missing_settings_are_created() {
    for client in CLIENTS {
        let edit = client.add_entries(None, &[("files", &launch())]).unwrap();
        golden(client, "created", after(&edit));
        let entries = client.entries(Some(after(&edit))).unwrap();
        let [entry] = entries.as_slice() else { panic!("{}: {entries:?}", client.id) };
        assert_eq!((entry.name.as_str(), entry.launch.as_ref()), ("files", Some(&launch())));
        assert!(entry.launch.as_ref().unwrap().is_shim());
        assert_eq!(entry.launch.as_ref().unwrap().shim_selection(), ShimSelection::Server("files"));
        assert!(
            client.add_entries(Some(after(&edit)), &[("files", &launch())]).unwrap().is_empty(),
            "{}",
            client.id
        );
    }
}

#[test]
fn shim_selection_round_trips() {
    for selection in [ShimSelection::All, ShimSelection::Server("a"), ShimSelection::Profile("work")] {
        assert_eq!(StartCommand::of_shim(Path::new(SHIM), selection).shim_selection(), selection);
    }
}

#[test]
fn adding_and_removing_an_entry_restores_the_file() {
    for client in CLIENTS {
        let before = existing_settings(client);
        let edit = client.add_entries(Some(&before), &[("files", &launch())]).unwrap();
        golden(client, "added", after(&edit));
        for line in before.lines() {
            let line = line.trim_end_matches(',');
            assert!(after(&edit).contains(line), "{}: {line}", client.id);
        }
        let back = client.set_entries(Some(after(&edit)), &[("files", None)]).unwrap();
        assert_eq!(after(&back), before, "{}", client.id);
    }
}

#[test]
fn replaced_entry_can_be_restored() {
    for client in CLIENTS {
        let before = existing_settings(client);
        let entries = client.entries(Some(&before)).unwrap();
        let old = entries.iter().find(|entry| entry.name == "notes").unwrap();
        let started = old.launch.as_ref().unwrap();
        assert_eq!(
            (started.command.as_str(), started.args.as_slice()),
            ("npx", &["-y".to_owned(), "notes-mcp@1.2.3".to_owned()][..])
        );
        assert_eq!(started.env.get("NOTES_TOKEN").map(String::as_str), Some("t0ken"), "{}", client.id);
        let shim = StartCommand::of_shim(Path::new(SHIM), ShimSelection::Server("notes"));
        let edit = client.add_entries(Some(&before), &[("notes", &shim)]).unwrap();
        golden(client, "moved", after(&edit));
        let back = client.set_entries(Some(after(&edit)), &[("notes", Some(old.value.clone()))]).unwrap();
        let again = client.entries(Some(after(&back))).unwrap();
        assert_eq!(again, entries, "{}", client.id);
    }
}

#[test]
fn invalid_settings_are_rejected() {
    let named = |id: &str| KnownClient::named(id).unwrap();
    for (id, text, problem) in [
        ("cursor", "{\n  \"mcpServers\": {\n    oops\n", "line 3"),
        ("cursor", "[]", "expected a JSON object"),
        ("cursor", "{\"mcpServers\": []}", "`mcpServers` does not contain server entries"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}", "duplicate key `mcpServers`"),
        ("cursor", "{\"mcpServers\": {\"files\": {}, \"files\": {}}}", "duplicate key `files`"),
        ("codex", "a = 1\nb = \n", "line 2"),
        ("codex", "mcp_servers = 3\n", "`mcp_servers` does not contain server entries"),
        ("goose", "a: [1\n", "line"),
        ("goose", "extensions: 3\n", "`extensions` does not contain server entries"),
        ("goose", "- a\n", "expected a mapping"),
        ("goose", "a: 1\n---\nb: 2\n", "expected one YAML document"),
        ("continue", "mcpServers:\n  a: 1\n", "`mcpServers` does not contain server entries"),
    ] {
        let error = named(id).add_entries(Some(text), &[("files", &launch())]).unwrap_err().to_string();
        assert!(error.contains(problem), "{id}: {text}: {error}");
    }
}

#[test]
fn a_client_is_found_by_its_file_its_folder_or_its_program() {
    let home = tempfile::tempdir().unwrap();
    let places = ClientDirs::from_environment(home.path(), |_| None);
    let cursor = KnownClient::named("cursor").unwrap();
    let file = home.path().join(".cursor/mcp.json");
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Missing(file.clone())));
    assert_eq!(cursor.find(&places, |name| name == "cursor"), Some(FoundClient::Installed(file.clone())));
    std::fs::create_dir(home.path().join(".cursor")).unwrap();
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Installed(file.clone())));
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Configured(file)));
    // An existing home directory does not mean that Claude Code is installed.
    let code = KnownClient::named("claude-code").unwrap();
    assert_eq!(code.find(&places, |_| false), Some(FoundClient::Missing(home.path().join(".claude.json"))));
    let moved = ClientDirs::from_environment(home.path(), |name| {
        (name == "CODEX_HOME").then(|| home.path().join("cx"))
    });
    let codex = KnownClient::named("codex").unwrap();
    assert_eq!(codex.find(&moved, |_| false), Some(FoundClient::Missing(home.path().join("cx/config.toml"))));
}

#[test]
fn entries_are_parsed_in_every_format() {
    let cursor = KnownClient::named("cursor").unwrap();
    let text = json!({ "mcpServers": {
        "remote": { "url": "https://mcp.example/sse", "headers": {} },
        "off": { "command": "a", "disabled": true },
        "number": { "command": "a", "args": [1, true], "env": { "N": 2 } },
        "list": { "command": ["a", "b"] },
        "odd": { "command": 1 },
    } });
    let entries = cursor.entries(Some(&text.to_string())).unwrap();
    let of = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap();
    assert_eq!((of("remote").url.as_deref(), &of("remote").launch), (Some("https://mcp.example/sse"), &None));
    assert!(of("off").is_disabled);
    let number = of("number").launch.as_ref().unwrap();
    assert_eq!(
        (number.args.as_slice(), number.env.get("N").unwrap().as_str()),
        (&["1".to_owned(), "true".to_owned()][..], "2")
    );
    assert_eq!(of("list").launch.as_ref().unwrap().args, ["b"]);
    assert_eq!((&of("odd").launch, &of("odd").url), (&None, &None));
}

/// Generates settings in JSON with varying layout and comments.
fn layout() -> impl Strategy<Value = String> {
    let names = prop::collection::btree_set("[a-z][a-z-]{0,6}", 1..4);
    let comment = prop_oneof![Just(""), Just("// one\n"), Just("/* two */ ")];
    (names, comment.clone(), comment, any::<bool>(), prop_oneof![Just("  "), Just("\t"), Just("    ")], any::<bool>()).prop_map(
        |(names, first, second, trailing, indent, other)| {
            let comma = if trailing { "," } else { "" };
            let entries: Vec<String> = names
                .iter()
                .map(|name| format!("{indent}{indent}{second}\"{name}\": {{ \"command\": \"{name}\", \"args\": [\"é \\u0041\"] }}"))
                .collect();
            let other = if other { format!("{indent}\"theme\" : \"dark\",\n") } else { String::new() };
            format!(
                "{first}{{\n{other}{indent}\"mcpServers\": {{\n{}{comma}\n{indent}}}{comma}\n}}\n",
                entries.join(",\n")
            )
        },
    )
}

proptest! {
    #[test]
    fn connecting_and_disconnecting_restores_the_text(text in layout()) {
        let cursor = KnownClient::named("cursor").unwrap();
        let name = "Files of mine";
        let edit = cursor.add_entries(Some(&text), &[(name, &launch())]).unwrap();
        let back = cursor.set_entries(Some(after(&edit)), &[(name, None)]).unwrap();
        prop_assert_eq!(after(&back), text);
    }

    #[test]
    fn other_entries_never_change(text in "\\PC{0,60}") {
        for client in CLIENTS {
            if let Ok(edit) = client.add_entries(Some(&text), &[("files", &launch())]) {
                let entries = client.entries(Some(after(&edit))).unwrap();
                let others: Vec<&Value> = entries.iter().filter(|e| e.name != "files").map(|e| &e.value).collect();
                let before = client.entries(Some(&text)).unwrap();
                let before: Vec<&Value> = before.iter().filter(|e| e.name != "files").map(|e| &e.value).collect();
                prop_assert_eq!(others, before);
            }
        }
    }
}
