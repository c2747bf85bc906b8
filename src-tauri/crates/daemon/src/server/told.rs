//! Everything that the client told its server and that a later process of it must be told too, before it takes a call: the
//! greeting, that the client is initialized, the level of its log, and the resources that it follows.
//!
//! - The client hears of one greeting only: should the process end before it has answered, the next one answers.

use super::down::DownReason;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{MemoryShare, ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of resources whose subscription is told again.
const MOST_SUBSCRIPTIONS: usize = 1000;

/// Takes the answer to the client's greeting, or why there is none.
pub type OnGreeted = Box<dyn FnOnce(Result<Response, DownReason>, MemoryShare) + Send>;

/// The outcome of a greeting.
#[derive(Debug)]
pub(super) enum Greeted {
    /// The server took it.
    Welcome,
    /// The server refused it, and the client knows.
    Refused,
    /// The server, started again, refused it with this error.
    RefusedAgain(String),
    /// It ended first.
    Failed,
    /// Started again, it was silent.
    Unanswered,
}

/// The parts, shared by the handle and the owner of the process.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    greeting: Option<Box<RawValue>>,
    /// The number of times that the client has greeted.
    number: u64,
    /// The client, while it waits.
    waits: Option<OnGreeted>,
    initialized: Option<Vec<u8>>,
    level: Option<Box<RawValue>>,
    subscriptions: BTreeMap<String, Box<RawValue>>,
}

/// The parts as another trusted process is given them, with a session that is moved there.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ToldState {
    greeting: Option<Box<RawValue>>,
    /// The line.
    initialized: Option<String>,
    level: Option<Box<RawValue>>,
    /// The parameters of each subscription, by the address as JSON text.
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
    /// A copy of the parts, without the client that waits.
    pub(super) fn state(&self) -> ToldState {
        let parts = self.parts();
        ToldState {
            greeting: parts.greeting.clone(),
            initialized: parts.initialized.as_ref().map(|line| String::from_utf8_lossy(line).into_owned()),
            level: parts.level.clone(),
            subscriptions: parts.subscriptions.clone(),
        }
    }

    /// The client greets.
    pub(super) fn greets(&self, params: Box<RawValue>, waits: OnGreeted) {
        let mut parts = self.parts();
        parts.greeting = Some(params);
        parts.number += 1;
        parts.waits = Some(waits);
    }

    /// The parameters of the greeting, once there is one, and its number.
    pub(super) fn greeting(&self) -> Option<(Box<RawValue>, u64)> {
        let parts = self.parts();
        Some((parts.greeting.clone()?, parts.number))
    }

    /// The number of the last greeting.
    pub(super) fn number(&self) -> u64 {
        self.parts().number
    }

    /// Returns `true` while the client waits for the answer to its greeting.
    pub(super) fn is_awaited(&self) -> bool {
        self.parts().waits.is_some()
    }

    /// Tells a client that waits why its greeting has no answer. It may greet again.
    pub(super) fn give_up(&self, why: &DownReason) {
        let mut parts = self.parts();
        let Some(waits) = parts.waits.take() else { return };
        parts.greeting = None;
        drop(parts);
        waits(Err(why.clone()), None);
    }

    /// A process has answered the greeting: it is told the rest, `up` makes it known, and then a client that waits has its answer.
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

    /// The client is initialized, by this line. A process that has answered the greeting is told so.
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

    /// Keeps a request of the client that changes what its server does from then on.
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

    /// Returns `true` if the client follows the resource of this address.
    pub(super) fn follows(&self, uri: &str) -> bool {
        self.parts().subscriptions.contains_key(&serde_json::Value::from(uri).to_string())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parts {
    /// Tells a process that has answered the greeting the rest.
    fn tell(&self, connection: &ServerConnection) {
        let Some(line) = &self.initialized else { return };
        connection.send_initialized(line);
        // Whether it takes them it has told the client already.
        if let Some(params) = &self.level {
            drop(connection.request("logging/setLevel", Some(params)));
        }
        for params in self.subscriptions.values() {
            drop(connection.request("resources/subscribe", Some(params)));
        }
    }
}
