//! Compares the tools that a server lists with their pinned definitions, and refuses calls of changed tools.
//!
//! - INVARIANT: the client receives a definition that the user has not seen only if the tool is new. A changed tool is
//!   listed with its pinned definition, and calls of it are refused until the user decides.
//! - A list that cannot be compared is not forwarded. If the pins cannot be read, all tool calls are refused.

use super::Session;
use super::pin_error::PinError;
use super::refusal::CallRefusal;
use ironcurtain_audit::Event;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_config::ToolPinning;
use ironcurtain_grants::{ListedDefinition, Listing, MOST_TOOLS, PinKey, PinState, Pins, ToolPin};
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::wire::{Fields, Response};
use ironcurtain_visible as visible;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// MCP method that lists tools.
const LIST: &str = "tools/list";

/// Fields of a tool definition that are pinned. Other fields only affect the display or the client.
const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Maximum length of a definition that can be pinned, in bytes.
const LONGEST_DEFINITION: usize = 256 * 1024;

/// Tools of a session as far as they were read from the pins.
#[derive(Debug, Default)]
pub(super) struct PinnedTools(Mutex<Option<ReadPins>>);

/// Facts from the pins of a session's tools.
#[derive(Debug)]
struct ReadPins {
    /// Tools that are not as pinned.
    changed: HashMap<String, ChangedTool>,
    /// Tools whose pinned definition declares that they only read.
    reading: Arc<HashSet<String>>,
}

/// Reason why calls of a tool are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedTool {
    Suspended,
    Removed,
}

