//! The server's side of the revision without a handshake: a server that speaks it is spoken to in the words of the others.
//!
//! - Each process is negotiated with on its own ([`negotiate`]); what became of it is remembered for its program ([`KnownVersions`]).
//! - Every request names its revision, and the client that the greeting named.
//! - A result that requires input becomes requests to the client, as far as the client takes them; roots are answered from grants.
//!   The call goes on with their answers, under the state that the server gave: that is the protocol's own way, and nothing else is
//!   sent twice.
//! - How often a call may ask, for how much, and how long its state may be are bounded.

#[cfg(feature = "fuzzing")]
mod fuzzing;
mod input_required;
mod negotiate;
mod subscriptions;
#[cfg(test)]
mod tests;

#[cfg(feature = "fuzzing")]
pub use fuzzing::FuzzedServer;
pub use negotiate::{Negotiation, initialize};

use super::{MemoryShare, OnAnswer, RequestHandle, ServerAnswer, ServerConnection};
use crate::server::RootsSource;
use crate::server::SamplingRequest;
use crate::wire::{Fields, Outbox, Response, STATELESS_VERSION, meta_key, rewrite_params};
use input_required::{Calls, InputCall};
use rmcp::model::ErrorCode;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subscriptions::Subscriptions;
use tokio::sync::{mpsc, watch};

/// A server that speaks the revision.
pub(super) struct StatelessServer {
    stamp: Stamp,
    client_side: ClientSide,
    state: Mutex<State>,
}

impl fmt::Debug for StatelessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatelessServer").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

/// Whoever the server is spoken to on behalf of, for what it requires.
#[derive(Debug, Clone)]
pub struct ClientSide {
    /// The way to the client.
    pub client: Outbox,
    /// The roots, for when the server asks for them.
    pub roots: Arc<dyn RootsSource>,
    /// Methods the client takes from a server.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// Takes what the server wants the client's model to answer.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
}

#[derive(Default)]
struct State {
    calls: Calls,
    listening: Subscriptions,
    /// The level that the client set for the log, as it wrote it.
    level: Option<Box<RawValue>>,
}

/// The fields of `_meta` that each request has.
#[derive(Debug, Clone)]
struct Stamp {
    capabilities: Box<RawValue>,
    client_info: Option<Box<RawValue>>,
}

impl Stamp {
    /// From the parameters of the client's greeting. Tasks are others in this revision.
    fn of(initialize: &RawValue) -> Result<Self, serde_json::Error> {
        let mut initialize: Fields = serde_json::from_str(initialize.get())?;
        let mut capabilities: Fields = match initialize.get("capabilities") {
            Some(raw) => serde_json::from_str(raw.get())?,
            None => Fields::default(),
        };
        capabilities.remove("tasks");
        Ok(Self { capabilities: to_raw_value(&capabilities)?, client_info: initialize.take("clientInfo") })
    }

    /// Parameters with the stamp, and without what only a retry of ours has.
    fn stamped(
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
    /// Of a server that has answered `server/discover` with this.
    fn new(stamp: Stamp, client_side: ClientSide, discovered: &RawValue) -> Self {
        let state = State { listening: Subscriptions::of(discovered), ..State::default() };
        Self { stamp, client_side, state: Mutex::new(state) }
    }

    /// Sends a request of the core, or answers it where the revision has no such thing.
    pub(super) fn ask(
        self: &Arc<Self>,
        connection: &ServerConnection,
        (method, params): (&str, Option<Box<RawValue>>),
        held: MemoryShare,
        then: OnAnswer,
    ) -> RequestHandle {
        let nowhere = RequestHandle::new(None, connection.clone());
        match method {
            "logging/setLevel" => {
                let fields = params.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
                self.state().level = fields.and_then(|mut fields| fields.take("level"));
                done(then);
                return nowhere;
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                let changed =
                    self.state().listening.follow(method == "resources/subscribe", params.as_deref());
                match changed {
                    Some(true) => self.listen(connection),
                    Some(false) => {}
                    None => {
                        refuse(then, ErrorCode::METHOD_NOT_FOUND, "the server tells nothing of resources");
                        return nowhere;
                    }
                }
                done(then);
                return nowhere;
            }
            _ if method.starts_with("tasks/") || makes_task(method, params.as_deref()) => {
                let text = "the server keeps no tasks of this revision; call without `task`";
                refuse(then, ErrorCode::METHOD_NOT_FOUND, text);
                return nowhere;
            }
            _ => {}
        }
        let level = self.state().level.clone();
        let stamped = match self.stamp.stamped(params.as_deref(), level.as_deref()) {
            Ok(stamped) => stamped,
            Err(problem) => {
                refuse(then, ErrorCode::INVALID_PARAMS, &format!("`params`: {problem}"));
                return nowhere;
            }
        };
        let call = InputCall::new(method, stamped, held, then);
        RequestHandle::new(Some(self.begin(connection, call)), connection.clone())
    }

    /// The client is initialized, which such a server need not be told; what it tells by itself is asked for.
    pub(super) fn listen(&self, connection: &ServerConnection) {
        let Some(filter) = self.state().listening.filter() else { return };
        let Ok(params) = self.stamp.stamped(Some(&filter), None) else { return };
        // Its end is an end of news, and no answer to anybody.
        let id = connection.send_request("subscriptions/listen", Some(params), None, Box::new(|_, _| {}));
        let before = id.and_then(|id| self.state().listening.began(id));
        if let Some(before) = before {
            connection.withdraw(before, None);
        }
    }

    /// A notification of the server as the core takes it: nothing for one that is not for it, else the parameters where they
    /// differ.
    pub(super) fn notified(&self, method: &str, params: Option<&RawValue>) -> Option<Option<Box<RawValue>>> {
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

/// Returns `true` if a call is to make a task of the revisions with a handshake.
fn makes_task(method: &str, params: Option<&RawValue>) -> bool {
    let fields = || serde_json::from_str::<Fields>(params?.get()).ok();
    method == "tools/call" && fields().is_some_and(|fields| fields.get("task").is_some())
}

/// Answers a request that needs nothing of the server.
fn done(then: OnAnswer) {
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
