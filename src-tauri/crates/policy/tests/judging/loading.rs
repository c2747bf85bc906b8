//! Tests error locations in files, and the examples in rules.

use crate::scene::{Scene, path, spelled};
use ironcurtain_policy::{Annotations, DynamicLists, Policy};
use serde_json::{Value, json};

fn policy_error(text: &str) -> String {
    Policy::from_json(text, "p.json", &spelled, &DynamicLists::default()).unwrap_err().to_string()
}

fn annotations_error(text: &str) -> String {
    Annotations::from_json(text, "a.json").unwrap_err().to_string()
}

#[test]
fn an_error_in_a_rule_names_the_line() {
    let file = r#"{
  "rules": [
    { "name": "first", "if": {}, "then": "deny" },
    {
      "name": "second",
      "if": {
        "tool": ["read"],
        "lists": [
          { "roles": ["email-address"], "allowed": ["a"], "matchType": "emails" },
          { "roles": ["email-address"],
            "allowed": [
              "a",
              "@friends"
            ], "matchType": "emails" }
        ]
      },
      "then": "allow"
    }
  ]
}"#;
    let second = |line: usize, field: &str, message: &str| {
        format!("`p.json`, line {line}, rule `second`, field `{field}`: {message}")
    };
    assert_eq!(policy_error(file), second(13, "if.lists[1].allowed[1]", "unknown list `friends`"));
    let known = file.replace("@friends", "b");
    assert!(Policy::from_json(&known, "p.json", &spelled, &DynamicLists::default()).is_ok());
    let changed = |from: &str, to: &str| policy_error(&known.replacen(from, to, 1));
    assert_eq!(changed("\"tool\": [", "\"tools\": ["), second(7, "if.tools", "unknown condition"));
    assert_eq!(changed("\"allow\"", "\"permit\""), second(17, "then", "`permit` is not a decision"));
    let error = changed("{ \"roles\": [\"email-address\"],\n", "{ \"roles\": [\"email\"],\n");
    assert_eq!(error, second(10, "if.lists[1].roles[0]", "unknown role `email`"));
    assert_eq!(
        changed("\"second\"", "\"first\""),
        "`p.json`, line 5, rule `first`, field `name`: another rule has this name"
    );
    // A missing field is reported at the line on which its rule starts, two lines earlier.
    assert_eq!(
        changed("\"name\": \"second\",", ""),
        "`p.json`, line 4, rule `number 2`, field `name`: is missing"
    );
    assert_eq!(
        policy_error("{\n \"rules\": [],\n \"schemaVersion\": 2\n}"),
        "`p.json`, line 3: `schemaVersion` must be 1; update IronCurtain, or the file"
    );
}

#[test]
fn an_error_in_an_annotation_names_the_line() {
    let file = r#"{ "servers": {
  "s": { "tools": [
    { "toolName": "t", "args": {} },
    { "toolName": "u",
      "args": {
        "dots.in.it": ["read-path"],
        "path": {
          "default": ["read-path"],
          "when": [
            { "condition": { "arg": "m", "is": "present" },
              "roles": ["none"] }
          ] }, "m": ["none"] },
      "descends": true }
  ] }
} }"#;
    assert!(Annotations::from_json(file, "a.json").is_ok());
    let changed = |from: &str, to: &str| annotations_error(&file.replacen(from, to, 1));
    let second = |line: usize, field: &str, message: &str| {
        format!("`a.json`, line {line}, tool `s/u`, field `{field}`: {message}")
    };
    assert_eq!(
        changed("[\"none\"]", "[\"delete-path\"]"),
        second(11, "args.path.when[0].roles", "`delete-path` is not one of the default roles")
    );
    assert!(changed("present", "odd").starts_with(&second(
        10,
        "args.path.when[0].condition.is",
        "unknown value `odd`"
    )));
    assert_eq!(
        changed("[\"read-path\"]", "[\"read-path\", \"x\"]"),
        second(6, "args.dots.in.it[1]", "unknown role `x`")
    );
    assert!(changed("true", "1").starts_with(&second(13, "descends", "invalid type")));
    assert_eq!(
        changed("\"u\"", "\"t\""),
        "`a.json`, line 4, tool `s/t`, field `toolName`: the tool is annotated twice"
    );
    assert_eq!(
        changed("\"toolName\": \"u\",", ""),
        "`a.json`, line 4, tool `s/number 2`, field `toolName`: is missing"
    );
    let nameless = "`a.json`, line 4, tool `s/number 2`, field `toolName`: a tool needs a name";
    assert_eq!(changed("\"u\"", "\"\""), nameless);
}

#[test]
fn an_error_in_a_list_names_the_line() {
    let file = "{ \"lists\": {\n \"a\": { \"values\": [] },\n \"b\": {\n \"values\": [1] } } }";
    let error = |text: &str| DynamicLists::from_json(text, "l.json").map_err(|error| error.to_string());
    let invalid = error(file).unwrap_err();
    assert!(invalid.starts_with("`l.json`, line 4, list `b`, field `values[0]`: invalid type"), "{invalid}");
    let missing = error(&file.replace("\"values\": [1]", "")).unwrap_err();
    assert_eq!(missing, "`l.json`, line 3, list `b`, field `values`: is missing");
    assert!(error(&file.replace("[1]", "[\"1\"]")).is_ok());
}