impl PinnedTools {
    /// Returns the tools that only read according to the server. They are known once a tool was called.
    pub(super) fn reading_hints(&self) -> Arc<HashSet<String>> {
        self.lock().as_ref().map(|pins| pins.reading.clone()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ReadPins>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if the response is a list of tools.
pub(super) fn lists_tools(request: &ServerRequest, answer: &ServerAnswer) -> bool {
    request.method() == LIST && matches!(answer, ServerAnswer::Response(Response::Result(_)))
}

/// Returns whether this request asks for the first page of a list.
pub(super) fn is_first_page(request: &ServerRequest) -> bool {
    let fields = request.params().and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
    fields.is_none_or(|fields| fields.get("cursor").is_none())
}

impl Session {
    pub(super) fn pins(&self) -> (Pins, PinKey) {
        let mut takes: Vec<String> = self.client_takes.borrow().iter().cloned().collect();
        takes.sort();
        let key = PinKey { server: self.config.identity(), capabilities: takes.join(" ") };
        (Pins::of(&self.services.home.database()), key)
    }

    /// Returns the list of tools for the client: changed tools as pinned, and no removed ones.
    pub(super) async fn with_pinned_tools(
        &self,
        result: &RawValue,
        is_first_page: bool,
    ) -> Result<Box<RawValue>, PinError> {
        let mut fields: Fields = serde_json::from_str(result.get())?;
        let tools: Vec<Box<RawValue>> = match fields.get("tools") {
            Some(tools) => serde_json::from_str(tools.get())?,
            None => return Ok(result.to_owned()),
        };
        if tools.len() > MOST_TOOLS {
            return Err(PinError::TooMany);
        }
        // Omit tools without a name, which cannot be called.
        let known = tools.into_iter().filter_map(|raw| Some((definition(&raw)?, raw)));
        let (listed, raw): (Vec<_>, Vec<_>) = known.unzip();
        let names: Vec<String> = listed.iter().map(|listed| listed.tool.clone()).collect();
        let ((pins, key), pinning) = (self.pins(), self.config.pin);
        let is_whole = is_first_page && fields.get("nextCursor").is_none_or(|cursor| cursor.get() == "null");
        let compare = move || {
            let listing = Listing { tools: &listed, is_whole };
            pins.compare(&key, listing, pinning == ToolPinning::Warn, now_ms())
        };
        let states = tokio::task::spawn_blocking(compare).await??;
        let mut shown = Vec::new();
        for ((name, state), raw) in names.into_iter().zip(states).zip(raw) {
            match state {
                PinState::New | PinState::Unchanged => shown.push(raw),
                PinState::Suspended { is_news, .. } if pinning == ToolPinning::Warn => {
                    shown.push(raw);
                    self.report_change(&name, is_news).await;
                }
                PinState::Suspended { pinned, is_news } => {
                    shown.push(RawValue::from_string(pinned)?);
                    self.services.changed_tools.follow(&self.config.name, self.config.identity());
                    self.report_change(&name, is_news).await;
                }
                PinState::Kept { pinned } => shown.push(RawValue::from_string(pinned)?),
                PinState::Removed => {}
            }
        }
        // The next call reads the pins again.
        *self.pinned_tools.lock() = None;
        fields.set("tools", to_raw_value(&shown)?);
        Ok(to_raw_value(&fields)?)
    }

    /// Refuses a call of a changed or removed tool, unless the user has accepted the change by now.
    pub(super) async fn check_pin(&self, tool: &str) -> Result<(), CallRefusal> {
        let is_settled = self.pinned_tools.lock().as_ref().map(|pins| !pins.changed.contains_key(tool));
        if is_settled == Some(true) {
            return Ok(());
        }
        let (pins, key) = self.pins();
        let read = tokio::task::spawn_blocking(move || pins.of_client(&key)).await;
        let all = read.map_err(PinError::from)?.map_err(PinError::from)?;
        let state = |pin: &ToolPin| match () {
            () if pin.is_removed() => Some(ChangedTool::Removed),
            () if pin.is_suspended() => Some(ChangedTool::Suspended),
            () => None,
        };
        let changed: HashMap<String, ChangedTool> =
            all.iter().filter_map(|pin| Some((pin.tool.clone(), state(pin)?))).collect();
        let found = changed.get(tool).copied();
        let reading = all.iter().filter(|pin| only_reads(&pin.definition)).map(|pin| pin.tool.clone());
        *self.pinned_tools.lock() = Some(ReadPins { changed, reading: Arc::new(reading.collect()) });
        let (server, tool) = (self.config.name.clone(), visible::line(tool));
        match found {
            None => Ok(()),
            Some(ChangedTool::Suspended) => {
                self.services.changed_tools.follow(&self.config.name, self.config.identity());
                Err(CallRefusal::ToolChanged { server, tool })
            }
            Some(ChangedTool::Removed) => Err(CallRefusal::ToolRemoved { server, tool }),
        }
    }

    /// Records that a tool changed and notifies the user. Does so once per change.
    async fn report_change(&self, tool: &str, is_news: bool) {
        if !is_news {
            return;
        }
        let (server, shown) = (&self.config.name, visible::line(tool));
        let suspended = match self.config.pin {
            ToolPinning::Enforce => "It is suspended until you decide",
            ToolPinning::Warn => "Its new definition is in use",
        };
        let mut entry = self.entry(Event::Server, format!("the server {server} changed its tool `{shown}`"));
        entry.tool_name = Some(tool.to_owned());
        self.record(entry).await;
        let show = match self.config.pin {
            ToolPinning::Enforce => {
                format!(", under Servers in IronCurtain or with: ironcurtain servers diff {server}")
            }
            ToolPinning::Warn => ".".to_owned(),
        };
        self.services.broker.notify(&format!("{server} changed its tool `{shown}`. {suspended}{show}"));
        self.services.changed();
    }
}

/// Returns whether a definition declares that its tool only reads.
fn only_reads(definition: &str) -> bool {
    #[derive(Deserialize)]
    struct Definition {
        annotations: Hints,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Hints {
        read_only_hint: bool,
        #[serde(default)]
        destructive_hint: bool,
    }
    let hints = serde_json::from_str::<Definition>(definition).map(|definition| definition.annotations);
    hints.is_ok_and(|hints| hints.read_only_hint && !hints.destructive_hint)
}

/// Returns a tool's pinned fields in canonical form, or `None` if the tool has no name.
fn definition(raw: &RawValue) -> Option<ListedDefinition> {
    let Value::Object(mut fields) = serde_json::from_str(raw.get()).ok()? else { return None };
    let tool = fields.get("name")?.as_str()?.to_owned();
    fields.retain(|name, value| PINNED.contains(&name.as_str()) && !value.is_null());
    let mut value = Value::Object(fields);
    value.sort_all_objects();
    let definition = value.to_string();
    (definition.len() <= LONGEST_DEFINITION).then_some(ListedDefinition { tool, definition })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tool: &Value) -> Option<ListedDefinition> {
        definition(&to_raw_value(tool).unwrap())
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
    fn only_an_unambiguous_hint_declares_that_a_tool_only_reads() {
        let of =
            |annotations: Value| only_reads(&json!({ "name": "t", "annotations": annotations }).to_string());
        assert!(of(json!({ "readOnlyHint": true, "title": "T" })));
        assert!(!of(json!({ "readOnlyHint": true, "destructiveHint": true })));
        assert!(!of(json!({ "readOnlyHint": "true" })));
        assert!(!of(json!({ "destructiveHint": false })));
        assert!(!only_reads("{}"));
    }

    #[test]
    fn a_tool_without_a_name_and_an_endless_definition_are_dropped() {
        assert_eq!(of(&json!({ "description": "d" })), None);
        assert_eq!(of(&json!({ "name": 1 })), None);
        assert_eq!(of(&json!(["name"])), None);
        assert_eq!(of(&json!({ "name": "t", "description": "d".repeat(LONGEST_DEFINITION) })), None);
    }
}
