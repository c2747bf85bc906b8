//! Every client's settings: made, added to, changed, given back.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use ironcurtain_client_config::{
    CLIENTS, Edit, FoundClient, KnownClient, Places, ShimSelection, StartCommand,
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

/// The text that is kept for a client and an operation; written anew with `UPDATE_GOLDEN=1`.
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

/// Settings as a person has them: comments, other keys, another server.
fn lived_in(client: &KnownClient) -> String {
    let file = format!("{}.before", client.id);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn settings_that_are_not_there_are_made() {
    for client in CLIENTS {
        let edit = client.with(None, &[("files", &launch())]).unwrap();
        golden(client, "created", after(&edit));
        let entries = client.entries(Some(after(&edit))).unwrap();
        let [entry] = entries.as_slice() else { panic!("{}: {entries:?}", client.id) };
        assert_eq!((entry.name.as_str(), entry.launch.as_ref()), ("files", Some(&launch())));
        assert!(entry.launch.as_ref().unwrap().is_shim());
        assert_eq!(entry.launch.as_ref().unwrap().shim_selection(), ShimSelection::Server("files"));
        assert!(
            client.with(Some(after(&edit)), &[("files", &launch())]).unwrap().is_empty(),
            "{}",
            client.id
        );
    }
}

#[test]
fn the_servers_that_our_shim_gives_are_read_as_they_were_written() {
    for selection in [ShimSelection::All, ShimSelection::Server("a"), ShimSelection::Profile("work")] {
        assert_eq!(StartCommand::of_shim(Path::new(SHIM), selection).shim_selection(), selection);
    }
}

#[test]
fn an_entry_is_added_beside_others_and_removed_without_a_trace() {
    for client in CLIENTS {
        let before = lived_in(client);
        let edit = client.with(Some(&before), &[("files", &launch())]).unwrap();
        golden(client, "added", after(&edit));
        for line in before.lines() {
            let line = line.trim_end_matches(',');
            assert!(after(&edit).contains(line), "{}: {line}", client.id);
        }
        let back = client.changed(Some(after(&edit)), &[("files", None)]).unwrap();
        assert_eq!(after(&back), before, "{}", client.id);
    }
}

#[test]
fn an_entry_is_replaced_and_put_back() {
    for client in CLIENTS {
        let before = lived_in(client);
        let entries = client.entries(Some(&before)).unwrap();
        let old = entries.iter().find(|entry| entry.name == "notes").unwrap();
        let started = old.launch.as_ref().unwrap();
        assert_eq!(
            (started.command.as_str(), started.args.as_slice()),
            ("npx", &["-y".to_owned(), "notes-mcp@1.2.3".to_owned()][..])
        );
        assert_eq!(started.env.get("NOTES_TOKEN").map(String::as_str), Some("t0ken"), "{}", client.id);
        let shim = StartCommand::of_shim(Path::new(SHIM), ShimSelection::Server("notes"));
        let edit = client.with(Some(&before), &[("notes", &shim)]).unwrap();
        golden(client, "moved", after(&edit));
        let back = client.changed(Some(after(&edit)), &[("notes", Some(old.value.clone()))]).unwrap();
        let again = client.entries(Some(after(&back))).unwrap();
        assert_eq!(again, entries, "{}", client.id);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_line() {
    let named = |id: &str| KnownClient::named(id).unwrap();
    for (id, text, problem) in [
        ("cursor", "{\n  \"mcpServers\": {\n    oops\n", "line 3"),
        ("cursor", "[]", "must hold one JSON object"),
        ("cursor", "{\"mcpServers\": []}", "`mcpServers` does not hold entries"),
        ("cursor", "{\"mcpServers\": {}, \"mcpServers\": {}}", "`mcpServers` is there twice"),
        ("cursor", "{\"mcpServers\": {\"files\": {}, \"files\": {}}}", "`files` is there twice"),
        ("codex", "a = 1\nb = \n", "line 2"),
        ("codex", "mcp_servers = 3\n", "`mcp_servers` does not hold entries"),
        ("goose", "a: [1\n", "line"),
        ("goose", "extensions: 3\n", "`extensions` does not hold entries"),
        ("goose", "- a\n", "must hold one mapping"),
        ("goose", "a: 1\n---\nb: 2\n", "more than one document"),
        ("continue", "mcpServers:\n  a: 1\n", "`mcpServers` does not hold entries"),
    ] {
        let error = named(id).with(Some(text), &[("files", &launch())]).unwrap_err().to_string();
        assert!(error.contains(problem), "{id}: {text}: {error}");
    }
}

#[test]
fn a_client_is_found_by_its_file_its_folder_or_its_program() {
    let home = tempfile::tempdir().unwrap();
    let places = Places::of(home.path(), |_| None);
    let cursor = KnownClient::named("cursor").unwrap();
    let file = home.path().join(".cursor/mcp.json");
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Missing(file.clone())));
    assert_eq!(cursor.find(&places, |name| name == "cursor"), Some(FoundClient::Installed(file.clone())));
    std::fs::create_dir(home.path().join(".cursor")).unwrap();
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Installed(file.clone())));
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(cursor.find(&places, |_| false), Some(FoundClient::Configured(file)));
    // The home directory is no sign of Claude Code.
    let code = KnownClient::named("claude-code").unwrap();
    assert_eq!(code.find(&places, |_| false), Some(FoundClient::Missing(home.path().join(".claude.json"))));
    let moved = Places::of(home.path(), |name| (name == "CODEX_HOME").then(|| home.path().join("cx")));
    let codex = KnownClient::named("codex").unwrap();
    assert_eq!(codex.find(&moved, |_| false), Some(FoundClient::Missing(home.path().join("cx/config.toml"))));
}

#[test]
fn entries_are_understood_in_every_shape_that_people_write() {
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

/// JSON as people and programs lay it out, with comments where a client takes them.
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
    fn what_is_connected_and_disconnected_is_as_it_was(text in layout()) {
        let cursor = KnownClient::named("cursor").unwrap();
        let name = "Files of mine";
        let edit = cursor.with(Some(&text), &[(name, &launch())]).unwrap();
        let back = cursor.changed(Some(after(&edit)), &[(name, None)]).unwrap();
        prop_assert_eq!(after(&back), text);
    }

    #[test]
    fn a_text_is_never_changed_but_where_it_is_meant(text in "\\PC{0,60}") {
        for client in CLIENTS {
            if let Ok(edit) = client.with(Some(&text), &[("files", &launch())]) {
                let entries = client.entries(Some(after(&edit))).unwrap();
                let others: Vec<&Value> = entries.iter().filter(|e| e.name != "files").map(|e| &e.value).collect();
                let before = client.entries(Some(&text)).unwrap();
                let before: Vec<&Value> = before.iter().filter(|e| e.name != "files").map(|e| &e.value).collect();
                prop_assert_eq!(others, before);
            }
        }
    }
}
