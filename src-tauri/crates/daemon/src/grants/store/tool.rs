//! A use of a tool as it is stored: one text, read strictly.

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

/// The text of a use.
pub(super) fn written(tool: &ToolUse) -> String {
    let value = |bound: &BoundValue| StoredValue {
        argument: bound.argument.clone(),
        role: bound.role.name().to_owned(),
        value: bound.value.clone(),
    };
    let values = tool.values().iter().map(value).collect();
    // What has only texts in it can be written.
    serde_json::to_string(&StoredTool { tool: tool.tool().to_owned(), values }).unwrap_or_default()
}

/// The use that a text is of.
pub(super) fn read(text: &str) -> Result<ToolUse, String> {
    let stored: StoredTool = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let value = |StoredValue { argument, role, value }| {
        let role = Role::parse(&role).ok_or_else(|| format!("unknown role `{role}`"))?;
        Ok(BoundValue { argument, role, value })
    };
    Ok(ToolUse::new(stored.tool, stored.values.into_iter().map(value).collect::<Result<_, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_not_understood_is_none() {
        let owner =
            BoundValue { argument: "owner".to_owned(), role: Role::GithubOwner, value: "a\"b".to_owned() };
        let tool = ToolUse::new("create_issue".to_owned(), vec![owner]);
        assert_eq!(read(&written(&tool)), Ok(tool));
        for text in ["", "{}", r#"{"tool":"t"}"#, r#"{"tool":"t","values":[],"more":1}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        let unknown = r#"{"tool":"t","values":[{"argument":"a","role":"new-role","value":"v"}]}"#;
        assert_eq!(read(unknown), Err("unknown role `new-role`".to_owned()));
    }
}
