//! Tests that invalid policy files are rejected with a helpful message.

use crate::scene::{Scene, load, spelled};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, DynamicLists, Policy, WithinError, open_folders};
use serde_json::{Value, json};

fn policy_error(rule: &Value) -> String {
    let file = json!({ "rules": [rule] }).to_string();
    Policy::from_json(&file, "p.json", &spelled, &DynamicLists::default()).unwrap_err().to_string()
}

#[test]
fn invalid_rule_rejects_the_policy() {
    let rule = |conditions: Value| json!({ "name": "r", "if": conditions, "then": "allow" });
    for (rule, message) in [
        (
            rule(json!({ "sideEffects": true })),
            "`p.json`, line 1, rule `r`, field `if.sideEffects`: unknown condition",
        ),
        (
            rule(json!({ "roles": ["reed-path"] })),
            "`p.json`, line 1, rule `r`, field `if.roles[0]`: unknown role `reed-path`",
        ),
        (
            rule(json!({ "paths": { "roles": ["read-path"], "within": "rel" } })),
            "`p.json`, line 1, rule `r`, field `if.paths.within`: `rel` must be absolute or start with `~/`",
        ),
        (
            rule(json!({ "paths": { "roles": ["read-path"], "within": "~bob/x" } })),
            "`p.json`, line 1, rule `r`, field `if.paths.within`: `~bob/x` must be absolute or start with `~/`",
        ),
        (
            json!({ "name": "r", "if": {}, "then": "permit" }),
            "`p.json`, line 1, rule `r`, field `then`: `permit` is not a decision",
        ),
        (
            json!({ "name": "r", "if": {}, "then": "allow", "unless": 1 }),
            "`p.json`, line 1, rule `r`, field `unless`: unknown field",
        ),
        (json!({ "if": {}, "then": "allow" }), "`p.json`, line 1, rule `number 1`, field `name`: is missing"),
        (json!({ "name": "r", "then": "allow" }), "`p.json`, line 1, rule `r`, field `if`: is missing"),
        (
            json!({ "name": "", "if": {}, "then": "allow" }),
            "`p.json`, line 1, rule `number 1`, field `name`: a rule needs a name",
        ),
    ] {
        assert_eq!(policy_error(&rule), message);
    }
    let paths = json!({ "paths": { "roles": ["fetch-url"], "within": "/a" } });
    assert!(
        policy_error(&rule(paths)).ends_with("field `if.paths.roles`: `fetch-url` is not a role for paths")
    );
    let domains = json!({ "domains": { "roles": ["read-path"], "allowed": ["*"] } });
    assert!(
        policy_error(&rule(domains))
            .ends_with("field `if.domains.roles`: `read-path` is not a role for hosts")
    );
    let list = json!([{ "roles": ["github-owner"], "allowed": ["a"], "matchType": "globs" }]);
    assert!(policy_error(&rule(json!({ "lists": list }))).contains("unknown type `globs`"));
    let paths = json!({ "roles": ["read-path"], "within": "/a", "without": "/b" });
    assert!(policy_error(&rule(json!({ "paths": paths }))).contains("unknown field `without`"));
    assert!(policy_error(&rule(json!({ "server": "git" }))).contains("field `if.server`"));
}

#[test]
fn two_rules_of_one_name_and_other_versions_are_refused() {
    let load =
        |file: Value| Policy::from_json(&file.to_string(), "p.json", &spelled, &DynamicLists::default());
    let rule = json!({ "name": "r", "if": {}, "then": "allow" });
    assert!(
        load(json!({ "rules": [rule, rule] }))
            .unwrap_err()
            .to_string()
            .contains("another rule has this name")
    );
    assert!(
        load(json!({ "schemaVersion": 2, "rules": [] })).unwrap_err().to_string().contains("schemaVersion")
    );
    assert!(load(json!({ "schemaVersion": 1, "rules": [rule] })).is_ok());
    assert!(load(json!({})).is_err());
    let broken =
        Policy::from_json("{\n]", "p.json", &spelled, &DynamicLists::default()).unwrap_err().to_string();
    assert!(broken.contains("line 2"), "{broken}");
}

