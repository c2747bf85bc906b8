//! Tests `policy explain` with a client's permanent grants.

use crate::home::Home;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Creates a home and starts the trusted process once, which creates the database.
fn home() -> Home {
    let home = Home::new();
    home.start().stop();
    home
}

/// Adds a grant to the database. `to` is the client's executable, its name and the server. `what` is a path with the
/// given kinds of access, or a host and port.
fn grant(home: &Home, id: &str, to: [&str; 3], kind: &str, what: &str, access: [bool; 3]) {
    let [client, name, server] = to;
    let (host, port) = what.split_once(':').map_or((None, None), |(host, port)| (Some(host), Some(port)));
    let path = host.is_none().then_some(what);
    let [read, write, delete] = access;
    Connection::open(home.path("ic/state/state.db"))
        .unwrap()
        .execute(
            "INSERT INTO grants (id, client, client_name, server, kind, path, can_read, can_write, can_delete, host,
             port, lifetime, created_ms, uses, provenance) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,'always',0,0,'')",
            params![id, client, name, server, kind, path, read, write, delete, host, port],
        )
        .unwrap();
}

fn explain<'a>(args: &'a str, client: &'a str) -> [&'a str; 9] {
    ["explain", "--server", "filesystem", "--tool", "read_text_file", "--args", args, "--client", client]
}

#[test]
fn clients_grants_for_the_server_are_listed_and_applied() {
    let home = home();
    let path = |below: &str| home.path(below).to_str().unwrap().to_owned();
    let (docs, file) = (path("person/docs"), path("person/docs/a.txt"));
    let ours = ["/opt/agent", "Agent", "filesystem"];
    grant(&home, "g1", ours, "tree", &docs, [true, false, true]);
    grant(&home, "g2", ours, "file", &file, [false, true, false]);
    grant(&home, "g3", ours, "host", "api.example:443", [false; 3]);
    grant(&home, "g4", ["/opt/agent", "Agent", "git"], "tree", &docs, [true; 3]);
    grant(&home, "g5", ["/opt/other", "Other", "filesystem"], "tree", &path("person"), [true; 3]);
    let args = json!({ "path": file }).to_string();
    let expected = format!(
        "filesystem/read_text_file\n  `path` is {file}\n  read-path in `path`: {file}\n    allow: by the grant `g1`\n\
         Verdict: ALLOW, by `grant`.\n`/opt/agent` has 3 permanent grants for this server:\n  \
         `g1`: read+delete {docs} and below\n  `g2`: write {file}\n  `g3`: reach api.example:443\n\
         Grants that end with their session were not considered.\n"
    );
    for client in ["/opt/agent", "Agent"] {
        assert_eq!(home.text(&explain(&args, client)), (true, expected.clone()));
    }
    let grants = json!([
        { "id": "g1", "path": docs, "access": ["read", "delete"], "kind": "folder" },
        { "id": "g2", "path": file, "access": ["write"], "kind": "file" },
        { "id": "g3", "path": "api.example:443", "access": ["reach"], "kind": "host" },
    ]);
    let found = home.json(&explain(&args, "Agent"));
    assert_eq!(found["client"], json!({ "key": "/opt/agent", "grants": grants }));
    assert_eq!(
        (&found["decision"], &found["steps"][0]["settled"]),
        (&json!("allow"), &json!({ "by": "grant", "grant": "g1", "decision": "allow" }))
    );
    let (_, nobody) = home.text(&explain(&args, "/opt/new"));
    assert!(nobody.contains("Verdict: ESCALATE"), "{nobody}");
    assert!(nobody.contains("`/opt/new` has no permanent grants for this server.\n"), "{nobody}");
}

#[test]
fn ambiguous_client_name_is_rejected() {
    let home = home();
    for (id, client) in [("g1", "/opt/a"), ("g2", "/opt/b"), ("g3", "/opt/c"), ("g4", "/opt/c")] {
        grant(&home, id, [client, "Agent", "filesystem"], "tree", "/x", [true; 3]);
    }
    let (good, text) = home.text(&explain("{}", "Agent"));
    let report = "several clients are named `Agent`; use `/opt/a` or `/opt/b` or `/opt/c`";
    assert!(!good && text.contains(report), "{text}");
    let found = home.json(&explain("{}", "/opt/c"));
    assert_eq!(found["client"]["grants"].as_array().map(Vec::len), Some(2));
}

#[test]
fn granted_host_is_allowed() {
    let home = home();
    let network = json!({ "network": { "allowedDomains": ["a.example"] } });
    home.file("ic/config/mcp-servers.json", &json!({ "web": { "command": "c", "sandbox": network } }));
    let tool = json!({ "toolName": "get", "serverName": "web", "args": { "url": ["fetch-url"] } });
    let annotations = json!({ "servers": { "web": { "tools": [tool] } } });
    home.file("ic/config/policy/tool-annotations.json", &annotations);
    grant(&home, "g1", ["/opt/agent", "Agent", "web"], "host", "api.example:443", [false; 3]);
    let settled = |url: &str| -> Value {
        let args = json!({ "url": url }).to_string();
        let call = ["explain", "--server", "web", "--tool", "get", "--args", &args, "--client", "Agent"];
        home.json(&call)["steps"][0]["settled"].clone()
    };
    let granted = json!({ "by": "grant", "grant": "g1", "decision": "allow" });
    assert_eq!(settled("https://api.example/x"), granted);
    let elsewhere = settled("https://api.example:8443/x");
    assert_eq!((&elsewhere["by"], &elsewhere["decision"]), (&json!("rule"), &json!("escalate")));
}
