//! Tests schemas that combine other schemas.

use crate::scene::fields;
use ironcurtain_policy::{Annotations, check_schema};
use serde_json::{Value, json};

/// Validates `value` as the argument `a` of a tool that has no other arguments and returns the result as text.
fn verdict(schema: &Value, value: &Value) -> String {
    whole(&json!({ "type": "object", "properties": { "a": schema } }), &json!({ "a": value }))
}

/// Validates arguments, both on their own and as a call, and returns the result as text.
fn whole(schema: &Value, arguments: &Value) -> String {
    let args = json!({ "": ["none"], "a": ["none"], "b": ["none"], "c": ["none"] });
    let tool = json!({ "toolName": "t", "serverName": "s", "args": args, "inputSchema": schema });
    let file = json!({ "servers": { "s": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&file, "a").unwrap();
    let fits = |()| "fits".to_owned();
    let verdict =
        check_schema(schema, arguments.as_object().unwrap()).map_or_else(|misfit| misfit.to_string(), fits);
    let called = annotations.plan("s", "t", &fields(arguments)).map(drop);
    assert_eq!(called.map_or_else(|denial| denial.reason.to_string(), fits), verdict);
    verdict
}

#[test]
fn value_must_match_one_of_any_of_and_all_of_all_of() {
    let text_or_null = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    let one = json!({ "oneOf": [{ "type": "integer" }, { "type": "array", "items": { "type": "string" } }] });
    let all = json!({ "allOf": [{ "type": ["string", "null"] }, { "enum": ["a", 1] }] });
    let deep = json!({ "items": text_or_null });
    let both = json!({ "enum": ["a", "b"], "const": "a" });
    let none = "argument `a` must match one of the schema's alternatives";
    for (schema, fits, odd, why) in [
        (&text_or_null, vec![json!("x"), json!(null)], json!(1), none),
        (&text_or_null, vec![], json!(["x"]), none),
        (&one, vec![json!(1), json!(["x"]), json!([])], json!([1]), none),
        (&all, vec![json!("a")], json!("b"), "argument `a` is not one of the allowed values"),
        (&all, vec![], json!(1), "argument `a` must be of type string or null"),
        (
            &deep,
            vec![json!(["x", null])],
            json!([null, 1]),
            "argument `a[1]` must match one of the schema's alternatives",
        ),
        (
            &json!({ "const": { "x": [1] } }),
            vec![json!({ "x": [1] })],
            json!({ "x": 1 }),
            "argument `a` is not one of the allowed values",
        ),
        (&both, vec![json!("a")], json!("b"), "argument `a` is not one of the allowed values"),
        (&json!({ "anyOf": [] }), vec![], json!(1), none),
        (&json!(false), vec![], json!(null), "argument `a` cannot have any value"),
        (&json!({ "items": false }), vec![json!([])], json!([1]), "argument `a[0]` cannot have any value"),
    ] {
        for fitting in fits {
            assert_eq!(verdict(schema, &fitting), "fits", "{schema} {fitting}");
        }
        assert_eq!(verdict(schema, &odd), why, "{schema} {odd}");
    }
}

#[test]
fn unsupported_keywords_allow_everything() {
    for open in [
        json!(true),
        json!({}),
        json!(null),
        json!("string"),
        json!({ "$ref": "#/$defs/x" }),
        json!({ "not": {} }),
        json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/x" }] }),
        json!({ "pattern": "^x$", "maxLength": 0, "maximum": 0 }),
        json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 9 }] }),
    ] {
        assert_eq!(verdict(&open, &json!(5)), "fits", "{open}");
        assert_eq!(verdict(&open, &json!("five")), "fits", "{open}");
    }
}

#[test]
fn schema_applies_to_the_arguments_as_a_whole() {
    let needed = |name: &str| json!({ "required": [name] });
    let schema = json!({ "properties": { "a": {}, "b": {} }, "anyOf": [needed("a"), needed("b")] });
    assert_eq!(whole(&schema, &json!({ "b": 1 })), "fits");
    assert_eq!(whole(&schema, &json!({})), "the arguments must match one of the schema's alternatives");
    let all = json!({ "allOf": [needed("a"), { "properties": { "a": { "type": "string" } } }] });
    assert_eq!(whole(&all, &json!({ "a": "x", "c": 1 })), "fits");
    assert_eq!(whole(&all, &json!({ "a": 1 })), "argument `a` must be of type string");
    assert_eq!(whole(&all, &json!({})), "argument `a` is missing");
    assert_eq!(whole(&json!(false), &json!({})), "the arguments cannot have any value");
}

#[test]
fn empty_argument_name_is_reported_as_an_argument() {
    let schema = json!({ "properties": { "": { "type": "string" } } });
    assert_eq!(whole(&schema, &json!({ "": 1 })), "argument `` must be of type string");
    assert_eq!(whole(&schema, &json!({ "": "x" })), "fits");
}
