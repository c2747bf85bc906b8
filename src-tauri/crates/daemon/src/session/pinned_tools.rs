//! Compares a server's tools with their pinned definitions and refuses calls to changed tools.
//!
//! - INVARIANT: the client receives a definition that the user has not seen only if the tool is new. A changed tool
//!   is listed with its pinned definition, and calls to it are refused until the user decides.
//! - A list that cannot be compared is not forwarded. If the pins cannot be read, all tool calls are refused.
//! - INVARIANT: a call is not sent unless the client last received the definition of its tool that is in effect.

use super::Session;
use super::pin_error::PinError;
use super::refusal::CallRefusal;
use ironcurtain_audit::Event;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_config::ToolPinning;
use ironcurtain_grants::{ListedDefinition, Listing, MAX_TOOLS, PinKey, PinState, Pins, ToolPin};
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::wire::{Fields, Response, notification_line};
use ironcurtain_visible as visible;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// MCP method that lists tools.
const LIST_TOOLS: &str = "tools/list";

/// Notification that makes a client request the tool list again.
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A session's tools, as they are pinned and as the client knows them.
#[derive(Debug, Default)]
pub(super) struct PinnedTools(Mutex<KnownTools>);

#[derive(Debug, Default)]
struct KnownTools {
    /// The pins, or `None` if they must be read again.
    pins: Option<PinContents>,
    /// Hash of each tool definition that the client last received.
    sent: HashMap<String, u64>,
    hasher: RandomState,
}

/// Contents of the pins for a session's tools.
#[derive(Debug)]
struct PinContents {
    /// Tools that differ from their pins.
    changed: HashMap<String, ChangedTool>,
    /// Tools whose pinned definition declares them to be read-only.
    read_only: Arc<HashSet<String>>,
}

/// Reason why calls to a tool are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedTool {
    Suspended,
    Removed,
    /// The user has since accepted a different definition from the one that the client received.
    Updated,
}

