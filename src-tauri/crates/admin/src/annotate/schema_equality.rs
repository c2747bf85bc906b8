//! Compares argument schemas, ignoring text that is only for display.

use serde_json::Value;

/// JSON Schema keywords that only document a schema.
const DOCUMENTATION_KEYWORDS: [&str; 7] =
    ["$schema", "$comment", "title", "description", "default", "example", "examples"];

/// JSON Schema keywords whose value is an object that maps names to schemas.
const SCHEMA_MAP_KEYWORDS: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// JSON Schema keywords whose value contains no schemas.
const VALUE_KEYWORDS: [&str; 3] = ["enum", "const", "required"];

/// Returns `true` if both schemas declare the same arguments. Treats a missing `additionalProperties` as `false`.
pub(super) fn same_arguments(one: &Value, other: &Value) -> bool {
    normalize(one) == normalize(other)
}

fn normalize(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => Value::Object(fields.iter().filter_map(normalize_keyword).collect()),
        Value::Array(schemas) => schemas.iter().map(normalize).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn normalize_keyword((name, value): (&String, &Value)) -> Option<(String, Value)> {
    let is_any_of = |names: &[&str]| names.contains(&name.as_str());
    if is_any_of(&DOCUMENTATION_KEYWORDS) || name == "additionalProperties" && *value == Value::Bool(false) {
        return None;
    }
    let schemas = value.as_object().filter(|_| is_any_of(&SCHEMA_MAP_KEYWORDS));
    let normalized = match schemas {
        Some(schemas) => schemas.iter().map(|(name, one)| (name.clone(), normalize(one))).collect(),
        None if is_any_of(&VALUE_KEYWORDS) => value.clone(),
        None => normalize(value),
    };
    Some((name.clone(), normalized))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn display_texts_are_ignored_and_everything_else_counts() {
        let field =
            |of: Value| json!({ "type": "object", "properties": { "title": of }, "required": ["title"] });
        let plain = field(json!({ "type": "string", "enum": ["default"] }));
        let mut documented = field(
            json!({ "type": "string", "enum": ["default"], "title": "T", "description": "d", "default": "x" }),
        );
        documented["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        documented["additionalProperties"] = json!(false);
        assert!(same_arguments(&plain, &documented));
        let mut permissive = documented.clone();
        permissive["additionalProperties"] = json!(true);
        let mut free = plain.clone();
        free["required"] = json!([]);
        let others = [
            field(json!({ "type": "string", "enum": ["other"] })),
            field(json!({ "type": "string", "enum": ["default"], "format": "uri" })),
            json!({ "type": "object", "properties": {}, "required": ["title"] }),
            permissive,
            free,
        ];
        for other in others {
            assert!(!same_arguments(&plain, &other), "{other}");
        }
    }
}