/// Loads a policy that has a rule for reading in `~/docs` with these examples, after a rule that denies everything.
fn examples(examples: &Value) -> Result<(), String> {
    let within =
        json!({ "paths": { "roles": ["read-path"], "within": "~/docs/" }, "server": ["filesystem"] });
    let rule = json!({ "name": "docs", "if": within, "then": "allow", "examples": examples });
    let shadow = json!({ "name": "all", "if": {}, "then": "deny" });
    let file = serde_json::to_string_pretty(&json!({ "rules": [shadow, rule] })).unwrap();
    // On disk, the folder resolves to a different path. The check of the examples must ignore this path.
    let elsewhere = |_: &str| Ok(path("/elsewhere"));
    let policy = Policy::from_json(&file, "p.json", &elsewhere, &DynamicLists::default());
    let annotations = Scene::new(&[]).annotations;
    let checked = policy.and_then(|policy| policy.check_examples("p.json", &annotations, &path("/home/ann")));
    checked.map_err(|error| error.to_string())
}

fn read(at: &str) -> Value {
    json!({ "server": "filesystem", "tool": "read", "arguments": { "path": at } })
}

#[test]
fn failing_example_rejects_the_file() {
    let good = json!({
        "match": [read("~/docs/a"), read("/home/ann/docs"), { "server": "filesystem", "tool": "many", "arguments": { "paths": ["/x", "~/docs/a"] } }],
        "noMatch": [read("~/docs2/a"), read("/elsewhere/a"), { "server": "other", "tool": "read", "arguments": { "path": "~/docs/a" } }, { "server": "other", "tool": "mail", "arguments": { "to": "ann" } }],
    });
    assert_eq!(examples(&good), Ok(()));
    assert_eq!(
        examples(&json!({ "match": [read("~/docs/a"), read("/x")] })).unwrap_err(),
        "`p.json`, line 31, rule `docs`, field `examples.match[1]`: the rule does not cover this call"
    );
    assert_eq!(
        examples(&json!({ "noMatch": [read("~/docs/a")] })).unwrap_err(),
        "`p.json`, line 24, rule `docs`, field `examples.noMatch[0]`: the rule covers this call"
    );
}

#[test]
fn example_that_is_no_valid_call_rejects_the_file() {
    let error = |example: Value| examples(&json!({ "match": [example] })).unwrap_err();
    for (at, message) in [
        ("docs/a", "`docs/a` is not an absolute path"),
        ("~bob/a", "`~bob/a` is not an absolute path"),
        ("~/docs/../a", "is not in canonical form"),
    ] {
        assert!(error(read(at)).contains(message), "{}", error(read(at)));
    }
    assert!(
        error(json!({ "server": "filesystem", "tool": "x" }))
            .contains("the tool `filesystem/x` has not been reviewed")
    );
    assert!(error(json!({ "server": "filesystem" })).contains("missing field `tool`"));
    assert!(error(json!({ "server": "s", "tool": "t", "args": {} })).contains("unknown field `args`"));
    let unknown = examples(&json!({ "matches": [] })).unwrap_err();
    assert!(unknown.contains("field `examples.matches`: unknown field `matches`"), "{unknown}");
}

#[test]
fn unknown_field_rejects_the_policy_but_fields_of_the_existing_system_do_not() {
    let known = [
        "$schema",
        "generatedAt",
        "constitutionHash",
        "inputHash",
        "listDefinitions",
        "skippedServers",
        "serverName",
    ];
    for field in known {
        for value in [json!("text"), json!([1]), json!(null)] {
            let file = json!({ "rules": [], field: value }).to_string();
            assert!(Policy::from_json(&file, "p", &spelled, &DynamicLists::default()).is_ok(), "{file}");
        }
    }
    for field in ["denyRules", "Rules", "rule", "_comment"] {
        let error = policy_error(&format!("{{ \"rules\": [],\n \"{field}\": [] }}"));
        assert!(
            error.starts_with(&format!("`p.json`, line 2: `{field}`: unknown field `{field}`")),
            "{error}"
        );
    }
}

#[test]
fn a_rule_without_a_reason_says_that_it_has_none() {
    for rule in [json!({}), json!({ "reason": "" }), json!({ "reason": " \n" })] {
        let mut rule = rule;
        rule["name"] = json!("r");
        rule["if"] = json!({});
        rule["then"] = json!("deny");
        let file = json!({ "rules": [rule] }).to_string();
        let policy = Policy::from_json(&file, "p", &spelled, &DynamicLists::default()).unwrap();
        assert_eq!(&**policy.rules()[0].reason(), "the rule gives no reason");
    }
}
