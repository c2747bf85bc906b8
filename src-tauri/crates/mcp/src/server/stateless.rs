//! Translates between the core and a stateless server (2026-07-28).
//!
//! - The version is negotiated with each process ([`negotiation`]). The result is stored for the program
//!   ([`KnownVersions`]).
//! - Every request contains the protocol version, and the client info from `initialize`.
//! - An `input_required` result becomes requests to the client, if the client supports them. `roots/list` is answered
//!   from grants. The call is then retried with the answers and the server's state, as the protocol specifies. Nothing
//!   else is sent twice.
//! - The number of rounds, the number of requests and the size of the state are limited.

#[cfg(feature = "fuzzing")]
mod fuzzing;
mod input_required;
mod negotiation;
mod subscriptions;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use fuzzing::FuzzedServer;
pub use negotiation::{Negotiation, initialize};

use super::{MemoryShare, OnAnswer, RequestHandle, ServerAnswer, ServerConnection};
use crate::server::{RootsSource, SamplingRequest};
use crate::wire::{Fields, Outbox, Response, STATELESS_VERSION, meta_key, rewrite_params};
use input_required::{Calls, InputCall};
use rmcp::model::ErrorCode;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subscriptions::Subscriptions;
use tokio::sync::{mpsc, watch};

/// State of a connection to a stateless server.
pub(super) struct StatelessServer {
    meta: MetaFields,
    client: ClientHandle,
    state: Mutex<State>,
}

impl fmt::Debug for StatelessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatelessServer").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Client side of a connection, for input that the server requires.
#[derive(Debug, Clone)]
pub struct ClientHandle {
    /// Queue of lines to the client.
    pub outbox: Outbox,
    /// Source of the roots that the server may request.
    pub roots: Arc<dyn RootsSource>,
    /// Methods of server requests that the client supports.
    pub client_supports: watch::Receiver<HashSet<String>>,
    /// Receives sampling requests, which require the user's approval.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
}

#[derive(Default)]
struct State {
    calls: Calls,
    subscriptions: Subscriptions,
    /// Log level that the client set, as raw JSON.
    level: Option<Box<RawValue>>,
}

/// `_meta` fields that every request contains.
#[derive(Debug, Clone)]
struct MetaFields {
    capabilities: Box<RawValue>,
    client_info: Option<Box<RawValue>>,
}

impl MetaFields {
    /// Takes the fields from the client's `initialize` parameters. Removes the `tasks` capability, because tasks of
    /// the handshake versions are incompatible with this protocol version.
    fn from_initialize(initialize: &RawValue) -> Result<Self, serde_json::Error> {
        let mut initialize: Fields = serde_json::from_str(initialize.get())?;
        let mut capabilities: Fields = match initialize.get("capabilities") {
            Some(raw) => serde_json::from_str(raw.get())?,
            None => Fields::default(),
        };
        capabilities.remove("tasks");
        Ok(Self { capabilities: to_raw_value(&capabilities)?, client_info: initialize.take("clientInfo") })
    }

    /// Adds our `_meta` fields to parameters, and removes the fields that only our own retries may contain.
    fn with_meta(
        &self,
        params: Option<&RawValue>,
        level: Option<&RawValue>,
    ) -> Result<Box<RawValue>, serde_json::Error> {
        let version = to_raw_value(STATELESS_VERSION)?;
        rewrite_params(params, |params, meta| {
            params.remove("inputResponses");
            params.remove("requestState");
            meta.set(meta_key::PROTOCOL_VERSION, version);
            meta.set(meta_key::CLIENT_CAPABILITIES, self.capabilities.clone());
            meta.remove(meta_key::CLIENT_INFO);
            meta.remove(meta_key::LOG_LEVEL);
            if let Some(info) = &self.client_info {
                meta.set(meta_key::CLIENT_INFO, info.clone());
            }
            if let Some(level) = level {
                meta.set(meta_key::LOG_LEVEL, level.to_owned());
            }
        })
    }
}

