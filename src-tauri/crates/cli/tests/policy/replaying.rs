//! Tests re-evaluating recorded calls with a different policy.

use crate::home::{Home, docs};
use crate::record::{self, LOG, call};
use serde_json::{Value, json};

const READ: [&str; 2] = ["filesystem", "read_text_file"];
const WRITE: [&str; 2] = ["filesystem", "write_file"];
const PUSH: [&str; 2] = ["git", "git_push"];

fn home() -> Home {
    let home = Home::new();
    home.file("ic/config/policy/compiled-policy.json", &docs("allow", "~/docs"));
    let servers = json!({ "filesystem": { "command": "fs" }, "git": { "command": "git-server" } });
    home.file("ic/config/mcp-servers.json", &servers);
    let tool = |on: [&str; 2], args: Value| json!({ "serverName": on[0], "toolName": on[1], "args": args });
    let write = json!({ "path": ["write-path"], "content": ["none"] });
    let push = json!({ "repo_path": ["read-path"], "remote": ["git-remote-url"] });
    let tools = [tool(READ, json!({ "path": ["read-path"] })), tool(WRITE, write)];
    let annotations = json!({ "servers": {
        "filesystem": { "tools": tools }, "git": { "tools": [tool(PUSH, push)] },
    } });
    home.file("ic/config/policy/tool-annotations.json", &annotations);
    home
}

fn reading(home: &Home, below: &str, output_text: [&str; 2]) -> Value {
    let path = home.path(below).to_str().unwrap().to_owned();
    call(READ, &json!({ "path": path }), &[&path], output_text)
}

#[test]
fn similar_calls_are_reported_once() {
    let home = home();
    let mut granted = reading(&home, "person/other.txt", ["allow", "grant"]);
    granted["grantId"] = json!("g1");
    record::write(
        &home,
        &[
            reading(&home, "person/docs/a.txt", ["allow", "docs"]),
            reading(&home, "person/docs/a.txt", ["escalate", "old"]),
            reading(&home, "person/docs/new.txt", ["escalate", "old"]),
            reading(&home, "person/b.txt", ["allow", "old"]),
            granted,
            reading(&home, "person/.ssh/id", ["deny", "structural-protected-path"]),
        ],
    );
    let (good, text) = home.text(&["replay"]);
    assert!(good, "{text}");
    let expected = format!(
        "LOOSER: filesystem/read_text_file from escalate (`old`) to allow (`docs`), 2 calls (entries 2, 3)\n  \
         for example on 2023-11-14 22:13:21Z: {}  documents\n\
         stricter: filesystem/read_text_file from allow (`old`) to escalate (`rest`), 1 call (entries 4)\n  \
         for example on 2023-11-14 22:13:23Z: {}  ask\n\
         6 calls recorded: 2 looser, 1 stricter, 3 unchanged, 0 not replayed.\n",
        home.path("person/docs/a.txt").display(),
        home.path("person/b.txt").display(),
    );
    assert_eq!(text, expected);
    let found = home.json(&["replay", "--since", "2023-11-14T22:13:23Z"]);
    let counts = [&found["calls"], &found["looser"], &found["same"]];
    assert_eq!(counts, [&json!(3), &json!([]), &json!(2)]);
    assert_eq!(found["stricter"][0]["calls"][0]["entry"], json!(4));
    let (good, text) = home.text(&["replay", "--since", "lately"]);
    assert!(!good && text.contains("expected `30m`, `12h`, `7d`"), "{text}");
}

#[test]
fn first_five_of_similar_calls_are_listed() {
    let home = home();
    let alike = |count: usize| {
        let calls = vec![reading(&home, "person/docs/a.txt", ["escalate", "old"]); count];
        record::write(&home, &calls);
        home.text(&["replay"]).1.lines().next().unwrap().to_owned()
    };
    let report = "LOOSER: filesystem/read_text_file from escalate (`old`) to allow (`docs`)";
    assert_eq!(alike(5), format!("{report}, 5 calls (entries 1, 2, 3, 4, 5)"));
    assert_eq!(alike(7), format!("{report}, 7 calls (entries 1, 2, 3, 4, 5 and 2 more)"));
}