#[test]
fn duplicate_name_rejects_any_file() {
    let twice = "{\"rules\": [],\n \"rules\": []}";
    let policy = |text: &str| Policy::from_json(text, "p.json", &spelled, &DynamicLists::default());
    assert_eq!(policy(twice).unwrap_err().to_string(), "`p.json`, line 2: `rules` comes twice (column 8)");
    let deep = r#"{"rules":[{"name":"r","if":{"tool":["a"],"tool":["b"]},"then":"allow"}]}"#;
    assert!(policy(deep).unwrap_err().to_string().contains("`tool` comes twice"));
    assert!(policy(&deep.replacen("tool", "server", 1)).is_ok());
    let tools = r#"{"servers":{"s":{"tools":[]},"s":{"tools":[]}}}"#;
    assert!(Annotations::from_json(tools, "a").unwrap_err().to_string().contains("`s` comes twice"));
    let lists = r#"{"lists":{"l":{"values":[]},"l":{"values":[]}}}"#;
    assert!(DynamicLists::from_json(lists, "l").unwrap_err().to_string().contains("`l` comes twice"));
}

#[test]
fn undefined_list_rejects_the_policy() {
    let conditions = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["@hosts"] } });
    let rule = json!({ "name": "r", "if": conditions, "then": "deny" });
    let expected = "`p.json`, line 1, rule `r`, field `if.domains.allowed[0]`: unknown list `hosts`";
    assert_eq!(policy_error(&rule), expected);
    let lists = json!({ "lists": { "hosts": { "values": [] } } }).to_string();
    let lists = DynamicLists::from_json(&lists, "l").unwrap();
    let file = json!({ "rules": [rule] }).to_string();
    assert!(Policy::from_json(&file, "p.json", &spelled, &lists).is_ok());
}

#[test]
fn invalid_annotation_rejects_the_file() {
    let error = |args: Value| {
        let tool = json!({ "toolName": "t", "serverName": "s", "args": args });
        let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
        Annotations::from_json(&file, "a.json").map_err(|error| error.to_string())
    };
    let when = |condition: Value, roles: Value| json!({ "m": ["none"], "path": { "default": ["read-path", "write-path"], "when": [{ "condition": condition, "roles": roles }] } });
    let holds = json!({ "arg": "m", "equals": 1 });
    assert_eq!(
        error(json!({ "path": ["path"] })).unwrap_err(),
        "`a.json`, line 1, tool `s/t`, field `args.path[0]`: unknown role `path`"
    );
    assert_eq!(
        error(when(holds.clone(), json!(["delete-path"]))).unwrap_err(),
        "`a.json`, line 1, tool `s/t`, field `args.path.when[0].roles`: `delete-path` is not one of the default roles"
    );
    assert!(
        error(when(json!({ "arg": "m", "matches": "x" }), json!(["read-path"])))
            .unwrap_err()
            .contains("matches")
    );
    assert!(
        error(when(json!({ "arg": "m", "is": "odd" }), json!(["read-path"]))).unwrap_err().contains("`odd`")
    );
    assert!(
        error(json!({ "x": ["read-path", "fetch-url"] }))
            .unwrap_err()
            .contains("cannot both be roles of one argument")
    );
    assert!(error(when(holds.clone(), json!(["read-path"]))).is_ok());
    assert!(error(when(holds.clone(), json!(["none"]))).is_ok());
    assert!(error(when(holds, json!(["read-path", "write-path", "delete-path"]))).is_ok());
}