impl StatelessServer {
    /// Creates the state from the server's `server/discover` response.
    fn new(meta: MetaFields, client: ClientHandle, discovered: &RawValue) -> Self {
        let state = State { subscriptions: Subscriptions::from_discovery(discovered), ..State::default() };
        Self { meta, client, state: Mutex::new(state) }
    }

    /// Sends a request from the core, or answers it here if this protocol version has no such method.
    pub(super) fn forward_request(
        self: &Arc<Self>,
        connection: &ServerConnection,
        (method, params): (&str, Option<Box<RawValue>>),
        share: MemoryShare,
        then: OnAnswer,
    ) -> RequestHandle {
        let unsent = RequestHandle::new(None, connection.clone());
        match method {
            "logging/setLevel" => {
                let fields = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                self.state().level = fields.and_then(|mut fields| fields.take("level"));
                answer_empty(then);
                return unsent;
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let changed = self
                    .state()
                    .subscriptions
                    .set_followed(method == "resources/subscribe", params.as_deref());
                match changed {
                    Some(true) => self.subscribe(connection),
                    Some(false) => {}
                    None => {
                        refuse(
                            then,
                            ErrorCode::METHOD_NOT_FOUND,
                            "the server sends no notifications about resources",
                        );
                        return unsent;
                    }
                }
                answer_empty(then);
                return unsent;
            }
            _ if method.starts_with("tasks/") || creates_task(method, params.as_deref()) => {
                let text = "the server does not support tasks of this protocol version; call without `task`";
                refuse(then, ErrorCode::METHOD_NOT_FOUND, text);
                return unsent;
            }
            _ => {}
        }
        let level = self.state().level.clone();
        let params = match self.meta.with_meta(params.as_deref(), level.as_deref()) {
            Ok(params) => params,
            Err(problem) => {
                refuse(then, ErrorCode::INVALID_PARAMS, &format!("`params`: {problem}"));
                return unsent;
            }
        };
        let call = InputCall::new(method, params, share, then);
        RequestHandle::new(Some(self.start_call(connection, call)), connection.clone())
    }

    /// Subscribes to change notifications. In this protocol version, the subscription replaces
    /// `notifications/initialized`.
    pub(super) fn subscribe(&self, connection: &ServerConnection) {
        let Some(filter) = self.state().subscriptions.filter() else { return };
        let Ok(params) = self.meta.with_meta(Some(&filter), None) else { return };
        // The response only marks the end of the subscription.
        let id = connection.send_request("subscriptions/listen", Some(params), None, Box::new(|_, _| {}));
        let before = id.and_then(|id| self.state().subscriptions.set_request(id));
        if let Some(before) = before {
            connection.send_cancelled(before, None);
        }
    }

    /// Translates a notification for the core. Returns `None` to drop it, and `Some(None)` to keep its parameters
    /// unchanged.
    pub(super) fn translate_notification(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Option<Box<RawValue>>> {
        if method == "notifications/subscriptions/acknowledged" {
            return None;
        }
        let is_stamped = params.is_some_and(|raw| raw.get().contains(meta_key::SUBSCRIPTION_ID));
        Some(params.filter(|_| is_stamped).and_then(|params| {
            rewrite_params(Some(params), |_, meta| meta.remove(meta_key::SUBSCRIPTION_ID)).ok()
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if a call would create a task of the handshake versions.
fn creates_task(method: &str, params: Option<&RawValue>) -> bool {
    let fields = || serde_json::from_str::<Fields>(params?.get()).ok();
    method == "tools/call" && fields().is_some_and(|fields| fields.get("task").is_some())
}

/// Answers a request with an empty result, without forwarding it to the server.
fn answer_empty(then: OnAnswer) {
    if let Ok(result) = to_raw_value(&serde_json::Map::new()) {
        then(ServerAnswer::Response(Response::Result(result)), None);
    }
}

fn refuse(then: OnAnswer, code: ErrorCode, text: &str) {
    let error = serde_json::json!({ "code": code.0, "message": text });
    if let Ok(error) = to_raw_value(&error) {
        then(ServerAnswer::Response(Response::Error(error)), None);
    }
}
