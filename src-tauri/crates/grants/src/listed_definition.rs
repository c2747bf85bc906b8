//! Canonical form of tool definitions. Definitions are pinned and compared in this form.

use serde_json::Value;

/// Fields of a tool definition that are pinned. Other fields only affect the display or the client.
const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Maximum length of a definition that can be pinned, in bytes.
const MAX_DEFINITION_LEN: usize = 256 * 1024;

/// Tool as a server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDefinition {
    /// Name of the tool.
    pub tool: String,
    /// Definition in canonical form.
    pub definition: String,
}

impl ListedDefinition {
    /// Parses a listed tool, and converts its pinned fields to canonical form. Returns `None` if the tool has no name
    /// or its definition is too long to be pinned.
    #[must_use]
    pub fn parse(listed: &str) -> Option<Self> {
        let Value::Object(mut fields) = serde_json::from_str(listed).ok()? else { return None };
        let tool = fields.get("name")?.as_str()?.to_owned();
        fields.retain(|name, value| PINNED.contains(&name.as_str()) && !value.is_null());
        let mut value = Value::Object(fields);
        value.sort_all_objects();
        let definition = value.to_string();
        (definition.len() <= MAX_DEFINITION_LEN).then_some(Self { tool, definition })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tool: &Value) -> Option<ListedDefinition> {
        ListedDefinition::parse(&tool.to_string())
    }

    #[test]
    fn a_definition_has_one_form_and_everything_that_a_model_reads() {
        let tool = json!({
            "name": "t", "description": "d", "inputSchema": { "b": 1, "a": { "d": 1, "c": 2 } }, "title": null,
            "icons": [], "_meta": { "x": 1 },
        });
        let ListedDefinition { tool: name, definition } = of(&tool).unwrap();
        let expected = r#"{"description":"d","inputSchema":{"a":{"c":2,"d":1},"b":1},"name":"t"}"#;
        assert_eq!((name.as_str(), definition.as_str()), ("t", expected));
        let mut other = tool.clone();
        other["icons"] = json!(["x"]);
        assert_eq!(of(&other).unwrap().definition, expected, "icons may change");
        for part in PINNED {
            let mut other = tool.clone();
            other[part] = json!("other");
            assert_ne!(of(&other).unwrap().definition, expected, "{part}");
        }
    }

    #[test]
    fn a_tool_without_a_name_and_an_endless_definition_are_dropped() {
        assert_eq!(of(&json!({ "description": "d" })), None);
        assert_eq!(of(&json!({ "name": 1 })), None);
        assert_eq!(of(&json!(["name"])), None);
        assert_eq!(of(&json!({ "name": "t", "description": "d".repeat(MAX_DEFINITION_LEN) })), None);
    }
}
