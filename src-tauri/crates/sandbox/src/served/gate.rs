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
use super::reads::Reads;
use crate::{
    autostart::{autostart_condition, leads_to_programs},
    file_access::{AccessAnswer, FileAccess, FromView, PermittedAccess, ToView},
};

/// Time to keep a question open after its last request stopped waiting, because programs often retry immediately.
const WITHDRAW_DELAY: Duration = Duration::from_secs(1);

/// Maximum number of questions queued for sending.
const MAX_QUEUED: usize = 8192;

/// Permissions that the trusted process has sent.
#[derive(Debug, Default)]
struct Permissions {
    accesses: HashSet<PermittedAccess>,
    /// Folders whose files may all be opened for reading.
    readable: HashSet<String>,
    /// Folders whose open files may be read.
    kept: HashSet<String>,
}

impl Permissions {
    /// Returns `true` if this access, or one that includes it, is permitted for the file itself.
    fn permits(&self, path: &str, access: FileAccess) -> bool {
        access
            .included_in()
            .iter()
            .any(|access| self.accesses.contains(&PermittedAccess { path: path.to_owned(), access: *access }))
    }
}

/// Returns `true` if the file is below one of the folders.
fn is_below(folders: &HashSet<String>, path: &str) -> bool {
    let above = Path::new(path).ancestors().skip(1);
    !folders.is_empty() && above.filter_map(Path::to_str).any(|folder| folders.contains(folder))
}

/// Connection to the trusted process, and the permissions that it has sent.
#[derive(Debug)]
pub(super) struct ChannelGate {
    permitted: RwLock<Permissions>,
    /// Files below readable folders that were reported.
    reads: Reads,
    questions: Mutex<OpenQuestions>,
    /// Notified when the last request that was waiting for a question's answer gives up.
    abandoned: Condvar,
    connection: Mutex<UnixStream>,
    question_sender: SyncSender<QueuedQuestion>,
    /// The user's home directory, where programs run certain files because of their names.
    home: String,
}

#[derive(Debug, Default)]
struct OpenQuestions {
    open: HashMap<u64, OpenQuestion>,
    last: u64,
    is_closed: bool,
}

/// Question that was sent, and the requests waiting for its answer.
#[derive(Debug)]
struct OpenQuestion {
    asked: AskedAccess,
    tickets: Vec<Ticket>,
    /// Time at which the last request gave up, or `None` while a request is waiting.
    abandoned_at: Option<Instant>,
}

/// Question that is queued for sending.
#[derive(Debug)]
struct QueuedQuestion {
    id: u64,
    path: String,
    access: FileAccess,
    process: u32,
}

impl ChannelGate {
    /// Creates a gate and spawns its threads.
    pub(super) fn start(connection: UnixStream, home: String) -> io::Result<Arc<Self>> {
        let (question_sender, question_queue) = mpsc::sync_channel(MAX_QUEUED);
        let gate = Arc::new(Self {
            permitted: RwLock::default(),
            reads: Reads::default(),
            questions: Mutex::default(),
            abandoned: Condvar::new(),
            connection: Mutex::new(connection),
            question_sender,
            home,
        });
        let sending = gate.clone();
        thread::Builder::new()
            .name("questions".into())
            .spawn(move || sending.send_questions(&question_queue))?;
        let withdrawing = gate.clone();
        thread::Builder::new().name("withdrawals".into()).spawn(move || withdrawing.withdraw_abandoned())?;
        Ok(gate)
    }

    /// Sends queued questions, with the names of the waiting programs.
    fn send_questions(&self, questions: &Receiver<QueuedQuestion>) {
        for QueuedQuestion { id, path, access, process } in questions {
            self.send(&FromView::Ask { id, path, access, programs: programs(process) });
        }
    }

