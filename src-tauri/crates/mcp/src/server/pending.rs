//! Requests in flight at one server process.

use super::{MemoryShare, ServerConnection};
use crate::server::NoResponse;
use crate::server::client_request::ClientRequest;
use crate::wire::{Fields, Id, Response};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Maximum number of server requests that the client has not answered.
pub(super) const MAX_CLIENT_REQUESTS: usize = 256;

/// Prefix of our own request ids to the client, as JSON text.
const OWN_ID_PREFIX: &str = "\"ironcurtain-input:";

/// Returns `true` if an id has the prefix of our own ids, which a server must not use.
pub(super) fn is_ours(id: &Id) -> bool {
    id.as_json().starts_with(OWN_ID_PREFIX)
}

/// Outcome of a request.
#[derive(Debug, Clone)]
pub enum ServerAnswer {
    /// The server's response.
    Response(Response),
    /// No response, and the reason to report to the client.
    Failed(NoResponse),
}

/// Request in flight. Dropping it discards the response.
#[derive(Debug)]
pub struct PendingRequest(oneshot::Receiver<ServerAnswer>);

impl PendingRequest {
    pub(super) fn new(answer: oneshot::Receiver<ServerAnswer>) -> Self {
        Self(answer)
    }

    /// Waits for the outcome of the request.
    pub async fn answer(self) -> ServerAnswer {
        self.0.await.unwrap_or(ServerAnswer::Failed(NoResponse::ServerExited(None)))
    }
}

/// Handle for cancelling a request.
#[derive(Clone)]
pub struct RequestHandle {
    /// Id of the request at the server, or `None` if the request was never sent.
    id: Option<u64>,
    connection: ServerConnection,
}

impl RequestHandle {
    pub(super) fn new(id: Option<u64>, connection: ServerConnection) -> Self {
        Self { id, connection }
    }

    /// Sends `notifications/cancelled` to the process handling the request, if it is still running.
    pub fn cancel(&self, reason: Option<&str>) {
        if let Some(id) = self.id {
            self.connection.cancel(id, reason);
        }
    }
}

impl fmt::Debug for RequestHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHandle").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Callback for the response to a request.
pub type OnAnswer = Box<dyn FnOnce(ServerAnswer, MemoryShare) + Send>;

/// All requests in flight at the server and at the client.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    open: HashMap<u64, OnAnswer>,
    /// Server requests that the client has not answered, at most [`MAX_CLIENT_REQUESTS`].
    client_requests: HashMap<Id, ClientRequest>,
    /// `true` once the end of the server's output was reached.
    is_closed: bool,
    /// Exit reason, once it is known.
    failure: Option<NoResponse>,
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests").field("open", &self.table().open.len()).finish_non_exhaustive()
    }
}

impl PendingRequests {
    /// Adds a request and returns its id at the server. If the server has exited, fails the request at once.
    pub(super) fn add(&self, then: OnAnswer) -> Option<u64> {
        let mut table = self.table();
        table.last += 1;
        let id = table.last;
        if let Some(why) = table.failure.clone() {
            drop(table);
            then(ServerAnswer::Failed(why), None);
            return None;
        }
        table.open.insert(id, then);
        (!table.is_closed).then_some(id)
    }

    /// Delivers a response to its request. Returns `true` if such a request was in flight.
    pub(super) fn deliver(&self, id: &Id, response: Response, share: MemoryShare) -> bool {
        match self.take(id.as_json()) {
            Some(then) => {
                then(ServerAnswer::Response(response), share);
                true
            }
            // An id that is spelled differently is a different id, but the server will not respond to the request
            // again.
            None => self.fail_matching(Some(id.as_json()), || NoResponse::UnknownId(id.as_json().to_owned())),
        }
    }

    /// Fails the request that an invalid line was meant to answer: the request with the line's id, or the only request
    /// in flight. Returns `true` if there was such a request.
    pub(super) fn fail_matching(&self, id: Option<&str>, why: impl FnOnce() -> NoResponse) -> bool {
        let then = match id.filter(|id| *id != "null") {
            Some(id) => self.take(id.trim_matches('"').trim_end_matches(".0")),
            None => {
                let mut table = self.table();
                let only = table.open.keys().next().copied().filter(|_| table.open.len() == 1);
                only.and_then(|id| table.open.remove(&id))
            }
        };
        let was_pending = then.is_some();
        if let Some(then) = then {
            then(ServerAnswer::Failed(why()), None);
        }
        was_pending
    }

    /// Removes a request. Returns `true` if it was in flight.
    pub(super) fn remove(&self, id: u64) -> bool {
        let then = self.table().open.remove(&id);
        then.is_some()
    }

    /// Fails every request in flight.
    pub(super) fn fail_all(&self, why: &NoResponse) {
        let open = std::mem::take(&mut self.table().open);
        for (_, then) in open {
            then(ServerAnswer::Failed(why.clone()), None);
        }
    }

    /// Stops sending requests. Requests in flight and new requests wait for the exit reason.
    pub(super) fn mark_closed(&self) {
        self.table().is_closed = true;
    }

    /// Fails every request in flight, and every later request, with the exit reason.
    pub(super) fn close(&self, why: &NoResponse) {
        let mut table = self.table();
        table.is_closed = true;
        table.failure.get_or_insert_with(|| why.clone());
        drop(table);
        self.fail_all(why);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.table().is_closed
    }

    /// Records a server request to the client. Returns `false` if too many requests are unanswered or the id is in use.
    pub(super) fn add_client_request(&self, id: &Id, request: ClientRequest) -> bool {
        let mut table = self.table();
        let is_free =
            table.client_requests.len() < MAX_CLIENT_REQUESTS && !table.client_requests.contains_key(id);
        if is_free {
            table.client_requests.insert(id.clone(), request);
        }
        is_free
    }

    /// Records an input request to the client that belongs to a call. The call itself limits the number of such
    /// requests.
    pub(super) fn add_input_request(&self, id: Id, request: ClientRequest) {
        self.table().client_requests.insert(id, request);
    }

    /// Removes the request that the server cancels with these notification parameters.
    pub(super) fn cancel_client_request(&self, params: Option<&RawValue>) {
        let fields: Option<Fields> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let id = fields.as_ref().and_then(|fields| Id::try_from(fields.get("requestId")?).ok());
        if let Some(id) = id {
            self.remove_client_request(&id);
        }
    }

    /// Removes and returns a request to the client. Returns `None` if the request is withheld, answered or cancelled.
    pub(super) fn take_client_request(&self, id: &Id) -> Option<ClientRequest> {
        let mut table = self.table();
        let is_withheld = *table.client_requests.get(id)? == ClientRequest::Withheld;
        if is_withheld { None } else { table.client_requests.remove(id) }
    }

    /// Removes a request that the client no longer needs to answer.
    pub(super) fn remove_client_request(&self, id: &Id) {
        self.table().client_requests.remove(id);
    }

    fn take(&self, id: &str) -> Option<OnAnswer> {
        let id: u64 = id.parse().ok()?;
        self.table().open.remove(&id)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
