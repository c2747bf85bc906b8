//! Compares argument schemas, ignoring text that is only for display.

use serde_json::Value;

/// JSON Schema keywords that only document a schema.
const FOR_PEOPLE: [&str; 7] =
    ["$schema", "$comment", "title", "description", "default", "example", "examples"];

/// JSON Schema keywords whose value is an object that maps names to schemas.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// JSON Schema keywords whose value contains no schemas.
const VALUES: [&str; 3] = ["enum", "const", "required"];

/// Returns `true` if both schemas declare the same arguments. Treats a missing `additionalProperties` as `false`.
pub(super) fn same_arguments(one: &Value, other: &Value) -> bool {
    bare(one) == bare(other)
}

fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => Value::Object(fields.iter().filter_map(keyword).collect()),
        Value::Array(schemas) => schemas.iter().map(bare).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn keyword((name, value): (&String, &Value)) -> Option<(String, Value)> {
    let is = |names: &[&str]| names.contains(&name.as_str());
    if is(&FOR_PEOPLE) || name == "additionalProperties" && *value == Value::Bool(false) {
        return None;
    }
    let named = value.as_object().filter(|_| is(&NAMED));
    let bared = match named {
        Some(named) => named.iter().map(|(name, one)| (name.clone(), bare(one))).collect(),
        None if is(&VALUES) => value.clone(),
        None => bare(value),
    };
    Some((name.clone(), bared))
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
        let mut said = field(
            json!({ "type": "string", "enum": ["default"], "title": "T", "description": "d", "default": "x" }),
        );
        said["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        said["additionalProperties"] = json!(false);
        assert!(same_arguments(&plain, &said));
        let mut open = said.clone();
        open["additionalProperties"] = json!(true);
        let mut free = plain.clone();
        free["required"] = json!([]);
        let others = [
            field(json!({ "type": "string", "enum": ["other"] })),
            field(json!({ "type": "string", "enum": ["default"], "format": "uri" })),
            json!({ "type": "object", "properties": {}, "required": ["title"] }),
            open,
            free,
        ];
        for other in others {
            assert!(!same_arguments(&plain, &other), "{other}");
        }
    }
}
