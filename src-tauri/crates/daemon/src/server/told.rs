//! State that the client set at its server and that every later process must get before it takes a call: `initialize`,
//! `initialized`, the log level and the subscriptions.
//!
//! - The client sees one handshake only: if the process exits before it answers, the next one answers.

use super::down::DownReason;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{MemoryShare, ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of subscriptions that are replayed.
const MOST_SUBSCRIPTIONS: usize = 1000;

/// Receives the response to the client's `initialize`, or why there is none.
pub type OnGreeted = Box<dyn FnOnce(Result<Response, DownReason>, MemoryShare) + Send>;

/// Outcome of a handshake.
#[derive(Debug)]
pub(super) enum Greeted {
    /// The server accepted it.
    Welcome,
    /// The server rejected it, and the client has the error.
    Refused,
    /// A restarted server rejected it with this error.
    RefusedAgain(String),
    /// The process exited first.
    Failed,
    /// A restarted server did not answer.
    Unanswered,
}

/// State shared by the handle and the actor.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    greeting: Option<Box<RawValue>>,
    /// Number of `initialize` requests that the client has sent.
    number: u64,
    /// Callback of the client, while it waits.
    waits: Option<OnGreeted>,
    initialized: Option<Vec<u8>>,
    level: Option<Box<RawValue>>,
    subscriptions: BTreeMap<String, Box<RawValue>>,
}

/// Client state that is passed on when the session is handed over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ToldState {
    greeting: Option<Box<RawValue>>,
    /// Notification line.
    initialized: Option<String>,
    level: Option<Box<RawValue>>,
    /// Parameters of each subscription, by URI as JSON text.
    subscriptions: BTreeMap<String, Box<RawValue>>,
}

impl From<ToldState> for Told {
    fn from(state: ToldState) -> Self {
        let ToldState { greeting, initialized, level, subscriptions } = state;
        let initialized = initialized.map(String::into_bytes);
        Self(Arc::new(Mutex::new(Parts {
            greeting,
            number: 0,
            waits: None,
            initialized,
            level,
            subscriptions,
        })))
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("initialized", &self.is_initialized()).finish_non_exhaustive()
    }
}

impl Told {
    /// Returns a copy of the state, without the waiting client.
    pub(super) fn state(&self) -> ToldState {
        let parts = self.parts();
        ToldState {
            greeting: parts.greeting.clone(),
            initialized: parts.initialized.as_ref().map(|line| String::from_utf8_lossy(line).into_owned()),
            level: parts.level.clone(),
            subscriptions: parts.subscriptions.clone(),
        }
    }

    /// Stores the client's `initialize` parameters.
    pub(super) fn greets(&self, params: Box<RawValue>, waits: OnGreeted) {
        let mut parts = self.parts();
        parts.greeting = Some(params);
        parts.number += 1;
        parts.waits = Some(waits);
    }

    /// Returns the `initialize` parameters, once there are any, and their number.
    pub(super) fn greeting(&self) -> Option<(Box<RawValue>, u64)> {
        let parts = self.parts();
        Some((parts.greeting.clone()?, parts.number))
    }

    /// Returns the number of the last `initialize`.
    pub(super) fn number(&self) -> u64 {
        self.parts().number
    }

    /// Returns `true` while the client waits for the response to its `initialize`.
    pub(super) fn is_awaited(&self) -> bool {
        self.parts().waits.is_some()
    }

    /// Reports to a waiting client why its `initialize` has no response. The client may retry.
    pub(super) fn give_up(&self, why: &DownReason) {
        let mut parts = self.parts();
        let Some(waits) = parts.waits.take() else { return };
        parts.greeting = None;
        drop(parts);
        waits(Err(why.clone()), None);
    }

    /// Handles a process's response to `initialize`: replays the rest of the state, calls `up`, then answers a waiting client.
    pub(super) fn answered(
        &self,
        connection: &ServerConnection,
        up: impl FnOnce(),
        answer: ServerAnswer,
        held: MemoryShare,
    ) -> Greeted {
        let response = match answer {
            ServerAnswer::Response(response) => response,
            ServerAnswer::Failed(_) => return Greeted::Failed,
        };
        let mut parts = self.parts();
        let waits = parts.waits.take();
        let greeted = match (&response, &waits) {
            (Response::Result(_), _) => {
                parts.tell(connection);
                Greeted::Welcome
            }
            (Response::Error(_), Some(_)) => {
                parts.greeting = None;
                Greeted::Refused
            }
            (Response::Error(error), None) => return Greeted::RefusedAgain(error.get().to_owned()),
        };
        up();
        drop(parts);
        if let Some(waits) = waits {
            waits(Ok(response), held);
        }
        greeted
    }

    /// Stores the client's `initialized` line, and forwards it to a process that has answered `initialize`.
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

    /// Remembers a client request that changes the server's later behaviour.
    pub(super) fn keep(&self, request: &ServerRequest) {
        #[derive(serde::Deserialize)]
        struct Of<'a> {
            #[serde(borrow)]
            uri: &'a RawValue,
        }
        let Some(params) = request.params() else { return };
        let uri = || serde_json::from_str::<Of<'_>>(params.get()).map(|of| of.uri.get().to_owned()).ok();
        let mut parts = self.parts();
        match request.method() {
            "logging/setLevel" => parts.level = Some(params.to_owned()),
            "resources/subscribe" if parts.subscriptions.len() < MOST_SUBSCRIPTIONS => {
                let Some(uri) = uri() else { return };
                parts.subscriptions.insert(uri, params.to_owned());
            }
            "resources/unsubscribe" => drop(uri().map(|uri| parts.subscriptions.remove(&uri))),
            _ => {}
        }
    }

    /// Returns `true` if the client is subscribed to this resource.
    pub(super) fn follows(&self, uri: &str) -> bool {
        self.parts().subscriptions.contains_key(&serde_json::Value::from(uri).to_string())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    /// Replays the rest of the state to a process that has answered `initialize`.
    fn tell(&self, connection: &ServerConnection) {
        let Some(line) = &self.initialized else { return };
        connection.send_initialized(line);
        // The client already has the responses from the first time.
        if let Some(params) = &self.level {
            drop(connection.request("logging/setLevel", Some(params)));
        }
        for params in self.subscriptions.values() {
            drop(connection.request("resources/subscribe", Some(params)));
        }
    }
}