impl PinnedTools {
    /// Returns the tools that the server declares as read-only. Returns no tools if the pins have not been read.
    pub(super) fn reading_hints(&self) -> Arc<HashSet<String>> {
        self.lock().pins.as_ref().map(|pins| pins.read_only.clone()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, KnownTools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if the response is a list of tools.
pub(super) fn is_tool_list(request: &ServerRequest, answer: &ServerAnswer) -> bool {
    request.method() == LIST_TOOLS && matches!(answer, ServerAnswer::Response(Response::Result(_)))
}

/// Returns `true` if the request asks for the first page of a list.
pub(super) fn is_first_page(request: &ServerRequest) -> bool {
    let fields = request.params().and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
    fields.is_none_or(|fields| fields.get("cursor").is_none())
}

impl Session {
    pub(super) fn pins(&self) -> (Pins, PinKey) {
        let mut takes: Vec<String> = self.accepted_requests.borrow().iter().cloned().collect();
        takes.sort();
        let key = PinKey { server: self.config.identity(), capabilities: takes.join(" ") };
        (Pins::of(&self.services.home.database()), key)
    }

    /// Returns the tool list for the client. Changed tools have their pinned definitions, and removed tools are
    /// omitted.
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
        if tools.len() > MAX_TOOLS {
            return Err(PinError::TooMany);
        }
        // Tools without a name cannot be called, so they are omitted.
        let known = tools.into_iter().filter_map(|raw| Some((ListedDefinition::parse(raw.get())?, raw)));
        let (listed, raw): (Vec<_>, Vec<_>) = known.unzip();
        let hasher = self.pinned_tools.lock().hasher.clone();
        let names: Vec<(String, u64)> =
            listed.iter().map(|listed| (listed.tool.clone(), hasher.hash_one(&listed.definition))).collect();
        let ((pins, key), pinning) = (self.pins(), self.config.pin);
        let is_complete =
            is_first_page && fields.get("nextCursor").is_none_or(|cursor| cursor.get() == "null");
        let compare = move || {
            let listing = Listing { tools: &listed, is_complete };
            pins.compare(&key, listing, pinning == ToolPinning::Warn, now_ms())
        };
        let states = tokio::task::spawn_blocking(compare).await??;
        let (mut shown, mut sent) = (Vec::new(), HashMap::new());
        for (((name, hash), state), raw) in names.into_iter().zip(states).zip(raw) {
            let in_effect = match &state {
                PinState::Suspended { pinned, .. } if pinning == ToolPinning::Enforce => {
                    hasher.hash_one(pinned)
                }
                PinState::Kept { pinned } => hasher.hash_one(pinned),
                PinState::New | PinState::Unchanged | PinState::Suspended { .. } | PinState::Removed => hash,
            };
            sent.insert(name.clone(), in_effect);
            match state {
                PinState::New | PinState::Unchanged => shown.push(raw),
                PinState::Suspended { is_first_seen, .. } if pinning == ToolPinning::Warn => {
                    shown.push(raw);
                    self.report_change(&name, is_first_seen).await;
                }
                PinState::Suspended { pinned, is_first_seen } => {
                    shown.push(RawValue::from_string(pinned)?);
                    self.services.changed_tools.monitor(&self.config.name, self.config.identity());
                    self.report_change(&name, is_first_seen).await;
                }
                PinState::Kept { pinned } => shown.push(RawValue::from_string(pinned)?),
                PinState::Removed => {}
            }
        }
        let mut known = self.pinned_tools.lock();
        // The next call reads the pins again.
        known.pins = None;
        if known.sent.len() + sent.len() > MAX_TOOLS {
            known.sent.clear();
        }
        known.sent.extend(sent);
        drop(known);
        fields.set("tools", to_raw_value(&shown)?);
        Ok(to_raw_value(&fields)?)
    }

    /// Refuses a call to a changed or removed tool, unless the user has accepted the change in the meantime.
    pub(super) async fn check_pin(&self, tool: &str) -> Result<(), CallRefusal> {
        let is_unchanged =
            self.pinned_tools.lock().pins.as_ref().map(|pins| !pins.changed.contains_key(tool));
        if is_unchanged == Some(true) {
            return Ok(());
        }
        let (pins, key) = self.pins();
        let read = tokio::task::spawn_blocking(move || pins.for_client(&key)).await;
        let all = read.map_err(PinError::from)?.map_err(PinError::from)?;
        let mut known = self.pinned_tools.lock();
        let is_updated = |pin: &ToolPin| {
            known.sent.get(&pin.tool).is_some_and(|sent| *sent != known.hasher.hash_one(&pin.definition))
        };
        let state = |pin: &ToolPin| match () {
            () if pin.is_removed() => Some(ChangedTool::Removed),
            () if pin.is_suspended() => Some(ChangedTool::Suspended),
            () if is_updated(pin) => Some(ChangedTool::Updated),
            () => None,
        };
        let changed: HashMap<String, ChangedTool> =
            all.iter().filter_map(|pin| Some((pin.tool.clone(), state(pin)?))).collect();
        let found = changed.get(tool).copied();
        // A read-only hint counts only if the server still declares it.
        let is_marked_read_only =
            |pin: &&ToolPin| is_read_only(&pin.definition) && is_read_only(pin.listed());
        let read_only = all.iter().filter(is_marked_read_only).map(|pin| pin.tool.clone());
        known.pins = Some(PinContents { changed, read_only: Arc::new(read_only.collect()) });
        drop(known);
        let (server, tool) = (self.config.name.clone(), visible::line(tool));
        match found {
            None => Ok(()),
            Some(ChangedTool::Suspended) => {
                self.services.changed_tools.monitor(&self.config.name, self.config.identity());
                Err(CallRefusal::ToolChanged { server, tool })
            }
            Some(ChangedTool::Removed) => Err(CallRefusal::ToolRemoved { server, tool }),
            Some(ChangedTool::Updated) => {
                self.invalidate_pins();
                Err(CallRefusal::ToolUpdated { tool })
            }
        }
    }

    /// Applies the user's decision about a server's tool.
    pub fn apply_tool_decision(&self, server: &str) {
        if self.config.name == server {
            self.invalidate_pins();
        }
    }

    /// Makes the next check read the pins again.
    pub(super) fn reread_pins(&self) {
        self.pinned_tools.lock().pins = None;
    }

    /// Makes the next call read the pins again. Notifies a client that has a tool list that the list has changed.
    pub(super) fn invalidate_pins(&self) {
        let mut known = self.pinned_tools.lock();
        known.pins = None;
        let has_list = !known.sent.is_empty();
        drop(known);
        if has_list {
            self.reply(notification_line(LIST_CHANGED, None));
        }
    }

    /// Records that a tool changed and notifies the user, once per change.
    async fn report_change(&self, tool: &str, is_first_seen: bool) {
        if !is_first_seen {
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

/// Returns `true` if a definition declares its tool to be read-only.
fn is_read_only(definition: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_an_unambiguous_hint_declares_that_a_tool_only_reads() {
        let check = |annotations: Value| {
            is_read_only(&json!({ "name": "t", "annotations": annotations }).to_string())
        };
        assert!(check(json!({ "readOnlyHint": true, "title": "T" })));
        assert!(!check(json!({ "readOnlyHint": true, "destructiveHint": true })));
        assert!(!check(json!({ "readOnlyHint": "true" })));
        assert!(!check(json!({ "destructiveHint": false })));
        assert!(!is_read_only("{}"));
    }
}
