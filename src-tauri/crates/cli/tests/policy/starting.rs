//! Tests that the trusted process does not start with an invalid policy.

use crate::home::{Home, docs, output_text};
use serde_json::{Value, json};

const IN_FORCE: &str = "ic/config/policy/compiled-policy.json";

#[test]
fn rule_that_contradicts_its_example_prevents_the_start() {
    let home = Home::new();
    let policy = |path: &str| {
        let mut policy = docs("allow", "~/docs");
        let call = json!({ "server": "filesystem", "tool": "read_text_file", "arguments": { "path": path } });
        policy["rules"][0]["examples"] = json!({ "match": [call] });
        policy
    };
    let file = home.file(IN_FORCE, &policy("~/other/a.txt"));
    let report = refusal(&home);
    let place = format!("`{file}`, line 1, rule `docs`, field `examples.match[0]`: the rule does not cover");
    assert!(report.contains(&place), "{report}");
    home.file(IN_FORCE, &policy("~/docs/a.txt"));
    home.start().stop();
}

#[test]
fn start_errors_name_the_location() {
    let home = Home::new();
    let mistakes = [
        (
            IN_FORCE,
            "{\"rules\": [\n {\"name\": \"r\", \"then\": \"allow\",\n \"if\": {\n\"wen\": 1}}]}",
            ", line 4, rule `r`, field `if.wen`: ",
        ),
        (
            "ic/config/policy/tool-annotations.json",
            "{\"servers\": {\"s\": {\"tools\": [\n{\"toolName\": \"t\", \"serverName\": \"s\", \"args\": {\n\"p\": [\"path\"]}}]}}}",
            ", line 3, tool `s/t`, field `args.p",
        ),
        (
            "ic/config/policy/dynamic-lists.json",
            "{\"lists\": {\n\"l\": {\n\"values\": 3}}}",
            ", line 3, list `l`, field `values`: ",
        ),
    ];
    for (below, text, place) in mistakes {
        let file = home.file(below, &Value::Null);
        std::fs::write(&file, text).unwrap();
        let report = refusal(&home);
        assert!(report.contains(&format!("`{file}`{place}")), "{report}");
        std::fs::remove_file(&file).unwrap();
    }
    home.start().stop();
}

/// Returns the error of a trusted process that fails to start.
fn refusal(home: &Home) -> String {
    let (started, report) =
        output_text(&home.ironcurtain().args(["daemon", "--allow-root"]).output().unwrap());
    assert!(!started, "{report}");
    report
}