#[test]
fn condition_that_could_drop_a_role_is_rejected() {
    let load = |default: &str, condition: &str, roles: &str| {
        let path = format!(
            r#"{{ "default": {default}, "when": [{{ "condition": {condition}, "roles": {roles} }}] }}"#
        );
        let file = format!(
            r#"{{"servers":{{"s":{{"tools":[{{"toolName":"t","args":{{"mode":["none"],"path":{path}}},
               "inputSchema":{{"properties":{{"mode":{{}},"path":{{}},"more":{{}}}}}}}}]}}}}}}"#
        );
        Annotations::from_json(&file, "a.json").map(drop).map_err(|error| error.to_string())
    };
    let write = r#"["write-path"]"#;
    for (default, condition, roles, location, message) in [
        (write, r#"{"arg":"mdoe","is":"absent"}"#, r#"["none"]"#, ".condition.arg", "has no argument `mdoe`"),
        (write, r#"{"arg":"more","is":"absent"}"#, r#"["none"]"#, ".condition.arg", "has no argument `more`"),
        (write, r#"{"arg":"mode","equals":null}"#, r#"["none"]"#, ".condition.equals", "is null"),
        (write, r#"{"arg":"mode","in":null}"#, r#"["none"]"#, ".condition.in", "is null"),
        (write, r#"{"arg":"mode","in":["x",null]}"#, r#"["none"]"#, ".condition.in[1]", "is null"),
        (write, r#"{"arg":"mode","is":null}"#, r#"["none"]"#, ".condition.is", "is null"),
        (write, r#"{"arg":"mode","not":1}"#, r#"["none"]"#, ".condition.not", "unknown condition"),
        (
            write,
            r#"{"arg":"mode","equals":"x","is":"absent"}"#,
            r#"["none"]"#,
            ".condition",
            "; write only one condition",
        ),
        (write, r#"["mode","x"]"#, r#"["none"]"#, ".condition", "expected an object"),
        (
            write,
            r#"{"arg":"mode","equals":9007199254740992}"#,
            r#"["none"]"#,
            ".condition.equals",
            "some programs read `9007199254740992` as another number",
        ),
        (write, r#"{"arg":"mode","in":["x",-1e300]}"#, r#"["none"]"#, ".condition.in", "`-1e+300`"),
        (
            "[]",
            r#"{"arg":"mode","equals":"x"}"#,
            r#"["delete-path"]"#,
            ".roles",
            "`delete-path` is not one of the default roles",
        ),
        (
            r#"["none"]"#,
            r#"{"arg":"mode","equals":"x"}"#,
            r#"["none","delete-path"]"#,
            ".roles",
            "`delete-path` is not one of the default roles",
        ),
        (
            write,
            r#"{"arg":"mode","equals":"x"}"#,
            r#"["read-path"]"#,
            ".roles",
            "`read-path` is not one of the default roles",
        ),
    ] {
        let error = load(default, condition, roles).unwrap_err();
        let location = format!("`a.json`, line 1, tool `s/t`, field `args.path.when[0]{location}`: ");
        assert!(error.starts_with(&location) && error.contains(message), "{error}");
    }
    let two = load(write, r#"{"arg":"mode","equals":"x"}"#, r#"["write-path","fetch-url"]"#).unwrap_err();
    assert!(two.ends_with("`write-path` and `fetch-url` cannot both be roles of one argument"), "{two}");
    for (default, condition, roles) in [
        (write, r#"{"arg":"mode","is":"absent"}"#, r#"["none"]"#),
        (write, r#"{"arg":"mode","equals":"x"}"#, "[]"),
        (write, r#"{"arg":"mode"}"#, r#"["none"]"#),
        (write, r#"{"arg":"mode","in":["x",1,true]}"#, r#"["write-path","delete-path"]"#),
        (write, r#"{"arg":"mode","in":[9007199254740991,-9007199254740991,0.1]}"#, r#"["none"]"#),
        (write, r#"{"arg":"path","is":"truthy"}"#, write),
        ("[]", r#"{"arg":"mode","equals":"x"}"#, r#"["none"]"#),
    ] {
        assert_eq!(load(default, condition, roles), Ok(()), "{default} {condition} {roles}");
    }
}

#[test]
fn unknown_field_rejects_annotations_and_lists() {
    let tool = json!({ "toolName": "t", "serverName": "s", "args": {}, "comment": "c", "inputSchema": {}, "descends": true });
    let server = json!({ "inputHash": "h", "tools": [tool] });
    let file = json!({ "schemaVersion": 1, "generatedAt": "now", "servers": { "s": server } });
    let list = json!({ "values": ["a"], "manualAdditions": [], "manualRemovals": ["a"], "inputHash": "h", "resolvedAt": "now" });
    let lists = json!({ "schemaVersion": 1, "generatedAt": "now", "lists": { "n": list } });
    let load = |text: &str| Annotations::from_json(text, "a.json").map(drop).map_err(|e| e.to_string());
    let load_lists =
        |text: &str| DynamicLists::from_json(text, "l.json").map(drop).map_err(|e| e.to_string());
    let (text, of_lists) = (file.to_string(), lists.to_string());
    assert_eq!((load(&text), load_lists(&of_lists)), (Ok(()), Ok(())));
    let of_tool =
        |field: &str, message: &str| format!("`a.json`, line 1, tool `s/t`, field `{field}`: {message}");
    for (from, to, expected) in [
        ("descends", "decends", of_tool("decends", "unknown field")),
        (
            "\"serverName\":\"s\"",
            "\"serverName\":\"o\"",
            of_tool("serverName", "`o` does not match the server `s`"),
        ),
        (
            "\"t\"",
            "\"\"",
            "`a.json`, line 1, tool `s/number 1`, field `toolName`: a tool needs a name".to_owned(),
        ),
    ] {
        assert_eq!(load(&text.replacen(from, to, 1)).unwrap_err(), expected);
    }
    for (from, to) in [("schemaVersion", "schema_version"), ("generatedAt", "made"), ("inputHash", "hash")] {
        let error = load(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(&format!("unknown field `{to}`")) && error.contains("line 1"), "{error}");
    }
    let typo = load_lists(&of_lists.replacen("manualRemovals", "manualRemoval", 1)).unwrap_err();
    assert_eq!(typo, "`l.json`, line 1, list `n`, field `manualRemoval`: unknown field");
    assert!(
        load_lists(&of_lists.replacen("schemaVersion", "schema_version", 1))
            .unwrap_err()
            .contains("`schema_version`")
    );
}

#[test]
fn a_tool_annotated_twice_refuses_the_file() {
    let tool = json!({ "toolName": "t", "serverName": "s", "args": {} });
    let file = json!({ "servers": { "s": { "tools": [tool, tool] } } }).to_string();
    assert!(Annotations::from_json(&file, "a.json").unwrap_err().to_string().contains("annotated twice"));
}

#[test]
fn folder_is_open_only_if_no_earlier_rule_asks() {
    let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": "d", "principle": "p", "if": condition, "then": then, "reason": "r" });
    let within = |roles: &[&str], folder: &str| json!({ "paths": { "roles": roles, "within": folder } });
    let all = ["read-path", "write-path", "write-history", "delete-path", "delete-history"];
    let mut of_tool = within(&["read-path"], "/tool");
    of_tool["tool"] = json!(["read_file"]);
    let mut of_other = within(&["read-path"], "/other");
    of_other["server"] = json!(["git"]);
    let rules = [
        rule("keep", within(&["read-path"], "/shut/private"), "deny"),
        rule("ask-writes", within(&["write-path"], "/mixed"), "escalate"),
        rule("shut", within(&["read-path"], "/shut"), "allow"),
        rule("mixed", within(&all, "/mixed"), "allow"),
        rule("free", within(&all, "/free"), "allow"),
        rule("free-again", within(&["read-path"], "/free"), "allow"),
        rule("tool", of_tool, "allow"),
        rule("other", of_other, "allow"),
        rule("writes-only", within(&["write-path"], "/drop"), "allow"),
        rule("rest", json!({}), "escalate"),
        rule("late", within(&["read-path"], "/late"), "allow"),
    ];
    let text = json!({ "rules": rules }).to_string();
    let resolve = |raw: &str| CanonicalPath::assume_canonical(raw).map_err(WithinError::from);
    let policy = Policy::from_json(&text, "p.json", &resolve, &DynamicLists::default()).unwrap();
    let open: Vec<_> = open_folders(&policy, "filesystem")
        .into_iter()
        .map(|open| (open.path.to_string(), open.writable, open.rule))
        .collect();
    let expected = [("/mixed", false, "mixed"), ("/free", true, "free")];
    assert_eq!(open, expected.map(|(path, writable, rule)| (path.to_owned(), writable, rule.to_owned())));
}

#[test]
fn list_is_values_and_additions_minus_removals() {
    let list = json!({ "values": ["a", "b"], "manualAdditions": ["c"], "manualRemovals": ["b"] });
    let lists = DynamicLists::from_json(&json!({ "lists": { "l": list } }).to_string(), "l").unwrap();
    assert_eq!(lists.get("l"), ["a", "c"]);
    assert_eq!(lists.get("m"), [""; 0]);
}

#[test]
fn removal_in_another_spelling_affects_only_allow_rules() {
    let list =
        json!({ "values": ["Evil.org", "ok.org", "b.org."], "manualRemovals": ["evil.ORG.", "b.org"] });
    let lists = DynamicLists::from_json(&json!({ "lists": { "l": list } }).to_string(), "l").unwrap();
    let verdict = |then: &str, host: &str| {
        let sites = json!({ "domains": { "roles": ["fetch-url"], "allowed": ["@l"] } });
        let rule = json!({ "name": "sites", "if": sites, "then": then });
        let mut scene = Scene::new(&[]);
        scene.policy = load(&json!({ "rules": [rule] }), &lists);
        scene.verdict_text("other", "get", &json!({ "url": format!("https://{host}/") }))
    };
    for host in ["evil.org", "EVIL.org", "b.org"] {
        assert_eq!(verdict("allow", host), "deny default-deny", "{host}");
        assert_eq!(verdict("escalate", host), "escalate sites", "{host}");
        assert_eq!(verdict("deny", host), "deny sites", "{host}");
    }
    assert_eq!(verdict("allow", "ok.org"), "allow sites");
    assert_eq!(verdict("allow", "other.org"), "deny default-deny");
}
