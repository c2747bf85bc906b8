//! Permissions of a view, received from the trusted process.

use std::{
    collections::{HashMap, HashSet},
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use ironcurtain_view::{AccessKind, AskedAccess, FileServer, Gate, Reservation, Ticket, WantedAccess};

use super::programs::programs;
use crate::{
    autostart::{leads_to_programs, runs_later},
    file_access::{AccessAnswer, FileAccess, FromView, PermittedAccess, ToView},
};

/// Time to keep a question open after its last request stopped waiting, because programs often retry immediately.
const KEPT: Duration = Duration::from_secs(1);

/// Maximum number of questions queued for sending.
const MAX_UNNAMED: usize = 8192;

/// Connection to the trusted process, and the permissions that it has sent.
#[derive(Debug)]
pub(super) struct ChannelGate {
    permitted: RwLock<HashSet<PermittedAccess>>,
    asks: Mutex<Asks>,
    /// Notified when the last request that was waiting for a question's answer gives up.
    left: Condvar,
    connection: Mutex<UnixStream>,
    to_name: SyncSender<NewAsk>,
    /// The user's home directory, where programs run certain files because of their names.
    home: String,
}

#[derive(Debug, Default)]
struct Asks {
    open: HashMap<u64, OpenAsk>,
    last: u64,
    is_closed: bool,
}

/// Question that was sent, and the requests waiting for its answer.
#[derive(Debug)]
struct OpenAsk {
    asked: AskedAccess,
    tickets: Vec<Ticket>,
    /// Time at which the last request gave up, or `None` while a request is waiting.
    left: Option<Instant>,
}

/// Question that is queued for sending.
#[derive(Debug)]
struct NewAsk {
    id: u64,
    path: String,
    access: FileAccess,
    process: u32,
}

impl ChannelGate {
    /// Creates a gate and spawns its threads.
    pub(super) fn start(connection: UnixStream, home: String) -> io::Result<Arc<Self>> {
        let (to_name, named) = mpsc::sync_channel(MAX_UNNAMED);
        let gate = Arc::new(Self {
            permitted: RwLock::default(),
            asks: Mutex::default(),
            left: Condvar::new(),
            connection: Mutex::new(connection),
            to_name,
            home,
        });
        let sending = gate.clone();
        thread::Builder::new().name("questions".into()).spawn(move || sending.send_asks(&named))?;
        let withdrawing = gate.clone();
        thread::Builder::new().name("withdrawals".into()).spawn(move || withdrawing.withdraw_left())?;
        Ok(gate)
    }

    /// Sends queued questions, with the names of the waiting programs.
    fn send_asks(&self, asks: &Receiver<NewAsk>) {
        for NewAsk { id, path, access, process } in asks {
            self.send(&FromView::Ask { id, path, access, programs: programs(process) });
        }
    }

    /// Withdraws each question whose last request gave up at least [`KEPT`] ago.
    fn withdraw_left(&self) {
        let mut asks = self.asks();
        while !asks.is_closed {
            let over = |ask: &OpenAsk| ask.left.is_some_and(|since| since.elapsed() >= KEPT);
            let ids: Vec<u64> = asks.open.iter().filter(|(_, ask)| over(ask)).map(|(id, _)| *id).collect();
            for id in &ids {
                asks.open.remove(id);
            }
            if !ids.is_empty() {
                drop(asks);
                ids.into_iter().for_each(|id| self.send(&FromView::Withdraw { id }));
                asks = self.asks();
                continue;
            }
            let next = asks.open.values().filter_map(|ask| ask.left).min();
            asks = match next {
                Some(since) => {
                    let rest = KEPT.saturating_sub(since.elapsed());
                    self.left.wait_timeout(asks, rest).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.left.wait(asks).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Handles messages from the trusted process until the connection closes.
    pub(super) fn follow(self: &Arc<Self>, connection: &UnixStream, view: &FileServer) -> io::Result<()> {
        for line in BufReader::new(connection).lines() {
            match serde_json::from_str(&line?)? {
                ToView::Answer { id, answer } => self.answer(id, answer),
                ToView::Permit(access) => drop(self.permitted().insert(access)),
                ToView::Permissions { version, permitted } => {
                    *self.permitted() = permitted.into_iter().collect();
                    let complete = view.revoke();
                    self.send(&FromView::Applied { version, complete });
                }
                ToView::Reserve { path, number } => self.report_when(view.reserve(path.into()), number)?,
                ToView::Mounted { paths } => view.set_mounted(paths.into_iter().map(Into::into).collect()),
            }
        }
        Ok(())
    }

    /// Reports a reservation to the trusted process once it takes effect. This can take as long as the user needs to
    /// answer a question.
    fn report_when(self: &Arc<Self>, reservation: Reservation, number: u64) -> io::Result<()> {
        let gate = self.clone();
        let report = move || {
            if reservation.wait() {
                gate.send(&FromView::Reserved { number });
            }
        };
        thread::Builder::new().name("reservation".into()).spawn(report).map(drop)
    }

    /// Denies all pending and future requests.
    pub(super) fn deny_all(&self) {
        self.permitted().clear();
        let mut asks = self.asks();
        asks.is_closed = true;
        // Dropping the tickets denies their requests.
        asks.open.clear();
        self.left.notify_all();
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
        // Ignores the error: if the trusted process has exited, `follow` returns too.
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

    fn ask(&self, asked: &AskedAccess, process: u32, ticket: Ticket) {
        // Only UTF-8 can be displayed to the user.
        let Some(path) = asked.access.path.to_str().map(str::to_owned) else { return ticket.deny() };
        let mut asks = self.asks();
        if asks.is_closed {
            return ticket.deny();
        }
        if let Some(same) = asks.open.values_mut().find(|ask| ask.asked == *asked) {
            same.left = None;
            return same.tickets.push(ticket);
        }
        asks.last += 1;
        let id = asks.last;
        asks.open.insert(id, OpenAsk { asked: asked.clone(), tickets: vec![ticket], left: None });
        drop(asks);
        let access = access_of(asked.access.kind);
        // A separate thread looks up the program names. If its queue is full, the request is denied.
        if self.to_name.try_send(NewAsk { id, path, access, process }).is_err() {
            self.asks().open.remove(&id);
        }
    }

    fn starts_programs(&self, path: &Path) -> bool {
        path.to_str().is_none_or(|path| runs_later(path, Some(&self.home)).is_some())
    }

    fn leads_to_programs(&self, path: &Path) -> bool {
        path.to_str().is_none_or(|path| leads_to_programs(path, Some(&self.home)))
    }

    fn withdraw(&self, ticket: u64) {
        let mut asks = self.asks();
        for ask in asks.open.values_mut() {
            ask.tickets.retain(|waiting| waiting.id() != ticket);
            if ask.tickets.is_empty() {
                ask.left.get_or_insert_with(Instant::now);
            }
        }
        self.left.notify_all();
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
