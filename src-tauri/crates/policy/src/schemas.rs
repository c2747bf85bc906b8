//! JSON Schemas for the policy files, generated from the types that parse them and shipped in `docs/schemas`.
//!
//! - Rules and arguments are parsed field by field so that errors can name the field. Their schemas are therefore
//!   defined here, and tests compare them with the parser.

use crate::rules::examples::StoredExamples;
use crate::rules::load::conditions::{StoredDomains, StoredList, StoredPaths, is_host_role};
use crate::{Category, DynamicLists, Policy, Role, annotations, lists, rules};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name of a role.
pub(crate) struct RoleName;

impl JsonSchema for RoleName {
    fn schema_name() -> Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let one = |role: &Role| json!({ "const": role.name(), "description": role.description() });
        json_schema!({ "oneOf": Role::ALL.iter().map(one).collect::<Vec<_>>() })
    }
}

/// Name of a role for paths.
pub(crate) struct PathRoleName;

/// Name of a role for hosts or URLs.
pub(crate) struct HostRoleName;

impl JsonSchema for PathRoleName {
    fn schema_name() -> Cow<'static, str> {
        "PathRole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        role_enum(|role| role.category() == Category::Path)
    }
}

impl JsonSchema for HostRoleName {
    fn schema_name() -> Cow<'static, str> {
        "HostRole".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        role_enum(is_host_role)
    }
}

fn role_enum(wanted: impl Fn(Role) -> bool) -> Schema {
    let names: Vec<&str> = Role::ALL.iter().filter(|role| wanted(**role)).map(|role| role.name()).collect();
    json_schema!({ "enum": names })
}

/// A rule of a compiled policy.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Rule")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct RuleShape {
    /// Unique in the file, not empty, and not a reserved name.
    #[schemars(extend("minLength" = 1, "not" = { "pattern": "^(structural-|grant$|default-deny$)" }))]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    principle: String,
    #[serde(rename = "if")]
    conditions: ConditionsShape,
    then: DecisionShape,
    #[serde(default)]
    reason: String,
    /// Checked against the rule when the file is loaded.
    #[schemars(default, with = "StoredExamples")]
    examples: Option<StoredExamples>,
}

/// All conditions that are set must hold.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Conditions")]
#[expect(dead_code, reason = "used only for its schema")]
struct ConditionsShape {
    #[serde(default)]
    roles: Vec<RoleName>,
    #[serde(default)]
    server: Vec<String>,
    #[serde(default)]
    tool: Vec<String>,
    #[schemars(default, with = "StoredPaths")]
    paths: Option<StoredPaths>,
    #[schemars(default, with = "StoredDomains")]
    domains: Option<StoredDomains>,
    #[serde(default)]
    lists: Vec<StoredList>,
    /// The call has no path and no address, and its server reaches nothing.
    #[schemars(default, with = "ReachesShape")]
    reaches: Option<ReachesShape>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", rename = "Reaches")]
#[expect(dead_code, reason = "used only for its schema")]
enum ReachesShape {
    Nothing,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", rename = "Decision")]
#[expect(dead_code, reason = "used only for its schema")]
enum DecisionShape {
    Allow,
    Escalate,
    Deny,
}

/// A tool and its arguments.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "StoredTool", rename_all = "camelCase")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct ToolShape {
    #[schemars(length(min = 1))]
    tool_name: String,
    /// Name of the server that the tool is listed under.
    #[schemars(default)]
    server_name: Option<String>,
    /// Comment for people.
    #[schemars(default)]
    comment: Value,
    args: BTreeMap<String, ArgumentShape>,
    #[schemars(default)]
    input_schema: Option<Value>,
    #[schemars(default)]
    descends: Option<bool>,
    /// True if the tool only reads, regardless of its arguments.
    #[schemars(default)]
    read_only: Option<bool>,
}

/// Roles of an argument, or conditional roles.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Argument")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) enum ArgumentShape {
    Roles(Vec<RoleName>),
    Conditional(annotations::load::conditions::StoredConditional),
}

/// Condition on an argument of the call. Without an operator it never holds.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Condition")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) enum ConditionShape {
    Equals(EqualsShape),
    In(InShape),
    Is(IsShape),
    Never(NeverShape),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Equals")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct EqualsShape {
    arg: String,
    #[schemars(extend("not" = { "type": "null" }))]
    equals: Value,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "In")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct InShape {
    arg: String,
    #[schemars(rename = "in", extend("items" = { "not": { "type": "null" } }))]
    one_of: Vec<Value>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Is")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct IsShape {
    arg: String,
    is: StateShape,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", rename = "State")]
#[expect(dead_code, reason = "used only for its schema")]
enum StateShape {
    Present,
    Absent,
    Truthy,
    Falsy,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Never")]
#[expect(dead_code, reason = "used only for its schema")]
pub(crate) struct NeverShape {
    arg: String,
}

fn all() -> [(&'static str, Schema); 3] {
    [
        ("compiled-policy", schema_for!(rules::load::StoredFile)),
        ("tool-annotations", schema_for!(annotations::load::StoredFile)),
        ("dynamic-lists", schema_for!(lists::StoredFile)),
    ]
}

fn schema_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../../docs/schemas/{name}.schema.json"))
}

#[test]
fn the_shipped_schemas_match_the_types() {
    let write = std::env::var_os("IRONCURTAIN_WRITE_SCHEMAS").is_some();
    for (name, schema) in all() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if write {
            std::fs::create_dir_all(schema_path(name).parent().unwrap()).unwrap();
            std::fs::write(schema_path(name), &text).unwrap();
        }
        let shipped = std::fs::read_to_string(schema_path(name)).unwrap_or_default();
        assert!(
            shipped == text,
            "docs/schemas/{name}.schema.json is out of date: run `IRONCURTAIN_WRITE_SCHEMAS=1 cargo test -p ironcurtain-policy schemas`"
        );
    }
}

#[test]
fn the_parser_accepts_exactly_the_fields_of_the_schema() {
    let [(_, schema), ..] = all();
    let schema = serde_json::to_value(schema).unwrap();
    let fields = |definition: &str| -> Vec<String> {
        let properties = &schema["$defs"][definition]["properties"];
        properties.as_object().unwrap().keys().cloned().collect()
    };
    let load = |rule: Value| {
        let file = json!({ "rules": [rule] }).to_string();
        Policy::from_json(&file, "p", &|_| Err("no".into()), &DynamicLists::default())
    };
    let rule = |conditions: Value| json!({ "name": "r", "if": conditions, "then": "allow" });
    let allows_null = |definition: &str, field: &str| {
        let schema = schema["$defs"][definition]["properties"][field].to_string();
        schema.contains("null")
    };
    for field in fields("Rule") {
        let mut with = rule(json!({}));
        with[&field] = Value::Null;
        assert_eq!(load(with).is_ok(), allows_null("Rule", &field), "{field}");
        let mut with = rule(json!({}));
        if with.get(&field).is_none() {
            with[&field] = if field == "examples" { json!({}) } else { json!("text") };
        }
        assert!(load(with).is_ok(), "{field}");
    }
    for field in fields("Conditions") {
        assert_eq!(load(rule(json!({ &field: null }))).is_ok(), allows_null("Conditions", &field), "{field}");
        let known = |value: Value| match load(rule(json!({ &field: value }))) {
            Ok(_) => true,
            Err(error) => !error.to_string().contains("unknown condition"),
        };
        assert!(known(json!([])), "{field}");
    }
    assert_eq!(fields("Conditions").len(), 7);
    assert!(load(rule(json!({ "other": [] }))).unwrap_err().to_string().contains("unknown condition"));
}
