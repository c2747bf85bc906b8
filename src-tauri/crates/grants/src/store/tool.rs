//! Stored form of granted tools: a JSON text that is parsed strictly.

use ironcurtain_policy::{BoundValue, Role, ToolScope, ToolUse};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredScope {
    Use(StoredTool),
    Tools(StoredTools),
}

/// Tools with any arguments.
#[derive(Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "kebab-case", deny_unknown_fields)]
enum StoredTools {
    Tool { tool: String },
    Reading,
    All,
}

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

/// Serializes granted tools.
pub(super) fn serialize(scope: &ToolScope) -> String {
    let stored = match scope {
        ToolScope::Use(tool) => StoredScope::Use(stored_use(tool)),
        ToolScope::Tool(tool) => StoredScope::Tools(StoredTools::Tool { tool: tool.clone() }),
        ToolScope::ReadOnly => StoredScope::Tools(StoredTools::Reading),
        ToolScope::All => StoredScope::Tools(StoredTools::All),
    };
    // Serializing plain strings cannot fail.
    serde_json::to_string(&stored).unwrap_or_default()
}

fn stored_use(tool: &ToolUse) -> StoredTool {
    let value = |bound: &BoundValue| StoredValue {
        argument: bound.argument.clone(),
        role: bound.role.name().to_owned(),
        value: bound.value.clone(),
    };
    StoredTool { tool: tool.tool().to_owned(), values: tool.values().iter().map(value).collect() }
}

/// Reason a string does not describe granted tools.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredToolError {
    /// The text is not the expected JSON.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    /// A role is unknown.
    #[error("unknown role `{0}`")]
    Role(String),
}

/// Parses granted tools.
pub(super) fn parse(text: &str) -> Result<ToolScope, StoredToolError> {
    let StoredTool { tool, values } = match serde_json::from_str(text)? {
        StoredScope::Use(tool) => tool,
        StoredScope::Tools(StoredTools::Tool { tool }) => return Ok(ToolScope::Tool(tool)),
        StoredScope::Tools(StoredTools::Reading) => return Ok(ToolScope::ReadOnly),
        StoredScope::Tools(StoredTools::All) => return Ok(ToolScope::All),
    };
    let value = |StoredValue { argument, role, value }| match Role::parse(&role) {
        Some(role) => Ok(BoundValue { argument, role, value }),
        None => Err(StoredToolError::Role(role)),
    };
    let values = values.into_iter().map(value).collect::<Result<_, StoredToolError>>()?;
    Ok(ToolScope::Use(ToolUse::new(tool, values)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granted_tools_round_trip_and_unknown_fields_are_refused() {
        let owner =
            BoundValue { argument: "owner".to_owned(), role: Role::GithubOwner, value: "a\"b".to_owned() };
        let tool = ToolScope::Use(ToolUse::new("create_issue".to_owned(), vec![owner]));
        for scope in [tool, ToolScope::Tool("t".to_owned()), ToolScope::ReadOnly, ToolScope::All] {
            assert_eq!(parse(&serialize(&scope)).unwrap(), scope);
        }
        for text in [
            "",
            "{}",
            r#"{"tool":"t"}"#,
            r#"{"tool":"t","values":[],"more":1}"#,
            r#"{"scope":"tool"}"#,
            r#"{"scope":"every"}"#,
            r#"{"scope":"tool","tool":"t","more":1}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let unknown = r#"{"tool":"t","values":[{"argument":"a","role":"new-role","value":"v"}]}"#;
        assert_eq!(parse(unknown).unwrap_err().to_string(), "unknown role `new-role`");
    }
}
