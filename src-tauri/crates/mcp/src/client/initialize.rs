//! Initializes the core on behalf of a stateless client, and answers `server/discover` from the result.

use super::request::Envelope;
use crate::wire::{Fields, Id, STATELESS_VERSION, meta_key, request_line};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// Name of the tasks extension, which replaced the tasks of 2025-11-25 and is incompatible with them.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The core's `initialize` result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InitializeResult(Box<RawValue>);

/// Parts of the core's `initialize` result that later messages need.
#[derive(Debug, Default)]
pub(super) struct ServerFacts {
    pub(super) info: Option<Box<RawValue>>,
    pub(super) has_logging: bool,
    pub(super) has_subscriptions: bool,
}

/// Returns the `initialize` request to the core. The request names the client's protocol version so that the core uses
/// this version with servers that support it.
pub(super) fn initialize(id: &Id, envelope: &Envelope) -> Result<Vec<u8>, serde_json::Error> {
    let mut capabilities: Fields = serde_json::from_str(without_tasks(&envelope.capabilities)?.get())?;
    // The core can request roots when no call is in flight, but a stateless client can be asked only during a call.
    capabilities.remove("roots");
    let info = match &envelope.client_info {
        Some(info) => info.clone(),
        None => to_raw_value(&json!({ "name": "unnamed", "version": "" }))?,
    };
    let mut params = Fields::default();
    params.set("protocolVersion", to_raw_value(STATELESS_VERSION)?);
    params.set("capabilities", to_raw_value(&capabilities)?);
    params.set("clientInfo", info);
    Ok(request_line(id, "initialize", Some(&to_raw_value(&params)?)))
}

impl InitializeResult {
    pub(super) fn new(result: Box<RawValue>) -> Self {
        Self(result)
    }

    /// Parses the parts that later messages need.
    pub(super) fn facts(&self) -> ServerFacts {
        let read = |raw: Option<&RawValue>| serde_json::from_str::<Fields>(raw?.get()).ok();
        let result = read(Some(&self.0)).unwrap_or_default();
        let capabilities = read(result.get("capabilities")).unwrap_or_default();
        let resources = read(capabilities.get("resources")).unwrap_or_default();
        ServerFacts {
            info: result.get("serverInfo").map(ToOwned::to_owned),
            has_logging: capabilities.get("logging").is_some(),
            has_subscriptions: resources.get("subscribe").is_some_and(|raw| raw.get() == "true"),
        }
    }

    /// Converts the result to a `server/discover` result.
    pub(super) fn to_discover_result(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let mut result: Fields = serde_json::from_str(self.0.get())?;
        result.remove("protocolVersion");
        let info = result.take("serverInfo");
        let capabilities = match result.get("capabilities") {
            Some(capabilities) => without_tasks(capabilities)?,
            None => to_raw_value(&json!({}))?,
        };
        result.set("capabilities", capabilities);
        result.set("supportedVersions", to_raw_value(&[STATELESS_VERSION])?);
        result.set("resultType", to_raw_value("complete")?);
        for (name, default) in [("ttlMs", json!(0)), ("cacheScope", json!("private"))] {
            if result.get(name).is_none() {
                result.set(name, to_raw_value(&default)?);
            }
        }
        let mut meta: Fields = match result.get("_meta") {
            Some(meta) => serde_json::from_str(meta.get())?,
            None => Fields::default(),
        };
        if let (Some(info), None) = (info, meta.get(meta_key::SERVER_INFO)) {
            meta.set(meta_key::SERVER_INFO, info);
        }
        if meta.iter().next().is_some() {
            result.set("_meta", to_raw_value(&meta)?);
        }
        to_raw_value(&result)
    }
}

/// Removes the task capabilities of both kinds of protocol versions.
fn without_tasks(capabilities: &RawValue) -> Result<Box<RawValue>, serde_json::Error> {
    let mut capabilities: Fields = serde_json::from_str(capabilities.get())?;
    capabilities.remove("tasks");
    if let Some(extensions) = capabilities.get("extensions") {
        let mut extensions: Fields = serde_json::from_str(extensions.get())?;
        extensions.remove(TASKS);
        capabilities.set("extensions", to_raw_value(&extensions)?);
    }
    to_raw_value(&capabilities)
}
