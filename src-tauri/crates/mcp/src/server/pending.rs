//! The requests that one server process has been sent and has not answered.

use super::{MemoryShare, ServerConnection};
use crate::server::NoAnswer;
use crate::server::client_answer::ClientRequest;
use crate::wire::{Fields, Id, Response};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The number of requests of a server that the client may owe an answer to.
pub(super) const MOST_OF_CLIENT: usize = 256;

/// The beginning of the ids of our own requests to the client, as they are written.
const OURS: &str = "\"ironcurtain-input:";

/// Returns `true` if an id is one of our own requests to the client, which a server may not use.
pub(super) fn is_ours(id: &Id) -> bool {
    id.as_json().starts_with(OURS)
}

/// The outcome of a request.
#[derive(Debug, Clone)]
pub enum ServerAnswer {
    /// The server answered.
    Response(Response),
    /// It cannot have: the reason is for the client.
    Failed(NoAnswer),
}

/// A request under way, for whoever waits for its answer. Dropped, its answer is ignored.
#[derive(Debug)]
pub struct PendingRequest(oneshot::Receiver<ServerAnswer>);

impl PendingRequest {
    pub(super) fn new(answer: oneshot::Receiver<ServerAnswer>) -> Self {
        Self(answer)
    }

    /// Waits for the answer.
    pub async fn answer(self) -> ServerAnswer {
        self.0.await.unwrap_or(ServerAnswer::Failed(NoAnswer::Ended(None)))
    }
}

/// The conversation that a request is in, and its id there.
#[derive(Clone)]
pub struct RequestHandle {
    /// None for one that was never sent.
    id: Option<u64>,
    connection: ServerConnection,
}

impl RequestHandle {
    pub(super) fn new(id: Option<u64>, connection: ServerConnection) -> Self {
        Self { id, connection }
    }

    /// Tells the server that the request is taken back. Another process than the one that has it is not told.
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

/// Takes an answer.
pub type OnAnswer = Box<dyn FnOnce(ServerAnswer, MemoryShare) + Send>;

/// All of them.
#[derive(Default)]
pub(super) struct PendingRequests(Mutex<Table>);

#[derive(Default)]
struct Table {
    last: u64,
    open: HashMap<u64, OnAnswer>,
    /// Requests of the server that the client has not answered, at most [`MOST_OF_CLIENT`].
    of_client: HashMap<Id, ClientRequest>,
    /// Set when the server's output has ended.
    is_over: bool,
    /// Set when it is known how.
    ended: Option<NoAnswer>,
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests").field("open", &self.table().open.len()).finish_non_exhaustive()
    }
}

impl PendingRequests {
    /// Takes a request; its id at the server, if it is to be sent. After the end it is answered with that.
    pub(super) fn enter(&self, then: OnAnswer) -> Option<u64> {
        let mut table = self.table();
        table.last += 1;
        let id = table.last;
        if let Some(why) = table.ended.clone() {
            drop(table);
            then(ServerAnswer::Failed(why), None);
            return None;
        }
        table.open.insert(id, then);
        (!table.is_over).then_some(id)
    }

    /// Gives an answer to whoever waits for it. Tells if somebody asked.
    pub(super) fn answered(&self, id: &Id, response: Response, held: MemoryShare) -> bool {
        match self.take(id.as_json()) {
            Some(then) => {
                then(ServerAnswer::Response(response), held);
                true
            }
            // One under another spelling of its id is none, but nobody needs to wait for another.
            None => self.misanswered(Some(id.as_json()), || NoAnswer::WrongId(id.as_json().to_owned())),
        }
    }

    /// Fails the request that a line which is no answer may have been meant for: that of its id, or the only one. Tells if there
    /// was one.
    pub(super) fn misanswered(&self, id: Option<&str>, why: impl FnOnce() -> NoAnswer) -> bool {
        let then = match id.filter(|id| *id != "null") {
            Some(id) => self.take(id.trim_matches('"').trim_end_matches(".0")),
            None => {
                let mut table = self.table();
                let only = table.open.keys().next().copied().filter(|_| table.open.len() == 1);
                only.and_then(|id| table.open.remove(&id))
            }
        };
        let is_somebodys = then.is_some();
        if let Some(then) = then {
            then(ServerAnswer::Failed(why()), None);
        }
        is_somebodys
    }

    /// Forgets a request; tells if it was open.
    pub(super) fn forget(&self, id: u64) -> bool {
        let then = self.table().open.remove(&id);
        then.is_some()
    }

    /// Fails every request.
    pub(super) fn fail_all(&self, why: &NoAnswer) {
        let open = std::mem::take(&mut self.table().open);
        for (_, then) in open {
            then(ServerAnswer::Failed(why.clone()), None);
        }
    }

    /// From now on nothing is sent. What is open, and what comes, waits to be told how it ended.
    pub(super) fn take_no_more(&self) {
        self.table().is_over = true;
    }

    /// Tells everybody how it ended.
    pub(super) fn end(&self, why: &NoAnswer) {
        let mut table = self.table();
        table.is_over = true;
        table.ended.get_or_insert_with(|| why.clone());
        drop(table);
        self.fail_all(why);
    }

    pub(super) fn is_over(&self) -> bool {
        self.table().is_over
    }

    /// Notes that the client is asked this; tells if there is room for it, and nothing of this id is open.
    pub(super) fn client_asked(&self, id: &Id, request: ClientRequest) -> bool {
        let mut table = self.table();
        let is_free = table.of_client.len() < MOST_OF_CLIENT && !table.of_client.contains_key(id);
        if is_free {
            table.of_client.insert(id.clone(), request);
        }
        is_free
    }

    /// Notes that the client is asked this on behalf of a call, which bounds what it asks.
    pub(super) fn client_asked_for(&self, id: Id, request: ClientRequest) {
        self.table().of_client.insert(id, request);
    }

    /// The server takes a request to the client back by these parameters, so nothing is owed for it any more.
    pub(super) fn client_asked_no_more(&self, params: Option<&RawValue>) {
        let fields: Option<Fields> = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let id = fields.as_ref().and_then(|fields| Id::try_from(fields.get("requestId")?).ok());
        if let Some(id) = id {
            self.forget_client_request(&id);
        }
    }

    /// Removes a request that the client was sent and returns it, unless the client has answered it or the server has cancelled it.
    pub(super) fn client_answered(&self, id: &Id) -> Option<ClientRequest> {
        let mut table = self.table();
        let is_withheld = *table.of_client.get(id)? == ClientRequest::Withheld;
        if is_withheld { None } else { table.of_client.remove(id) }
    }

    /// Forgets a request that the client is not sent, or need not answer any more.
    pub(super) fn forget_client_request(&self, id: &Id) {
        self.table().of_client.remove(id);
    }

    fn take(&self, id: &str) -> Option<OnAnswer> {
        let id: u64 = id.parse().ok()?;
        self.table().open.remove(&id)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