    /// Withdraws each question whose last request gave up at least [`WITHDRAW_DELAY`] ago.
    fn withdraw_abandoned(&self) {
        let mut questions = self.questions();
        while !questions.is_closed {
            let is_expired =
                |ask: &OpenQuestion| ask.abandoned_at.is_some_and(|since| since.elapsed() >= WITHDRAW_DELAY);
            let ids: Vec<u64> =
                questions.open.iter().filter(|(_, ask)| is_expired(ask)).map(|(id, _)| *id).collect();
            for id in &ids {
                questions.open.remove(id);
            }
            if !ids.is_empty() {
                drop(questions);
                ids.into_iter().for_each(|id| self.send(&FromView::Withdraw { id }));
                questions = self.questions();
                continue;
            }
            let next = questions.open.values().filter_map(|ask| ask.abandoned_at).min();
            questions = match next {
                Some(since) => {
                    let remaining = WITHDRAW_DELAY.saturating_sub(since.elapsed());
                    self.abandoned
                        .wait_timeout(questions, remaining)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self.abandoned.wait(questions).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Handles messages from the trusted process until the connection closes.
    pub(super) fn handle_messages(
        self: &Arc<Self>,
        connection: &UnixStream,
        view: &FileServer,
    ) -> io::Result<()> {
        for line in BufReader::new(connection).lines() {
            match serde_json::from_str(&line?)? {
                ToView::Answer { id, answer } => self.answer(id, answer),
                ToView::Permit(access) => drop(self.permitted().accesses.insert(access)),
                ToView::PermitReading { folder } => {
                    let mut permitted = self.permitted();
                    permitted.kept.insert(folder.clone());
                    permitted.readable.insert(folder);
                }
                ToView::Permissions { version, permitted, readable, kept } => {
                    let now = Permissions {
                        accesses: permitted.into_iter().collect(),
                        readable: readable.into_iter().collect(),
                        kept: kept.into_iter().collect(),
                    };
                    let before = std::mem::replace(&mut *self.permitted(), now);
                    let ended: Vec<String> =
                        before.readable.difference(&self.permitted().readable).cloned().collect();
                    // Waits for running operations, which may still report files in these folders.
                    let complete = view.revoke();
                    if !ended.is_empty() {
                        self.reads.forget(&ended);
                    }
                    self.send(&FromView::Applied { version, complete });
                }
                ToView::Reserve { path, number } => {
                    self.report_reservation(view.reserve(path.into()), number)?
                }
                ToView::Mounted { paths } => view.set_mounted(paths.into_iter().map(Into::into).collect()),
            }
        }
        Ok(())
    }

    /// Reports a reservation to the trusted process once it takes effect. This can take as long as the user needs to
    /// answer a question.
    fn report_reservation(self: &Arc<Self>, reservation: Reservation, number: u64) -> io::Result<()> {
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
        *self.permitted() = Permissions::default();
        let mut questions = self.questions();
        questions.is_closed = true;
        // Dropping the tickets denies their requests.
        questions.open.clear();
        self.abandoned.notify_all();
    }

    fn answer(&self, id: u64, answer: AccessAnswer) {
        let Some(ask) = self.questions().open.remove(&id) else { return };
        for ticket in ask.tickets {
            match answer {
                AccessAnswer::Denied => ticket.deny(),
                AccessAnswer::Once => ticket.allow(),
                AccessAnswer::Permitted => ticket.retry(),
            }
        }
    }

    fn permitted(&self) -> RwLockWriteGuard<'_, Permissions> {
        self.permitted.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, OpenQuestions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, message: &FromView) {
        // Ignores the error: if the trusted process has exited, `handle_messages` returns too.
        let _ = self.try_send(message);
    }

    fn try_send(&self, message: &FromView) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

impl Gate for ChannelGate {
    fn permits(&self, access: &WantedAccess) -> bool {
        let Some(path) = access.path.to_str() else { return false };
        let permitted = self.permitted.read().unwrap_or_else(PoisonError::into_inner);
        if permitted.permits(path, access_of(access.kind)) {
            return true;
        }
        let is_readable = access.kind == AccessKind::Read && is_below(&permitted.readable, path);
        drop(permitted);
        is_readable
            && self
                .reads
                .report_once(path, || self.try_send(&FromView::Read { path: path.to_owned() }).is_ok())
    }

    fn keeps(&self, access: &WantedAccess) -> bool {
        let Some(path) = access.path.to_str() else { return false };
        let permitted = self.permitted.read().unwrap_or_else(PoisonError::into_inner);
        permitted.permits(path, access_of(access.kind))
            || access.kind == AccessKind::Read && is_below(&permitted.kept, path)
    }

    fn ask(&self, asked: &AskedAccess, process: u32, ticket: Ticket) {
        // Only UTF-8 can be displayed to the user.
        let Some(path) = asked.access.path.to_str().map(str::to_owned) else { return ticket.deny() };
        let mut questions = self.questions();
        if questions.is_closed {
            return ticket.deny();
        }
        if let Some(same) = questions.open.values_mut().find(|ask| ask.asked == *asked) {
            same.abandoned_at = None;
            return same.tickets.push(ticket);
        }
        questions.last += 1;
        let id = questions.last;
        questions
            .open
            .insert(id, OpenQuestion { asked: asked.clone(), tickets: vec![ticket], abandoned_at: None });
        drop(questions);
        let access = access_of(asked.access.kind);
        // A separate thread looks up the program names. If its queue is full, the request is denied.
        if self.question_sender.try_send(QueuedQuestion { id, path, access, process }).is_err() {
            self.questions().open.remove(&id);
        }
    }

    fn starts_programs(&self, path: &Path) -> bool {
        path.to_str().is_none_or(|path| autostart_condition(path, Some(&self.home)).is_some())
    }

    fn leads_to_programs(&self, path: &Path) -> bool {
        path.to_str().is_none_or(|path| leads_to_programs(path, Some(&self.home)))
    }

    fn withdraw(&self, ticket: u64) {
        let mut questions = self.questions();
        for ask in questions.open.values_mut() {
            ask.tickets.retain(|waiting| waiting.id() != ticket);
            if ask.tickets.is_empty() {
                ask.abandoned_at.get_or_insert_with(Instant::now);
            }
        }
        self.abandoned.notify_all();
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
