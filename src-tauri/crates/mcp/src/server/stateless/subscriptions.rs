//! Subscription through which a stateless server sends change notifications.

use crate::wire::Fields;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeSet;

/// Maximum number of resources that the core can follow.
const MAX_RESOURCES: usize = 1000;

/// Subscribed notifications and resources.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// Filter fields of the notifications that the server supports.
    kinds: Vec<&'static str>,
    supports_resources: bool,
    uris: BTreeSet<String>,
    /// Request id of the open subscription.
    id: Option<u64>,
}

impl Subscriptions {
    /// Creates the subscription from the server's `server/discover` response.
    pub(super) fn from_discovery(discovered: &RawValue) -> Self {
        let read = |raw: Option<&RawValue>| -> Fields {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
        };
        let capabilities = read(read(Some(discovered)).get("capabilities"));
        let has = |capability: &str, flag: &str| {
            read(capabilities.get(capability)).get(flag).is_some_and(|raw| raw.get() == "true")
        };
        let kinds = [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ];
        let kinds = kinds
            .into_iter()
            .filter(|(capability, _)| has(capability, "listChanged"))
            .map(|(_, name)| name)
            .collect();
        Self { kinds, supports_resources: has("resources", "subscribe"), uris: BTreeSet::new(), id: None }
    }

    /// Follows or unfollows a resource. Returns `Some(true)` if the subscription changed, or `None` if the server does
    /// not support resource subscriptions.
    pub(super) fn set_followed(&mut self, is_followed: bool, params: Option<&RawValue>) -> Option<bool> {
        if !self.supports_resources {
            return None;
        }
        let params: Fields = serde_json::from_str(params?.get()).ok()?;
        let uri: String = serde_json::from_str(params.get("uri")?.get()).ok()?;
        Some(match is_followed {
            true => self.uris.len() < MAX_RESOURCES && self.uris.insert(uri),
            false => self.uris.remove(&uri),
        })
    }

    /// Returns the parameters of the subscription request, or `None` if no subscription is needed or open.
    pub(super) fn filter(&self) -> Option<Box<RawValue>> {
        if self.kinds.is_empty() && self.uris.is_empty() && self.id.is_none() {
            return None;
        }
        let mut filter = serde_json::Map::new();
        filter.extend(self.kinds.iter().map(|kind| ((*kind).to_owned(), json!(true))));
        if !self.uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
        to_raw_value(&json!({ "notifications": filter })).ok()
    }

    /// Records a new subscription request. Returns the id of the request that it replaces.
    pub(super) fn set_request(&mut self, id: u64) -> Option<u64> {
        self.id.replace(id)
    }
}
