//! Tests checking, explaining, simulating and comparing policies without a trusted process.

use crate::home::{Home, docs};
use serde_json::{Value, json};

#[test]
fn call_is_explained_with_the_shipped_and_the_users_files() {
    let home = Home::new();
    let (good, text) = home.explain("~/link/a.txt");
    assert!(good, "{text}");
    let (link, docs_dir) = (home.path("person/link"), home.path("person/docs"));
    for line in [
        format!("the symlink {} leads to {}", link.display(), docs_dir.display()),
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
fn unannotated_tool_is_explained_by_its_servers_entry() {
    let home = Home::new();
    let explain = ["explain", "--server", "s", "--tool", "zap", "--args", "{\"path\":\"/etc/passwd\"}"];
    let with = |unannotated: Value, network: &str| {
        let sandbox = json!({ "network": { "allowedDomains": [network] } });
        let entry = json!({ "command": "c", "unannotated": unannotated, "sandbox": sandbox });
        home.file("ic/config/mcp-servers.json", &json!({ "s": entry }));
        home.text(&explain).1
    };
    let text = with(json!("deny"), "a.example");
    assert!(text.contains("Verdict: DENY, by `structural-unknown-tool`"), "{text}");
    let text = with(json!("ask"), "a.example");
    assert!(
        text.contains("escalate: this tool is not annotated, and its server's entry says to ask"),
        "{text}"
    );
    assert!(text.contains("Verdict: ESCALATE, by `structural-unannotated`"), "{text}");
    let found = home.json(&explain);
    assert_eq!((&found["decision"], &found["rule"]), (&json!("escalate"), &json!("structural-unannotated")));
    let file = home.file("q.json", &docs("allow", "~/docs"));
    let (_, text) = home.text(&["check", &file]);
    assert!(text.contains("Calls of unannotated tools require your approval on `s`"), "{text}");
    assert_eq!(home.json(&["check", &file])["asksAboutUnannotated"], json!(["s"]));
}

#[test]
fn policy_check_reports_findings() {
    let home = Home::new();
    let file = home.file("p.json", &docs("allow", "~"));
    let (good, text) = home.text(&["check", &file]);
    assert!(!good);
    let broad = format!(
        "`{file}`, line 1, rule `docs`, field `if.paths.within`: `{}` contains",
        home.path("person").display()
    );
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
    assert!(!good && text.starts_with("REJECTED: ") && text.contains(&wrong), "{text}");
    let found = &home.json(&["check", &failing])["findings"][0];
    let expected = json!({
        "kind": "refused", "file": failing, "line": 1, "rule": "docs", "field": "examples.match[0]",
        "message": "the rule does not cover this call",
    });
    assert_eq!(*found, expected);
    let (good, text) = home.text(&["check", "/missing.json"]);
    assert!(!good && text.contains("failed to read `/missing.json`"), "{text}");
}

#[test]
fn findings_have_lines_in_json() {
    let home = Home::new();
    let file = |text: &str| {
        std::fs::write(home.path("p.json"), text).unwrap();
        home.path("p.json").to_str().unwrap().to_owned()
    };
    let rules = "{ \"rules\": [\n{ \"name\": \"all\", \"if\": {}, \"then\": \"deny\" },\n{ \"name\": \"late\", \"then\": \"allow\",\n\"if\": {\n\"tool\": [\"read_text_file\"] } },\n{ \"name\": \"none\", \"then\": \"deny\", \"if\": { \"server\": [\"x\"],\n\"tool\": [] } } ] }";
    let found = home.json(&["check", &file(rules)]);
    let late = "has no effect: everything it covers is already decided differently by `all`";
    let findings = [
        json!({ "kind": "shadowed", "line": 4, "rule": "late", "field": "if", "message": late, "by": ["all"], "otherwise": true }),
        json!({ "kind": "dead", "line": 7, "rule": "none", "field": "if.tool", "message": "is empty, so it never matches" }),
    ];
    assert_eq!(found["findings"], json!(findings));
    let (_, text) = home.text(&["check", &file(rules)]);
    assert!(text.contains("p.json`, line 7, rule `none`, field `if.tool`: is empty"), "{text}");
    for (text, line, message) in [
        ("{\n\"rules\": [\n}", 3, "expected value (column 1)"),
        ("{\n\"rules\": {}}", 2, "`rules`: invalid type: object, expected a list"),
        ("\u{feff}{}", 1, "it begins with a byte order mark; save it as UTF-8 without one"),
    ] {
        let found = home.json(&["check", &file(text)]);
        let path = home.path("p.json");
        let expected = json!({ "kind": "refused", "file": path, "line": line, "message": message });
        assert_eq!(found["findings"], json!([expected]));
    }
}

#[test]
fn explanation_includes_the_gate() {
    let home = Home::new();
    let network = json!({ "network": { "allowedDomains": ["a.example"] } });
    home.file("ic/config/mcp-servers.json", &json!({ "web": { "command": "c", "sandbox": network } }));
    let tool = json!({ "toolName": "get", "serverName": "web", "args": { "url": ["fetch-url"] } });
    home.file(
        "ic/config/policy/tool-annotations.json",
        &json!({ "servers": { "web": { "tools": [tool] } } }),
    );
    let args = |host: &str| json!({ "url": format!("https://{host}/") }).to_string();
    let outside = "it is not one of this server's allowed hosts";
    for (then, host, decision, words, settled) in [
        (
            None,
            "b.example",
            "escalate",
            format!("escalate: {outside}, and no rule covers it"),
            json!({ "by": "gate", "decision": "escalate" }),
        ),
        (
            None,
            "a.example",
            "deny",
            "deny: no rule covers it".to_owned(),
            json!({ "by": "nothing", "decision": "deny" }),
        ),
        (
            Some("allow"),
            "b.example",
            "escalate",
            format!("escalate: {outside}, although the rule `r` allows it"),
            json!({ "by": "gate", "rule": "r", "decision": "escalate" }),
        ),
        (
            Some("escalate"),
            "b.example",
            "escalate",
            format!("escalate: by the rule `r`: why; and {outside}"),
            json!({ "by": "rule", "rule": "r", "decision": "escalate", "reason": "why" }),
        ),
        (
            Some("deny"),
            "b.example",
            "deny",
            format!("deny: by the rule `r`: why; and {outside}"),
            json!({ "by": "rule", "rule": "r", "decision": "deny", "reason": "why" }),
        ),
        (
            Some("allow"),
            "a.example",
            "allow",
            "allow: by the rule `r`: why".to_owned(),
            json!({ "by": "rule", "rule": "r", "decision": "allow", "reason": "why" }),
        ),
    ] {
        let rule =
            |then| json!({ "name": "r", "if": { "roles": ["fetch-url"] }, "then": then, "reason": "why" });
        let rules: Vec<Value> = then.map(rule).into_iter().collect();
        let policy = home.file("p.json", &json!({ "rules": rules }));
        let args = args(host);
        let explain = ["explain", "--server", "web", "--tool", "get", "--policy", &policy, "--args", &args];
        let (_, text) = home.text(&explain);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("    ")).collect::<Vec<_>>(),
            [format!("    {words}")]
        );
        let found = home.json(&explain);
        assert_eq!(
            (&found["decision"], &found["steps"][0]["settled"]),
            (&json!(decision), &settled),
            "{then:?} {host}"
        );
    }
}

