//! Stores a tool use as JSON text, which is parsed strictly.

use ironcurtain_policy::{BoundValue, Role, ToolUse};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTool {
    tool: String,
    values: Vec<StoredValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredValue {
    argument: String,
    role: String,
    value: String,
}

/// Serializes a tool use.
pub(super) fn written(tool: &ToolUse) -> String {
    let value = |bound: &BoundValue| StoredValue {
        argument: bound.argument.clone(),
        role: bound.role.name().to_owned(),
        value: bound.value.clone(),
    };
    let values = tool.values().iter().map(value).collect();
    // Serializing plain strings cannot fail.
    serde_json::to_string(&StoredTool { tool: tool.tool().to_owned(), values }).unwrap_or_default()
}

/// Reason why a text is not a tool use.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredToolError {
    /// The text is not the expected JSON.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// A role is unknown.
    #[error("unknown role `{0}`")]
    Role(String),
}

/// Parses a tool use.
pub(super) fn read(text: &str) -> Result<ToolUse, StoredToolError> {
    let StoredTool { tool, values } = serde_json::from_str(text)?;
    let value = |StoredValue { argument, role, value }| match Role::parse(&role) {
        Some(role) => Ok(BoundValue { argument, role, value }),
        None => Err(StoredToolError::Role(role)),
    };
    let values = values.into_iter().map(value).collect::<Result<_, StoredToolError>>()?;
    Ok(ToolUse::new(tool, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_use_round_trips_and_an_unknown_role_is_refused() {
        let owner =
            BoundValue { argument: "owner".to_owned(), role: Role::GithubOwner, value: "a\"b".to_owned() };
        let tool = ToolUse::new("create_issue".to_owned(), vec![owner]);
        assert_eq!(read(&written(&tool)).unwrap(), tool);
        for text in ["", "{}", r#"{"tool":"t"}"#, r#"{"tool":"t","values":[],"more":1}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        let unknown = r#"{"tool":"t","values":[{"argument":"a","role":"new-role","value":"v"}]}"#;
        assert_eq!(read(unknown).unwrap_err().to_string(), "unknown role `new-role`");
    }
}
