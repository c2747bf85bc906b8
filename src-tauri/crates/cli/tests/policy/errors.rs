//! Tests the error messages for invalid files and arguments, as text and as JSON.

use crate::home::{Home, docs, output_text};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

/// Returns the error that a command printed as JSON. Asserts that standard error contains the same message.
fn error(output: &Output) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let message = report["error"]["message"].as_str().unwrap();
    assert!(text.contains(message), "{text}: {message}");
    report["error"].clone()
}

#[test]
fn json_errors_contain_the_problem_and_its_location() {
    let home = Home::new();
    let good = home.file("good.json", &docs("allow", "~/docs"));
    let broken =
        home.file("broken.json", &json!({ "rules": [{ "name": "r", "if": { "tol": [] }, "then": "deny" }] }));
    let (folder, pipe) = (home.path("person").to_str().unwrap().to_owned(), home.pipe("pipe"));
    let missing =
        json!({ "message": "failed to read `/missing`: the file does not exist", "file": "/missing" });
    let is = |file: &str, kind: &str| {
        let message = format!("failed to read `{file}`: it is {kind}, not a regular file");
        json!({ "message": message, "file": file })
    };
    let unknown = format!("`{broken}`, line 1, rule `r`, field `if.tol`: unknown condition");
    let refused = json!({ "message": unknown, "file": broken, "line": 1, "rule": "r", "field": "if.tol" });
    let explain = ["explain", "--server", "filesystem", "--tool", "read_text_file", "--args"];
    let args = |args: &'static str| [&explain[..], &[args]].concat();
    let not_args = |why: &str| json!({ "message": format!("`--args` must be a JSON object: {why}") });
    for (arguments, expected) in [
        (vec!["check", "/missing"], missing.clone()),
        (vec!["simulate", "/missing"], missing.clone()),
        (vec!["diff", &good, "/missing"], missing.clone()),
        (vec!["replay", "--policy", "/missing"], missing),
        (vec!["check", &folder], is(&folder, "a folder")),
        (vec!["check", &pipe], is(&pipe, "a named pipe")),
        (vec!["check", &good, "--lists", &pipe], is(&pipe, "a named pipe")),
        (vec!["diff", &good, &pipe], is(&pipe, "a named pipe")),
        (vec!["simulate", &pipe], is(&pipe, "a named pipe")),
        (vec!["simulate", "/dev/zero"], is("/dev/zero", "a device")),
        (vec!["diff", &good, &broken], refused),
        (args("{"), not_args("EOF while parsing an object (column 1)")),
        (args("[]"), not_args("invalid type: list, expected an object")),
        (args(r#"{"path":"/a","path":"/b"}"#), not_args("`path` comes twice (column 19)")),
        (args(r#"{"a":{"b":1,"b":2}}"#), not_args("`b` comes twice (column 15)")),
        (
            args(r#"{"a":-18446744073709551617}"#),
            not_args("a whole number of 20 digits cannot be read exactly"),
        ),
    ] {
        let output = home.ironcurtain().args(["policy", "--json"]).args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(error(&output), expected, "{arguments:?}");
    }
    let run = |arguments: &[&str]| home.ironcurtain().arg("--json").args(arguments).output().unwrap();
    assert!(error(&run(&["status"]))["message"].as_str().unwrap().contains("is not running"));
    let usage = run(&["policy", "chek"]);
    assert_eq!(usage.status.code(), Some(2));
    assert_eq!(error(&usage), json!({ "message": "unrecognized subcommand 'chek'" }));
    home.file("ic/config/mcp-servers.json", &json!({ "fs": ["c"] }));
    let servers = home.path("ic/config/mcp-servers.json");
    let message =
        format!("`{}`, line 1: server `fs`: invalid type: list, expected an object", servers.display());
    assert_eq!(error(&run(&["servers", "list"])), json!({ "message": message, "file": servers, "line": 1 }));
    let running = {
        std::fs::remove_file(&servers).unwrap();
        home.start()
    };
    let refused = json!({ "message": "no grant `g`", "code": "not-found" });
    assert_eq!(error(&run(&["grants", "revoke", "g"])), refused);
    running.stop();
}

#[test]
fn audit_log_that_is_not_a_regular_file_does_not_block() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("ic/state/audit")).unwrap();
    let run = |command: &[&str]| home.ironcurtain().args(command).output().unwrap();
    let refused = |file: &str, kind: &str| {
        let expected = format!("failed to open `{file}`: it is {kind}, not a regular file");
        for command in [["policy", "replay"], ["audit", "verify"], ["audit", "search"], ["audit", "export"]] {
            let (good, text) = output_text(&run(&command));
            assert!(!good && text.contains(&expected), "{command:?}: {text}");
        }
    };
    let log = home.pipe(crate::record::LOG);
    refused(&log, "a named pipe");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    refused(&log, "a folder");
    std::fs::remove_dir(&log).unwrap();
    let closed = home.pipe("ic/state/audit/audit-000000000001.jsonl");
    refused(&closed, "a named pipe");
    std::fs::remove_file(&closed).unwrap();
    let (good, text) = output_text(&run(&["audit", "verify"]));
    assert!(good, "{text}");
}

#[test]
fn scenarios_are_parsed_strictly() {
    let home = Home::new();
    let report = |text: &str| {
        let file = home.path("s.json");
        std::fs::write(&file, text).unwrap();
        home.text(&["simulate", file.to_str().unwrap()]).1
    };
    let scenario = r#"{"name":"n","server":"s","tool":"t","arguments":{"a":1},"expect":"deny"}"#;
    let all = |scenario: &str| report(&format!("{{\"scenarios\": [\n{scenario}]}}"));
    assert_eq!(all(scenario), "1 scenario, 0 failed.\n");
    for (text, message) in [
        (scenario.replace("\"a\":1", "\"a\":1,\"a\":2"), "line 2: `a` comes twice"),
        (
            scenario.replace("\"a\":1", "\"a\":18446744073709551617"),
            "line 2: a whole number of 20 digits cannot be read",
        ),
        (
            scenario.replace("{\"a\":1}", "[]"),
            "line 2: scenario `n`, `scenarios[0].arguments`: invalid type: list",
        ),
        (scenario.replace("deny", "no"), "line 2: scenario `n`, `scenarios[0].expect`: unknown variant `no`"),
        ("[\"n\",\"s\",\"t\",{},\"deny\",null]".to_owned(), "line 2: `scenarios[0]`: invalid type: list"),
    ] {
        let report = all(&text);
        assert!(report.contains(&format!("s.json`, {message}")), "{report}");
    }
    assert!(
        report("{\"schemaVersion\": 2, \"scenarios\": []}").contains("line 1: `schemaVersion` must be 1")
    );
}

#[test]
fn file_names_that_are_not_utf_8_are_reported() {
    let home = Home::new();
    let name = home.path("p").join("..").join(OsStr::from_bytes(b"a\xff.json"));
    let (policy, scenarios) = (docs("allow", "~/docs"), json!({ "scenarios": [scenario()] }));
    std::fs::create_dir(home.path("p")).unwrap();
    for (action, content) in [("check", policy), ("simulate", scenarios)] {
        std::fs::write(&name, content.to_string()).unwrap();
        let output = home.ironcurtain().args(["policy", "--json", action]).arg(&name).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(output.status.success(), "{action}");
        assert!(report["file"].as_str().unwrap().ends_with("a\u{fffd}.json"), "{report}");
        std::fs::write(&name, "[]").unwrap();
        let output = home.ironcurtain().args(["policy", action]).arg(&name).output().unwrap();
        let all = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.code() == Some(1) && all.contains("a\u{fffd}.json`, line 1"), "{all}");
    }
}

fn scenario() -> Value {
    json!({ "name": "n", "server": "s", "tool": "t", "arguments": {}, "expect": "deny" })
}
