//! Looking at policies without a trusted process.

use crate::home::{Home, docs};
use serde_json::{Value, json};

#[test]
fn a_call_is_explained_by_what_ships_and_by_the_persons_files() {
    let home = Home::new();
    let (good, text) = home.explain("~/link/a.txt");
    assert!(good, "{text}");
    let (link, docs_dir) = (home.path("person/link"), home.path("person/docs"));
    for line in [
        format!("the link {} leads to {}", link.display(), docs_dir.display()),
        format!("which is {}/a.txt", docs_dir.display()),
        "escalate: by the rule `ask-before-reading`".to_owned(),
        "Verdict: ESCALATE, by `ask-before-reading`".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} in\n{text}");
    }
    home.file("ic/config/policy/compiled-policy.json", &docs("allow", "~/docs"));
    let (_, text) = home.explain("~/link/a.txt");
    assert!(text.contains("Verdict: ALLOW, by `docs`."), "{text}");
    let (_, text) = home.explain("~/other");
    assert!(text.contains("not `docs`: the path is not in its folder"), "{text}");
    let (_, text) = home.explain("~/.ssh/id");
    assert!(text.contains("Verdict: DENY, by `structural-protected-path`"), "{text}");
    let (_, text) = home.explain("~bob/x");
    assert!(text.contains("Verdict: DENY, by `structural-invalid-argument`"), "{text}");
    let args = json!({ "path": "~" }).to_string();
    let (_, text) =
        home.text(&["explain", "--server", "filesystem", "--tool", "list_directory", "--args", &args]);
    assert!(text.contains("Verdict: DENY") && text.contains("cannot be opened as a whole"), "{text}");
    let args = json!({ "path": "a.txt" }).to_string();
    let explain = ["explain", "--server", "filesystem", "--tool", "read_text_file", "--args", &args];
    let found = home.json(&[&explain[..], &["--sandbox", "~/docs"]].concat());
    assert_eq!((&found["decision"], &found["rule"]), (&json!("allow"), &json!("structural-sandbox-allow")));
    assert_eq!(found["paths"][0]["path"], json!(docs_dir.join("a.txt")));
}

#[test]
fn a_policy_is_checked() {
    let home = Home::new();
    let file = home.file("p.json", &docs("allow", "~"));
    let (good, text) = home.text(&["check", &file]);
    assert!(!good);
    let broad =
        format!("`{file}`, rule `docs`, field `if.paths.within`: `{}` holds", home.path("person").display());
    assert!(text.contains(&broad), "{text}");
    assert_eq!(home.json(&["check", &file])["findings"][0]["kind"], "broad-folder");
    let (good, text) = home.text(&["check", &home.file("q.json", &docs("allow", "~/docs"))]);
    assert!(good, "{text}");
    let bad = home.file("bad.json", &docs("allow", "docs"));
    let (good, text) = home.text(&["check", &bad]);
    assert!(!good);
    let wrong = format!("`{bad}`, line 1, rule `docs`, field `if.paths.within`: `docs` must be absolute");
    assert!(text.contains(&wrong), "{text}");
    let read =
        |at: &str| json!({ "server": "filesystem", "tool": "read_text_file", "arguments": { "path": at } });
    let with = |example: Value| {
        let mut policy = docs("allow", "~/docs");
        policy["rules"][0]["examples"] = json!({ "match": [example] });
        home.file("examples.json", &policy)
    };
    let (good, text) = home.text(&["check", &with(read("~/docs/a.txt"))]);
    assert!(good, "{text}");
    let failing = with(read("~/a.txt"));
    let (good, text) = home.text(&["check", &failing]);
    let wrong =
        format!("`{failing}`, line 1, rule `docs`, field `examples.match[0]`: the rule does not cover");
    assert!(!good && text.starts_with("REFUSED: ") && text.contains(&wrong), "{text}");
    let found = &home.json(&["check", &failing])["findings"][0];
    let expected = json!({
        "kind": "refused", "file": failing, "line": 1, "rule": "docs", "field": "examples.match[0]",
        "message": "the rule does not cover this call",
    });
    assert_eq!(*found, expected);
    let (good, text) = home.text(&["check", "/missing.json"]);
    assert!(!good && text.contains("`/missing.json` cannot be read"), "{text}");
}

#[test]
fn scenarios_say_what_failed_and_why() {
    let home = Home::new();
    home.file("ic/config/policy/compiled-policy.json", &docs("allow", "~/docs"));
    let scenario = |name: &str, path: &str, expect: &str| json!({ "name": name, "server": "filesystem", "tool": "read_text_file", "arguments": { "path": path }, "expect": expect });
    let good = [scenario("docs", "~/docs/a.txt", "allow"), scenario("keys", "~/.ssh/id", "deny")];
    let (passed, text) = home.text(&["simulate", &home.file("good.json", &json!({ "scenarios": good }))]);
    assert!(passed, "{text}");
    let bad = home.file("bad.json", &json!({ "scenarios": [good[0], scenario("other", "~/x", "allow")] }));
    let (passed, text) = home.text(&["simulate", &bad]);
    assert!(!passed);
    assert!(text.contains("FAILED `other`: expected allow, but it is escalate by `rest`"), "{text}");
    let found = home.json(&["simulate", &bad]);
    assert_eq!((&found["failed"], &found["scenarios"][1]["decision"]), (&json!(1), &json!("escalate")));
    let odd = home.file("odd.json", &json!({ "scenarios": [], "scenario": [] }));
    let (passed, text) = home.text(&["simulate", &odd]);
    assert!(!passed && text.contains("odd.json`: unknown field `scenario`"), "{text}");
}

#[test]
fn a_difference_names_what_becomes_looser() {
    let home = Home::new();
    let old = home.file("old.json", &docs("escalate", "~/docs"));
    let new = home.file("new.json", &docs("allow", "~/docs"));
    let (good, text) = home.text(&["diff", &old, &new]);
    assert!(good, "{text}");
    assert!(text.contains("rule changed: `docs`"), "{text}");
    assert!(
        text.contains("LOOSER: filesystem/read_text_file from escalate (`docs`) to allow (`docs`)"),
        "{text}"
    );
    assert!(!text.contains("stricter:"), "{text}");
    let back = home.json(&["diff", &new, &old]);
    assert_eq!(back["looser"], json!([]));
    assert!(!back["stricter"].as_array().unwrap().is_empty());
}
