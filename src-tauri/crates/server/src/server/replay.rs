//! Client state that each new server process must receive before it handles calls: `initialize`, `initialized`, the log
//! level and the subscriptions.
//!
//! - The client performs only one handshake: if a process exits before it answers, the next process answers.

use super::down::DownReason;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{MemoryShare, ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of subscriptions to replay.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// Called with the response to the client's `initialize`, or with the reason why it failed.
pub type InitializeCallback = Box<dyn FnOnce(Result<Response, DownReason>, MemoryShare) + Send>;

/// Result of the handshake with one process.
#[derive(Debug)]
pub(super) enum HandshakeOutcome {
    /// The server accepted `initialize`.
    Accepted,
    /// The server rejected `initialize`, and the client has received the error.
    Rejected,
    /// A restarted server rejected `initialize` with this error. The client completed its handshake earlier.
    RejectedAfterRestart(String),
    /// The process exited before it answered.
    Failed,
    /// A restarted server did not answer in time.
    Unanswered,
}

/// Client state, shared by the handle and the actor.
#[derive(Clone, Default)]
pub(super) struct Replay(Arc<Mutex<ReplayParts>>);

#[derive(Default)]
struct ReplayParts {
    initialize_params: Option<Box<RawValue>>,
    /// Number of `initialize` requests that the client has sent.
    initialize_count: u64,
    /// Callback for the client's pending `initialize`, or `None` if it was answered.
    waiting: Option<InitializeCallback>,
    initialized: Option<Vec<u8>>,
    level: Option<Box<RawValue>>,
    subscriptions: BTreeMap<String, Box<RawValue>>,
}

/// Client state that is handed over together with its session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ReplayState {
    #[serde(rename = "greeting")]
    initialize_params: Option<Box<RawValue>>,
    /// The `notifications/initialized` message, as one line.
    initialized: Option<String>,
    level: Option<Box<RawValue>>,
    /// Parameters of each subscription, keyed by the JSON encoding of its URI.
    subscriptions: BTreeMap<String, Box<RawValue>>,
}

impl From<ReplayState> for Replay {
    fn from(state: ReplayState) -> Self {
        let ReplayState { initialize_params, initialized, level, subscriptions } = state;
        let initialized = initialized.map(String::into_bytes);
        Self(Arc::new(Mutex::new(ReplayParts {
            initialize_params,
            initialize_count: 0,
            waiting: None,
            initialized,
            level,
            subscriptions,
        })))
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("initialized", &self.is_initialized()).finish_non_exhaustive()
    }
}

impl Replay {
    /// Returns a copy of the state for a handover.
    pub(super) fn state(&self) -> ReplayState {
        let parts = self.parts();
        ReplayState {
            initialize_params: parts.initialize_params.clone(),
            initialized: parts.initialized.as_ref().map(|line| String::from_utf8_lossy(line).into_owned()),
            level: parts.level.clone(),
            subscriptions: parts.subscriptions.clone(),
        }
    }

    /// Stores the client's `initialize` parameters and the callback for its response.
    pub(super) fn initialize(&self, params: Box<RawValue>, waiting: InitializeCallback) {
        let mut parts = self.parts();
        parts.initialize_params = Some(params);
        parts.initialize_count += 1;
        parts.waiting = Some(waiting);
    }

    /// Returns the parameters and the number of the client's last `initialize`, or `None` if it has not sent one.
    pub(super) fn initialize_params(&self) -> Option<(Box<RawValue>, u64)> {
        let parts = self.parts();
        Some((parts.initialize_params.clone()?, parts.initialize_count))
    }

    /// Returns the number of the client's last `initialize` request.
    pub(super) fn initialize_count(&self) -> u64 {
        self.parts().initialize_count
    }

    /// Returns `true` while the client is waiting for the response to its `initialize`.
    pub(super) fn is_initialize_pending(&self) -> bool {
        self.parts().waiting.is_some()
    }

    /// Answers a pending `initialize` with the reason why the server is not running, so that the client can retry.
    pub(super) fn fail_pending_initialize(&self, why: &DownReason) {
        let mut parts = self.parts();
        let Some(waiting) = parts.waiting.take() else { return };
        parts.initialize_params = None;
        drop(parts);
        waiting(Err(why.clone()), None);
    }

    /// Handles a process's response to `initialize`. Replays the rest of the state and calls `up`, then answers the
    /// client's `initialize` if it is still pending.
    pub(super) fn handle_response(
        &self,
        connection: &ServerConnection,
        up: impl FnOnce(),
        answer: ServerAnswer,
        memory_share: MemoryShare,
    ) -> HandshakeOutcome {
        let response = match answer {
            ServerAnswer::Response(response) => response,
            ServerAnswer::Failed(_) => return HandshakeOutcome::Failed,
        };
        let mut parts = self.parts();
        let waiting = parts.waiting.take();
        let outcome = match (&response, &waiting) {
            (Response::Result(_), _) => {
                parts.replay_to(connection);
                HandshakeOutcome::Accepted
            }
            (Response::Error(_), Some(_)) => {
                parts.initialize_params = None;
                HandshakeOutcome::Rejected
            }
            (Response::Error(error), None) => {
                return HandshakeOutcome::RejectedAfterRestart(error.get().to_owned());
            }
        };
        up();
        drop(parts);
        if let Some(waiting) = waiting {
            waiting(Ok(response), memory_share);
        }
        outcome
    }

    /// Stores the client's `initialized` message. Also forwards it if a process has already answered `initialize`.
    pub(super) fn initialized(&self, line: Vec<u8>, now: impl FnOnce() -> Option<ServerConnection>) {
        let mut parts = self.parts();
        if let Some(connection) = now() {
            connection.send_initialized(&line);
        }
        parts.initialized = Some(line);
    }

    pub(super) fn is_initialized(&self) -> bool {
        self.parts().initialized.is_some()
    }

    /// Stores a client request that replacement processes must also receive: a log level or a subscription.
    pub(super) fn store(&self, request: &ServerRequest) {
        #[derive(serde::Deserialize)]
        struct ResourceParams<'a> {
            #[serde(borrow)]
            uri: &'a RawValue,
        }
        let Some(params) = request.params() else { return };
        let uri = || {
            serde_json::from_str::<ResourceParams<'_>>(params.get())
                .map(|params| params.uri.get().to_owned())
                .ok()
        };
        let mut parts = self.parts();
        match request.method() {
            "logging/setLevel" => parts.level = Some(params.to_owned()),
            "resources/subscribe" if parts.subscriptions.len() < MAX_SUBSCRIPTIONS => {
                let Some(uri) = uri() else { return };
                parts.subscriptions.insert(uri, params.to_owned());
            }
            "resources/unsubscribe" => drop(uri().map(|uri| parts.subscriptions.remove(&uri))),
            _ => {}
        }
    }

    /// Returns `true` if the client is subscribed to this resource.
    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.parts().subscriptions.contains_key(&serde_json::Value::from(uri).to_string())
    }

    fn parts(&self) -> MutexGuard<'_, ReplayParts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplayParts {
    /// Sends the stored state to a process once it has answered `initialize`.
    fn replay_to(&self, connection: &ServerConnection) {
        let Some(line) = &self.initialized else { return };
        connection.send_initialized(line);
        // Ignore the responses: the client received them when it sent the requests.
        if let Some(params) = &self.level {
            drop(connection.request("logging/setLevel", Some(params)));
        }
        for params in self.subscriptions.values() {
            drop(connection.request("resources/subscribe", Some(params)));
        }
    }
}