#[test]
fn failed_scenarios_are_reported_with_the_reason() {
    let home = Home::new();
    home.file("ic/config/policy/compiled-policy.json", &docs("allow", "~/docs"));
    let scenario = |name: &str, path: &str, expect: &str| json!({ "name": name, "server": "filesystem", "tool": "read_text_file", "arguments": { "path": path }, "expect": expect });
    let good = [scenario("docs", "~/docs/a.txt", "allow"), scenario("keys", "~/.ssh/id", "deny")];
    let (passed, text) = home.text(&["simulate", &home.file("good.json", &json!({ "scenarios": good }))]);
    assert!(passed, "{text}");
    let bad = home.file("bad.json", &json!({ "scenarios": [good[0], scenario("other", "~/x", "allow")] }));
    let (passed, text) = home.text(&["simulate", &bad]);
    assert!(!passed);
    assert!(text.contains("FAILED `other`: expected allow, found escalate by `rest`"), "{text}");
    let found = home.json(&["simulate", &bad]);
    assert_eq!(found["failed"], json!(1));
    let other = json!({
        "name": "other", "good": false, "expected": "allow", "expectedRule": null,
        "decision": "escalate", "rule": "rest", "reason": "ask",
    });
    assert_eq!(found["scenarios"][1], other);
    let by = |rule: &str| {
        let mut by = scenario("docs", "~/docs/a.txt", "allow");
        by["rule"] = json!(rule);
        home.file("by.json", &json!({ "scenarios": [by] }))
    };
    let found = home.json(&["simulate", &by("rest")]);
    let report = &found["scenarios"][0];
    let (rule, reason) = (json!("docs"), json!("documents"));
    assert_eq!(
        (&report["expectedRule"], &report["rule"], &report["reason"]),
        (&json!("rest"), &rule, &reason)
    );
    let failed =
        "FAILED `docs`: expected allow by `rest`, found allow by `docs`: documents\n1 scenario, 1 failed.\n";
    assert_eq!(home.text(&["simulate", &by("rest")]), (false, failed.to_owned()));
    assert_eq!(home.text(&["simulate", &by("docs")]), (true, "1 scenario, 0 failed.\n".to_owned()));
    let refused = |content: Value| {
        let (passed, text) = home.text(&["simulate", &home.file("refused.json", &content)]);
        assert!(!passed);
        text
    };
    let none = refused(json!({ "scenarios": [] }));
    assert!(none.contains("line 1: `scenarios` is empty; add at least one"), "{none}");
    for sandbox in ["rel", "./rel", "", "~ann"] {
        let text = refused(json!({ "scenarios": good, "sandbox": sandbox }));
        assert!(text.contains("line 1: `sandbox`: must be absolute or start with `~/`"), "{text}");
    }
    let docs = json!({ "scenarios": [good[0]], "sandbox": "~/docs" });
    assert!(home.text(&["simulate", &home.file("sandbox.json", &docs)]).0);
    let mut unsure = good[1].clone();
    unsure["expect"] = json!("perhaps");
    let text = refused(json!({ "scenarios": [good[0], unsure] }));
    assert!(text.contains("scenario `keys`, `scenarios[1].expect`: unknown variant"), "{text}");
    let odd = home.file("odd.json", &json!({ "scenarios": [], "scenario": [] }));
    let (passed, text) = home.text(&["simulate", &odd]);
    assert!(!passed && text.contains("odd.json`, line 1: `scenario`: unknown field"), "{text}");
}

