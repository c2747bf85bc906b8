//! Tests strict parsing: a list is not an object, and errors name their location.

use crate::scene::spelled;
use ironcurtain_policy::{Annotations, DynamicLists, LoadError, Policy};
use serde_json::{Value, json};

/// Returns copies of a value. In each copy, a different object is replaced with a list of its values.
fn with_a_list_for_an_object(whole: &Value) -> Vec<Value> {
    let child_keys = |value: &Value| match value {
        Value::Object(fields) => fields.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut all = Vec::new();
    let mut pointers = vec![String::new()];
    while let Some(pointer) = pointers.pop() {
        let value = whole.pointer(&pointer).unwrap();
        pointers.extend(child_keys(value).into_iter().map(|key: String| format!("{pointer}/{key}")));
        // The arguments of an example are passed on unchanged.
        if let Some(fields) = value.as_object().filter(|_| !pointer.contains("/arguments/")) {
            let mut other = whole.clone();
            *other.pointer_mut(&pointer).unwrap() = fields.values().cloned().collect();
            all.push(other);
        }
    }
    all
}

#[test]
fn list_is_never_accepted_as_an_object() {
    let call = json!({ "server": "s", "tool": "t", "arguments": {} });
    let conditions = json!({
        "paths": { "roles": ["read-path"], "within": "/a" },
        "domains": { "roles": ["fetch-url"], "allowed": ["a.example"] },
        "lists": [{ "roles": ["github-owner"], "allowed": ["a"], "matchType": "identifiers" }],
    });
    let examples = json!({ "match": [call], "noMatch": [call] });
    let rule = json!({ "name": "r", "if": conditions, "then": "allow", "examples": examples });
    let policy = json!({ "schemaVersion": 1, "rules": [rule] });
    let guard = json!({ "condition": { "arg": "p", "equals": 1 }, "roles": ["none"] });
    let args = json!({ "p": { "default": ["read-path"], "when": [guard] } });
    let tools = json!({ "servers": { "s": { "tools": [{ "toolName": "t", "args": args }] } } });
    let lists = json!({ "lists": { "l": { "values": [] } } });
    let load_policy = |file: &Value| {
        Policy::from_json(&file.to_string(), "f", &spelled, &DynamicLists::default()).map(drop)
    };
    let load_tools = |file: &Value| Annotations::from_json(&file.to_string(), "f").map(drop);
    let load_lists = |file: &Value| DynamicLists::from_json(&file.to_string(), "f").map(drop);
    type Load<'a> = &'a dyn Fn(&Value) -> Result<(), LoadError>;
    let files: [(&Value, Load<'_>, usize); 3] =
        [(&policy, &load_policy, 11), (&tools, &load_tools, 8), (&lists, &load_lists, 3)];
    for (file, load, objects) in files {
        assert_eq!(load(file), Ok(()));
        let others = with_a_list_for_an_object(file);
        assert_eq!(others.len(), objects);
        for other in others {
            let error = load(&other).map_err(|error| error.to_string()).unwrap_err();
            assert!(error.contains("invalid type: list, expected "), "{other}: {error}");
        }
    }
}

#[test]
fn version_may_be_written_with_a_fraction() {
    let load = |version: &str| {
        let file = format!("{{\"schemaVersion\": {version}, \"lists\": {{}}}}");
        DynamicLists::from_json(&file, "l").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!([load("1"), load("1.0")], [Ok(()), Ok(())]);
    let null = "`l`, line 1: `schemaVersion`: invalid type: null, expected a whole number";
    assert_eq!(load("null"), Err(null.to_owned()));
    assert!(load("2.0").unwrap_err().contains("`schemaVersion` must be 1"));
}

#[test]
fn type_error_has_its_location() {
    let error = |conditions: Value| {
        let rule = json!({ "name": "r", "if": conditions, "then": "allow" });
        let file = json!({ "rules": [rule] }).to_string();
        Policy::from_json(&file, "p.json", &spelled, &DynamicLists::default()).unwrap_err().to_string()
    };
    let at = |field: &str| format!("`p.json`, line 1, rule `r`, field `if.{field}`: invalid type: ");
    for (conditions, field) in [
        (json!({ "paths": { "roles": ["read-path"], "within": 1 } }), "paths.within"),
        (json!({ "paths": { "roles": "read-path", "within": "/a" } }), "paths.roles"),
        (json!({ "domains": { "roles": ["fetch-url"], "allowed": ["a", 1] } }), "domains.allowed[1]"),
        (json!({ "lists": [{ "roles": [], "allowed": [], "matchType": 1 }] }), "lists[0].matchType"),
        (json!({ "tool": ["t", null] }), "tool[1]"),
        (json!({ "paths": null }), "paths"),
    ] {
        let error = error(conditions);
        assert!(error.starts_with(&at(field)), "{error}");
        assert!(!error.contains("struct") && !error.contains("sequence"), "{error}");
    }
}

#[test]
fn byte_order_mark_is_reported() {
    let load = |text: &str| DynamicLists::from_json(text, "l").map(drop).map_err(|error| error.to_string());
    let marked = "`l`, line 1: it begins with a byte order mark; save it as UTF-8 without one";
    assert_eq!(load("\u{feff}{\"lists\":{}}"), Err(marked.to_owned()));
    assert_eq!(load("{\"lists\":{}}"), Ok(()));
}
