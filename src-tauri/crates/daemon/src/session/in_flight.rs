//! The client's requests that have no answer yet.
//!
//! - INVARIANT: an id may be used again once its request is answered or taken back, and what is still at work for the
//!   old request changes nothing of the new one: each has a number of its own.

use ironcurtain_mcp::server::RequestHandle;
use ironcurtain_mcp::wire::Id;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Stands for one request, which an id alone does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ticket {
    /// Its id.
    pub(super) id: Id,
    number: u64,
}

/// A request that has no answer yet.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The request as the server has it, once it is forwarded.
    pub(super) at_server: Option<RequestHandle>,
    /// Ends the task that waits for it.
    pub(super) task: Option<AbortHandle>,
    /// The tool, if it is a tool call.
    pub(super) tool: Option<String>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    table: Mutex<Table>,
    /// Notified when the last of them ends.
    none_left: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    open: HashMap<Id, (u64, InFlight)>,
}

impl Requests {
    /// Takes a request, unless one of this id is under way.
    pub(super) fn enter(&self, id: &Id) -> Option<Ticket> {
        let mut table = self.table();
        if table.open.contains_key(id) {
            return None;
        }
        table.last += 1;
        let number = table.last;
        table.open.insert(id.clone(), (number, InFlight::default()));
        Some(Ticket { id: id.clone(), number })
    }

    /// Changes what is known of a request, if it is still under way. Returns `false` if it is not.
    pub(super) fn update(&self, ticket: &Ticket, change: impl FnOnce(&mut InFlight)) -> bool {
        match self.table().open.get_mut(&ticket.id) {
            Some((number, request)) if *number == ticket.number => {
                change(request);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Ends a request; whether it was still under way.
    pub(super) fn finish(&self, ticket: &Ticket) -> bool {
        let mut table = self.table();
        let is_open = table.open.get(&ticket.id).is_some_and(|(number, _)| *number == ticket.number);
        if is_open {
            table.open.remove(&ticket.id);
        }
        if table.open.is_empty() {
            self.none_left.notify_waiters();
        }
        is_open
    }

    /// Ends the request that has this id now.
    pub(super) fn take_back(&self, id: &Id) -> Option<InFlight> {
        let mut table = self.table();
        let request = table.open.remove(id).map(|(_, request)| request);
        if table.open.is_empty() {
            self.none_left.notify_waiters();
        }
        request
    }

    /// Completes when none is under way.
    pub(super) async fn none_left(&self) {
        loop {
            let mut ended = std::pin::pin!(self.none_left.notified());
            ended.as_mut().enable();
            if self.table().open.is_empty() {
                return;
            }
            ended.await;
        }
    }

    /// Ends all of them.
    pub(super) fn take_all(&self) -> Vec<(Id, InFlight)> {
        self.table().open.drain().map(|(id, (_, request))| (id, request)).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_an_old_request_does_not_touch_a_new_one_of_its_id() {
        let (requests, id) = (Requests::default(), Id::from(7));
        let old = requests.enter(&id).unwrap();
        assert_eq!(requests.enter(&id), None);
        assert!(requests.update(&old, |request| request.tool = Some("old".to_owned())));
        assert_eq!(requests.take_back(&id).unwrap().tool.as_deref(), Some("old"));

        let new = requests.enter(&id).unwrap();
        assert!(!requests.update(&old, |request| request.tool = Some("old".to_owned())));
        assert!(!requests.finish(&old));
        assert!(requests.update(&new, |request| assert_eq!(request.tool, None)));
        assert!(requests.finish(&new));
        assert!(!requests.finish(&new));
        assert!(requests.enter(&id).is_some());
        assert_eq!(requests.take_all().len(), 1);
    }
}