#[test]
fn diff_names_looser_calls() {
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

#[test]
fn diff_reports_every_kind_of_change() {
    let home = Home::new();
    let tool = |name: &str, args: Value| json!({ "toolName": name, "serverName": "s", "args": args, "inputSchema": {} });
    let mut none = tool("none", json!({ "x": ["none"] }));
    none["inputSchema"] = json!({ "properties": { "x": {} }, "required": ["y"] });
    let tools = [tool("get", json!({ "path": ["read-path"] })), none];
    let annotations = home.file("tools.json", &json!({ "servers": { "s": { "tools": tools } } }));
    let rule = |name: &str, within: &str, then: &str| {
        let paths = json!({ "roles": ["read-path"], "within": within });
        json!({ "name": name, "if": { "paths": paths }, "then": then })
    };
    let (kept, moved) = (rule("kept", "/k", "allow"), rule("moved", "/m", "allow"));
    let old = json!({ "rules": [kept, moved, rule("said", "/s", "deny"), rule("left", "/l", "allow")] });
    let new = json!({ "rules": [moved, kept, rule("said", "/s", "escalate"), rule("new", "/n", "allow")] });
    let (old, new) = (home.file("old.json", &old), home.file("new.json", &new));
    let diff = ["diff", &old, &new, "--annotations", &annotations];
    let text = "rule added: `new`\nrule removed: `left`\nrule changed: `said`\nrules were reordered\n\
        LOOSER: s/get from deny (no rule) to allow (`new`), 2 probes, as {\"path\":\"/n\"}\n\
        LOOSER: s/get from deny (`said`) to escalate (`said`), 2 probes, as {\"path\":\"/s\"}\n\
        stricter: s/get from allow (`left`) to deny (no rule), 2 probes, as {\"path\":\"/l\"}\n\
        not every probe of s/none was tried: there are too many, or no valid one could be generated\n\
        Compared 12 probes by the rules alone; differences that no probe hits are not shown.\n";
    assert_eq!(home.text(&diff), (true, text.to_owned()));
    let change = |at: &str, old: [&str; 2], new: [&str; 2]| {
        let side = |[decision, rule]: [&str; 2]| json!({ "decision": decision, "rule": rule });
        json!({
            "server": "s", "tool": "get", "arguments": { "path": at }, "old": side(old), "new": side(new), "probes": 2,
        })
    };
    let looser = [
        change("/n", ["deny", "default-deny"], ["allow", "new"]),
        change("/s", ["deny", "said"], ["escalate", "said"]),
    ];
    let stricter = [change("/l", ["allow", "left"], ["deny", "default-deny"])];
    let expected = json!({
        "added": ["new"], "removed": ["left"], "changed": ["said"], "reordered": true, "looser": looser,
        "stricter": stricter, "probes": 12, "cutShort": ["s/none"], "complete": false,
    });
    assert_eq!(home.json(&diff), expected);
}
