//! Tests that untrusted text in the output can neither control the terminal nor start a line.

use crate::home::{Home, docs, output_text};
use crate::record::{self, call};
use serde_json::{Value, json};
use std::process::Stdio;

const EVIL: &str = "x\u{1b}[31m\nFORGED\u{202e}\u{9b}y";
const SHOWN: &str = "x\\u{1b}[31m\\u{a}FORGED\\u{202e}\\u{9b}y";
/// Expected form of the hostile text if an error quotes it on several lines.
const QUOTED: &str = "x\\u{1b}[31m\n  | FORGED\\u{202e}\\u{9b}y";
/// Expected form of the hostile text's last word, for commands that split it into words.
const LAST_WORD: &str = "`FORGED\\u{202e}\\u{9b}y`";

/// Returns a command's complete output. Asserts that it contains no control characters.
fn shown(home: &Home, arguments: &[&str]) -> String {
    let (_, text) = output_text(&home.ironcurtain().args(arguments).output().unwrap());
    assert!([SHOWN, QUOTED, LAST_WORD].iter().any(|shown| text.contains(shown)), "{arguments:?}: {text:?}");
    safe(&text);
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{text}");
    text
}

fn safe(text: &str) {
    let raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(raw), "{text:?}");
}

/// Creates a home in which every name contains hostile text.
fn evil() -> Home {
    let home = Home::new();
    let mut policy = docs("allow", "~/docs");
    policy["rules"][0]["name"] = EVIL.into();
    policy["rules"][1] =
        json!({ "name": format!("{EVIL}2"), "if": { "tool": [EVIL] }, "then": "deny", "reason": EVIL });
    home.file("evil.json", &policy);
    home.file("broken.json", &json!({ "rules": [{ "name": EVIL, "if": {}, "then": "no" }] }));
    home.file(
        "unlisted.json",
        &json!({ "rules": [{ "name": "r", "then": "deny",
        "if": { "domains": { "roles": ["fetch-url"], "allowed": [format!("@{EVIL}")] } } }] }),
    );
    let scenario = json!({ "name": EVIL, "server": EVIL, "tool": "t", "expect": "allow" });
    home.file("scenarios.json", &json!({ "scenarios": [scenario] }));
    home.file(EVIL, &json!({ "rules": [{}] }));
    std::os::unix::fs::symlink(home.path("person/docs"), home.path("person").join(EVIL)).unwrap();
    let mut entry = call([EVIL, EVIL], &json!({ "path": EVIL }), &[EVIL], ["allow", EVIL]);
    entry["client"] = EVIL.into();
    record::write(&home, &[entry]);
    home
}

#[test]
fn untrusted_text_is_escaped() {
    let home = evil();
    let file = |below: &str| home.path(below).to_str().unwrap().to_owned();
    let path = json!({ "path": format!("~/{EVIL}/a.txt") }).to_string();
    let read = ["policy", "explain", "--server", "filesystem", "--tool", "read_text_file", "--args", &path];
    assert!(shown(&home, &read).contains("the symlink "));
    shown(&home, &[&read[..], &["--policy", &file("evil.json"), "--client", EVIL]].concat());
    shown(&home, &["policy", "explain", "--server", "filesystem", "--tool", EVIL]);
    for name in ["evil.json", "broken.json", "unlisted.json", EVIL, &format!("no{EVIL}")] {
        shown(&home, &["policy", "check", &file(name)]);
    }
    shown(&home, &["policy", "diff", &file("evil.json"), &home.file("plain.json", &docs("deny", "~/docs"))]);
    shown(&home, &["policy", "simulate", &file("scenarios.json")]);
    shown(&home, &["policy", "replay"]);
    shown(&home, &["policy", "replay", "--since", EVIL]);
    shown(&home, &["servers", "add", EVIL]);
    shown(&home, &["servers", "add", "time", "--from", &format!("no{EVIL}")]);
}

#[test]
fn text_from_the_trusted_process_is_escaped() {
    let home = evil();
    let running = home.start();
    shown(&home, &["audit", "tail"]);
    shown(&home, &["grants", "revoke", EVIL]);
    std::fs::copy(home.path("broken.json"), home.path("ic/config/policy/compiled-policy.json")).unwrap();
    home.eventually("the trouble", || home.status().contains("is not a decision"));
    shown(&home, &["status"]);
    running.stop();
}

#[test]
fn json_is_escaped_and_keeps_its_value() {
    let home = evil();
    let file = home.path(EVIL).to_str().unwrap().to_owned();
    for arguments in [
        ["policy", "check", &file],
        ["policy", "explain", "--server=filesystem"],
        ["policy", "replay", "--json"],
    ] {
        let tool = format!("--tool={EVIL}");
        let tool = if arguments.contains(&"explain") { vec![tool.as_str()] } else { Vec::new() };
        let output = home.ironcurtain().arg("--json").args(arguments).args(tool).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        safe(&text);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(all_texts(&value).any(|text| text.contains(EVIL)), "{text}");
    }
}

fn all_texts(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(all_texts)),
        Value::Object(fields) => Box::new(fields.values().flat_map(all_texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
    }
}

#[test]
fn closed_pipe_ends_the_command_silently() {
    let home = Home::new();
    let file = home.file("p.json", &docs("allow", "~/docs"));
    for arguments in [
        &["policy", "check", &file][..],
        &["policy", "check", &file, "--json"],
        &["policy", "check", "/missing", "--json"],
        &["policy", "diff", &file, &file],
        &["policy", "replay"],
        &["servers", "list"],
        &["servers", "catalog"],
        &["--help"],
        &["--version"],
    ] {
        let run = |stdout: Stdio| home.ironcurtain().args(arguments).stdout(stdout).output().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = run(writer.into());
        assert_eq!(output.status.code(), Some(141), "{arguments:?}");
        let report = String::from_utf8(output.stderr).unwrap();
        assert!(report.is_empty() || arguments.contains(&"/missing"), "{arguments:?}: {report}");
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(run(full.into()).status.code(), Some(1), "{arguments:?}");
        assert!([Some(0), Some(1)].contains(&run(Stdio::piped()).status.code()), "{arguments:?}");
    }
}
