//! Permission for a view, which the trusted process gives over a connection.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard},
};

use ironcurtain_view::{AccessKind, FileServer, Gate, Ticket, WantedAccess};

use crate::file_access::{AccessAnswer, FileAccess, FromView, PermittedAccess, ToView};

/// Connection to the trusted process, and the permissions it has sent.
#[derive(Debug)]
pub(super) struct ChannelGate {
    permitted: RwLock<HashSet<PermittedAccess>>,
    asks: Mutex<Asks>,
    connection: Mutex<UnixStream>,
}

#[derive(Debug, Default)]
struct Asks {
    open: HashMap<u64, OpenAsk>,
    last: u64,
    is_closed: bool,
}

/// A question, and the requests that wait for its answer.
#[derive(Debug)]
struct OpenAsk {
    access: WantedAccess,
    tickets: Vec<Ticket>,
}

impl ChannelGate {
    pub(super) fn new(connection: UnixStream) -> Self {
        Self { permitted: RwLock::default(), asks: Mutex::default(), connection: Mutex::new(connection) }
    }

    /// Handles messages of the trusted process until the connection is closed.
    pub(super) fn follow(&self, connection: &UnixStream, view: &FileServer) -> io::Result<()> {
        for line in BufReader::new(connection).lines() {
            match serde_json::from_str(&line?)? {
                ToView::Answer { id, answer } => self.answer(id, answer),
                ToView::Permit(access) => drop(self.permitted().insert(access)),
                ToView::Permissions { version, permitted } => {
                    *self.permitted() = permitted.into_iter().collect();
                    let complete = view.revoke();
                    self.send(&FromView::Applied { version, complete });
                }
            }
        }
        Ok(())
    }

    /// Denies every request that waits, and further ones.
    pub(super) fn deny_all(&self) {
        self.permitted().clear();
        let mut asks = self.asks();
        asks.is_closed = true;
        // Dropping the tickets denies.
        asks.open.clear();
    }

    fn answer(&self, id: u64, answer: AccessAnswer) {
        let Some(ask) = self.asks().open.remove(&id) else { return };
        for ticket in ask.tickets {
            match answer {
                AccessAnswer::Denied => ticket.deny(),
                AccessAnswer::Once => ticket.allow(),
                AccessAnswer::Permitted => ticket.retry(),
            }
        }
    }

    fn permitted(&self) -> RwLockWriteGuard<'_, HashSet<PermittedAccess>> {
        self.permitted.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn asks(&self) -> MutexGuard<'_, Asks> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &FromView) {
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        // If the trusted process is gone, `follow` ends too.
        let _ = self.connection.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

impl Gate for ChannelGate {
    fn permits(&self, access: &WantedAccess) -> bool {
        let Some(path) = access.path.to_str() else { return false };
        let permitted = self.permitted.read().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = access_of(access.kind).included_in().iter();
        wanted.any(|access| permitted.contains(&PermittedAccess { path: path.to_owned(), access: *access }))
    }

    fn ask(&self, access: &WantedAccess, process: u32, ticket: Ticket) {
        // Only text can be shown to the user.
        let Some(path) = access.path.to_str().map(str::to_owned) else { return ticket.deny() };
        let mut asks = self.asks();
        if asks.is_closed {
            return ticket.deny();
        }
        if let Some(same) = asks.open.values_mut().find(|ask| ask.access == *access) {
            return same.tickets.push(ticket);
        }
        asks.last += 1;
        let id = asks.last;
        asks.open.insert(id, OpenAsk { access: access.clone(), tickets: vec![ticket] });
        drop(asks);
        self.send(&FromView::Ask { id, path, access: access_of(access.kind), process });
    }

    fn withdraw(&self, ticket: u64) {
        let mut asks = self.asks();
        for ask in asks.open.values_mut() {
            ask.tickets.retain(|waiting| waiting.id() != ticket);
        }
        let over: Vec<u64> =
            asks.open.iter().filter(|(_, ask)| ask.tickets.is_empty()).map(|(id, _)| *id).collect();
        over.iter().for_each(|id| drop(asks.open.remove(id)));
        drop(asks);
        over.into_iter().for_each(|id| self.send(&FromView::Withdraw { id }));
    }
}

fn access_of(kind: AccessKind) -> FileAccess {
    match kind {
        AccessKind::Read => FileAccess::Read,
        AccessKind::Write => FileAccess::Write,
        AccessKind::ReadWrite => FileAccess::ReadWrite,
        AccessKind::Delete => FileAccess::Delete,
    }
}