#[test]
fn calls_that_cannot_be_replayed_are_reported_with_the_reason() {
    let home = home();
    let path = |below: &str| home.path(below).to_str().unwrap().to_owned();
    std::os::unix::fs::symlink(home.path("person/docs"), home.path("person/moved")).unwrap();
    let (moved, gone, kept) = (path("person/moved"), path("person/gone"), path("person/docs/a.txt"));
    let push = |to: &str| json!({ "repo_path": to, "remote": "origin" });
    std::fs::create_dir_all(home.path("person/docs/app/.git")).unwrap();
    std::fs::write(home.path("person/docs/app/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(
        home.path("person/docs/app/.git/config"),
        "[remote \"origin\"]\nurl = https://forge.example/a/b\n",
    )
    .unwrap();
    let app = path("person/docs/app");
    record::write(
        &home,
        &[
            // A redacted argument prevents a replay only if the policy uses it.
            call(READ, &json!({ "path": "/[redacted: a token] x" }), &["/ghp_x x"], ["escalate", "rest"]),
            call(
                WRITE,
                &json!({ "path": kept, "content": "long [cut: 99 bytes more]" }),
                &[&kept],
                ["escalate", "rest"],
            ),
            call(["left", "tool"], &json!({}), &[], ["allow", "x"]),
            call(READ, &json!({ "path": moved }), &[&moved], ["allow", "docs"]),
            call(PUSH, &push(&gone), &[&gone], ["escalate", "rest"]),
            call(PUSH, &push(&app), &[&app], ["escalate", "rest"]),
            reading(&home, "person/docs/a.txt", ["allow", "docs"]),
        ],
    );
    let found = home.json(&["replay"]);
    assert_eq!((&found["looser"], &found["stricter"], &found["same"]), (&json!([]), &json!([]), &json!(3)));
    let expected = json!([
        {
            "kind": "redacted", "entries": [1],
            "message": "the argument `path` is redacted in the audit log, and the policy depends on it",
        },
        { "kind": "server-gone", "entries": [3], "message": "the server `left` is no longer configured" },
        {
            "kind": "moved", "entries": [4],
            "message": format!("`{moved}` now leads to `{}`", path("person/docs")),
        },
        {
            "kind": "repository-gone", "entries": [5],
            "message": format!("`{gone}` no longer exists, so git cannot resolve its remotes"),
        },
    ]);
    assert_eq!(found["notReplayed"], expected);
    let (_, text) = home.text(&["replay"]);
    assert!(text.contains("not replayed: the server `left` is no longer configured (entries 3)\n"), "{text}");
}

#[test]
fn entries_after_a_change_of_the_log_are_not_replayed() {
    let home = home();
    assert_eq!(home.json(&["replay"])["calls"], json!(0));
    let calls =
        ["a", "b", "c"].map(|name| reading(&home, &format!("person/docs/{name}.txt"), ["allow", "docs"]));
    record::write(&home, &calls);
    assert_eq!(home.json(&["replay"])["calls"], json!(3));
    let log = home.path(LOG);
    let whole = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("{whole}{{\"seq\":4,")).unwrap();
    let being_written = home.json(&["replay"]);
    assert_eq!((&being_written["calls"], &being_written["problem"]), (&json!(3), &Value::Null));
    std::fs::write(&log, whole.replace("docs/b.txt", "docs/x.txt")).unwrap();
    let (good, text) = home.text(&["replay"]);
    assert!(!good);
    let report = "THE AUDIT LOG WAS CHANGED after 1 entries: line 2: its content does not match its hash; later entries";
    assert!(text.contains(report), "{text}");
    assert!(
        text.ends_with("1 call recorded: 0 looser, 0 stricter, 1 unchanged, 0 not replayed.\n"),
        "{text}"
    );
}
