//! A client's in-flight requests.
//!
//! - INVARIANT: the client may reuse an id once its request has been answered or cancelled. A unique number prevents
//!   work for the old request from affecting the new one.

use ironcurtain_mcp::server::RequestHandle;
use ironcurtain_mcp::wire::Id;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Identity of a request. It stays unique even if the client reuses the request's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) id: Id,
    number: u64,
}

/// State of an in-flight request.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Handle of the request that was sent to the server, or `None` if it was not sent.
    pub(super) at_server: Option<RequestHandle>,
    /// Handle that aborts the task for the request.
    pub(super) task: Option<AbortHandle>,
    /// Name of the called tool, or `None` for other requests.
    pub(super) tool: Option<String>,
}

/// A session's in-flight requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    table: Mutex<Table>,
    /// Notified when the last in-flight request has finished.
    became_empty: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last_number: u64,
    requests: HashMap<Id, (u64, InFlight)>,
}

impl Requests {
    /// Adds a request. Returns `None` if its id is already in flight.
    pub(super) fn enter(&self, id: &Id) -> Option<Ticket> {
        let mut table = self.table();
        if table.requests.contains_key(id) {
            return None;
        }
        table.last_number += 1;
        let number = table.last_number;
        table.requests.insert(id.clone(), (number, InFlight::default()));
        Some(Ticket { id: id.clone(), number })
    }

    /// Updates the state of a request. Returns `false` if the request is no longer in flight.
    pub(super) fn update(&self, ticket: &Ticket, change: impl FnOnce(&mut InFlight)) -> bool {
        match self.table().requests.get_mut(&ticket.id) {
            Some((number, request)) if *number == ticket.number => {
                change(request);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Removes a request. Returns `false` if the request was no longer in flight.
    pub(super) fn finish(&self, ticket: &Ticket) -> bool {
        let mut table = self.table();
        let is_open = table.requests.get(&ticket.id).is_some_and(|(number, _)| *number == ticket.number);
        if is_open {
            table.requests.remove(&ticket.id);
        }
        if table.requests.is_empty() {
            self.became_empty.notify_waiters();
        }
        is_open
    }

    /// Removes and returns the request with this id.
    pub(super) fn cancel(&self, id: &Id) -> Option<InFlight> {
        let mut table = self.table();
        let request = table.requests.remove(id).map(|(_, request)| request);
        if table.requests.is_empty() {
            self.became_empty.notify_waiters();
        }
        request
    }

    /// Waits until no request is in flight.
    pub(super) async fn wait_until_empty(&self) {
        loop {
            let mut ended = std::pin::pin!(self.became_empty.notified());
            ended.as_mut().enable();
            if self.table().requests.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Returns the names of the tools whose calls the server is handling.
    pub(super) fn tools_at_server(&self) -> Vec<String> {
        let table = self.table();
        let at_server = table.requests.values().filter(|(_, request)| request.at_server.is_some());
        let mut tools: Vec<String> = at_server.filter_map(|(_, request)| request.tool.clone()).collect();
        tools.sort();
        tools
    }

    pub(super) fn drain(&self) -> Vec<(Id, InFlight)> {
        self.table().requests.drain().map(|(id, (_, request))| (id, request)).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_ticket_does_not_affect_a_new_request_with_the_same_id() {
        let (requests, id) = (Requests::default(), Id::from(7));
        let old = requests.enter(&id).unwrap();
        assert_eq!(requests.enter(&id), None);
        assert!(requests.update(&old, |request| request.tool = Some("old".to_owned())));
        assert_eq!(requests.cancel(&id).unwrap().tool.as_deref(), Some("old"));

        let new = requests.enter(&id).unwrap();
        assert!(!requests.update(&old, |request| request.tool = Some("old".to_owned())));
        assert!(!requests.finish(&old));
        assert!(requests.update(&new, |request| assert_eq!(request.tool, None)));
        assert!(requests.finish(&new));
        assert!(!requests.finish(&new));
        assert!(requests.enter(&id).is_some());
        assert_eq!(requests.drain().len(), 1);
    }
}
