//! Initializes a server and reads all pages of its tool list.

use super::conversation::Conversation;
use super::fault::{MAX_PAGES, MAX_TOOLS, ServerFault};
use ironcurtain_policy::strict::UniqueKeys;
use ironcurtain_visible as visible;
use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::time::Duration;

/// Maximum length of a tool's name, in characters.
const MAX_NAME_LEN: usize = 128;

/// Tool as described by its server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// Name of the tool.
    pub name: String,
    /// Description from the server.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub input_schema: Value,
    /// Unverified hints from the server about the tool's effects.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: ToolHints,
}

/// The tool hints that IronCurtain uses. They are unverified claims by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolHints {
    /// `true` if the server claims that the tool changes nothing.
    pub read_only_hint: Option<bool>,
    /// `true` if the server claims that the tool may destroy data.
    pub destructive_hint: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<ListedTool>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Maximum time to wait for more tools. Some servers wait until shortly after the handshake to add tools that need a
/// client capability.
const SETTLE_TIME: Duration = Duration::from_secs(1);

/// Maximum number of times the tools are listed again after a change.
const MAX_RELISTS: usize = 10;

/// Initializes a server with all client capabilities and lists its tools.
pub(super) async fn list(conversation: &mut Conversation) -> Result<Vec<ListedTool>, ServerFault> {
    let task_requests = json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } });
    let params = json!({
        "protocolVersion": ProtocolVersion::V_2025_06_18.as_str(),
        "capabilities": {
            "roots": { "listChanged": true },
            "sampling": {},
            "elicitation": { "form": {}, "url": {} },
            "tasks": { "list": {}, "cancel": {}, "requests": task_requests },
        },
        "clientInfo": { "name": "ironcurtain", "version": env!("CARGO_PKG_VERSION") },
    });
    let initialized = conversation.request("initialize", &params).await?;
    conversation.notify("notifications/initialized").await?;
    let mut tools = pages(conversation).await?;
    if announces_changes(&initialized) {
        for _ in 0..MAX_RELISTS {
            if !conversation.wait_for_tool_change(SETTLE_TIME).await? {
                break;
            }
            tools = pages(conversation).await?;
        }
    }
    check(&tools).map(|()| tools)
}

/// Returns `true` if the server declares `tools.listChanged`.
fn announces_changes(initialized: &RawValue) -> bool {
    let initialized: Value = serde_json::from_str(initialized.get()).unwrap_or_default();
    initialized.pointer("/capabilities/tools/listChanged") == Some(&Value::Bool(true))
}

/// Reads all pages of the tool list.
async fn pages(conversation: &mut Conversation) -> Result<Vec<ListedTool>, ServerFault> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = page(&conversation.request("tools/list", &params).await?)?;
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS {
            return Err(ServerFault::TooManyTools);
        }
        cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(ServerFault::TooManyPages)
}

fn page(raw: &RawValue) -> Result<Page, ServerFault> {
    let invalid = |e: serde_json::Error| ServerFault::InvalidToolList(visible::line(&e.to_string()));
    let UniqueKeys(page) = serde_json::from_str(raw.get()).map_err(invalid)?;
    serde_json::from_value(page).map_err(invalid)
}

/// Returns an error if a name is duplicate or ambiguous, or a schema is invalid.
fn check(tools: &[ListedTool]) -> Result<(), ServerFault> {
    let mut seen = HashSet::new();
    for tool in tools {
        check_name("tool", &tool.name)?;
        if !seen.insert(tool.name.as_str()) {
            return Err(ServerFault::DuplicateTool(tool.name.clone()));
        }
        if !tool.input_schema.is_object() {
            return Err(ServerFault::NoSchema(tool.name.clone()));
        }
        for name in tool.arguments() {
            check_name(&format!("argument of the tool `{}`", tool.name), name)?;
        }
    }
    Ok(())
}

fn check_name(owner: &str, name: &str) -> Result<(), ServerFault> {
    let shown = visible::line(name);
    if name.is_empty() || shown != name || name.chars().count() > MAX_NAME_LEN {
        let shown = visible::head(&shown, MAX_NAME_LEN);
        return Err(ServerFault::AmbiguousName { owner: owner.to_owned(), shown });
    }
    Ok(())
}

impl ListedTool {
    fn arguments(&self) -> impl Iterator<Item = &str> {
        let properties = self.input_schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }
}

/// Returns a hash of all tool definitions. The hash does not depend on their order.
#[must_use]
pub(crate) fn fingerprint(tools: &[ListedTool]) -> String {
    let line = |tool: &ListedTool| {
        let hints = [tool.annotations.read_only_hint, tool.annotations.destructive_hint];
        json!([tool.name, tool.description, tool.input_schema, hints]).to_string()
    };
    let mut lines: Vec<String> = tools.iter().map(line).collect();
    lines.sort();
    let digest = Sha256::digest(lines.join("\n"));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Deserializes `null` as the default value.
fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(list: Value) -> Result<Vec<ListedTool>, String> {
        let raw = serde_json::value::to_raw_value(&json!({ "tools": list })).unwrap();
        let tools = page(&raw).map_err(|e| e.to_string())?.tools;
        check(&tools).map(|()| tools).map_err(|e| e.to_string())
    }

    #[test]
    fn ambiguous_names_and_invalid_schemas_are_rejected() {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        assert_eq!(tools(json!([tool("a"), tool("b")])).unwrap().len(), 2);
        let problem = |list| tools(list).unwrap_err();
        assert!(problem(json!([tool("a"), tool("a")])).contains("lists the tool `a` twice"));
        assert!(problem(json!([tool("a\u{202e}b")])).contains("cannot be displayed safely: `a\\u{202e}b`"));
        assert!(problem(json!([tool("")])).contains("cannot be displayed"));
        assert!(problem(json!([tool(&"x".repeat(129))])).contains("cannot be displayed"));
        assert!(problem(json!([{ "name": "a", "inputSchema": 3 }])).contains("no valid input schema"));
        assert!(problem(json!([{ "name": "a" }])).contains("missing field `inputSchema`"));
        let argument = json!([{ "name": "a", "inputSchema": { "properties": { "x\u{1b}[1m": {} } } }]);
        assert!(problem(argument).contains("argument of the tool `a`"));
        let twice = RawValue::from_string(
            r#"{"tools":[{"name":"a","inputSchema":{"properties":{"p":{},"p":{}}}}]}"#.to_owned(),
        );
        assert!(page(&twice.unwrap()).err().unwrap().to_string().contains("`p` comes twice"));
    }

    #[test]
    fn fingerprint_does_not_depend_on_order() {
        let tool = |name: &str, text: &str| json!({ "name": name, "description": text, "inputSchema": { "type": "object" } });
        let print = |list| fingerprint(&tools(list).unwrap());
        let one = print(json!([tool("a", "x"), tool("b", "y")]));
        assert_eq!(one, print(json!([tool("b", "y"), tool("a", "x")])));
        assert_ne!(one, print(json!([tool("a", "x"), tool("b", "z")])));
        assert!(one.starts_with("sha256:") && one.len() == 71);
    }
}
