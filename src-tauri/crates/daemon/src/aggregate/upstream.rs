//! One server of a connection: a session of its own, which knows nothing of the others.
//!
//! - The session judges, asks and records as if its client were the only one it has. Its lines are handed over in memory.
//! - A server that does not start, or does not answer, is missing and tried again; nobody waits for it.

use crate::daemon_state::{DaemonState, NoPlace};
use crate::listener::ClientStdio;
use crate::listener::OutgoingNote;
use crate::services::Services;
use crate::session::{Attached, Beginning, MovedSession, Session, SessionError, TicketError};
use ironcurtain_config::Server as ServerConfig;
use ironcurtain_grants::Client;
use ironcurtain_mcp::aggregate::{CatalogueKind, ListEntries, Lists};
use ironcurtain_mcp::server::MemoryShare;
use ironcurtain_mcp::wire::{Allowance, Fields, HandedLine, Inlet, MEDIUM, Outgoing, Outlet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The time after which a server that is missing is tried again for the first time; then it is doubled.
const FIRST_RETRY: Duration = Duration::from_secs(2);

/// The longest such time.
const LAST_RETRY: Duration = Duration::from_secs(600);

/// The time that a server may take to come before calls that may be meant for it are given up.
const COMING_BOUND: Duration = Duration::from_secs(30);

/// Something that happened in an upstream, with its number.
pub(super) type FromUpstream = (u64, UpstreamEvent);

/// Something that happened in an upstream.
pub(super) enum UpstreamEvent {
    /// The session began.
    Began(Arc<Session>),
    /// The session or its server says something.
    Line(Outgoing),
    /// For the shim.
    Note(OutgoingNote),
    /// There is no session any more, or could not be one for this reason.
    Over(Option<String>),
}

/// The state of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its session is about to begin, or it has not answered the greeting.
    Coming,
    /// It is there.
    Up,
    /// It is missing for this reason.
    Missing(String),
    /// Its session was ended, and it is not tried again.
    Ended,
}

/// One server of a connection.
pub(super) struct Upstream {
    /// Told from earlier ones of the server by this.
    pub(super) number: u64,
    pub(super) config: ServerConfig,
    pub(super) phase: Phase,
    pub(super) session: Option<Arc<Session>>,
    pub(super) capabilities: Fields,
    pub(super) lists: Lists,
    /// Its lists that are on their way, and whether they have changed since they were asked for.
    pub(super) awaited: BTreeMap<CatalogueKind, bool>,
    /// When it is tried again, or told to be late.
    pub(super) retry: Option<Instant>,
    /// Until then calls wait for it.
    pub(super) comes_until: Instant,
    retries: u32,
    to_session: Option<mpsc::UnboundedSender<HandedLine>>,
    memory: Allowance,
}

/// An upstream that is to begin.
pub(super) struct UpstreamParts {
    pub(super) state: Arc<DaemonState>,
    pub(super) client: Client,
    pub(super) connection: String,
    pub(super) number: u64,
    pub(super) config: ServerConfig,
    pub(super) events: mpsc::UnboundedSender<FromUpstream>,
    /// The ticket of its session, where that was moved here.
    pub(super) ticket: Option<String>,
}

/// No memory is left for what a server is sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "no memory is left for what the server `{0}` is sent, because it or others have not read what came before; try again"
)]
pub(super) struct Full(String);

/// Why a server has no session.
#[derive(Debug, thiserror::Error)]
enum UpstreamError {
    /// There are as many as there may be.
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    /// The one that was moved here cannot be gone on with.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// It cannot begin.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Upstream {
    /// Begins the session in a task of its own.
    pub(super) fn begin(parts: UpstreamParts, copies: u32) -> Self {
        let (to_session, lines) = mpsc::unbounded_channel();
        let comes_until = Instant::now() + COMING_BOUND;
        let upstream = Self {
            number: parts.number,
            config: parts.config.clone(),
            phase: Phase::Coming,
            session: None,
            capabilities: Fields::default(),
            lists: Lists::new(),
            awaited: BTreeMap::new(),
            retry: Some(comes_until),
            comes_until,
            retries: 0,
            to_session: Some(to_session),
            memory: parts.state.services.memory.allowance(copies),
        };
        tokio::spawn(run(parts, lines));
        upstream
    }

    /// Hands a line to the session, with its share of the memory. A server that does not read what it is sent holds no
    /// memory that others need.
    pub(super) fn send(&self, mut line: Vec<u8>, held: MemoryShare) -> Result<(), Full> {
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let full = || Full(self.config.name.clone());
        let share = match held {
            // It was given all that it may need. Of a batch none has that alone.
            Some(held) if held.bytes() > MEDIUM => Some(Arc::into_inner(held).ok_or_else(full)?),
            Some(_) => Some(self.memory.take_now(line.len()).ok_or_else(full)?),
            None => None,
        };
        if let Some(to_session) = &self.to_session {
            // A session that is gone says so.
            let _ = to_session.send((line, share));
        }
        Ok(())
    }

    /// Says no more; the session ends, or is moved, when it has answered.
    pub(super) fn hang_up(&mut self) {
        self.to_session = None;
    }

    /// Ends the session at once.
    pub(super) fn end(&mut self) {
        self.hang_up();
        if let Some(session) = &self.session {
            session.end();
        }
    }

    /// It is missing from now on, and tried again later.
    pub(super) fn missing(&mut self, why: String) {
        self.phase = Phase::Missing(why);
        let pause = FIRST_RETRY.saturating_mul(1 << self.retries.min(16)).min(LAST_RETRY);
        self.retries += 1;
        self.retry = Some(Instant::now() + pause);
    }

    /// It is there from now on.
    pub(super) fn is_up(&mut self, capabilities: Fields) {
        self.phase = Phase::Up;
        self.capabilities = capabilities;
        (self.retry, self.retries) = (None, 0);
        (self.lists, self.awaited) = (Lists::new(), BTreeMap::new());
    }

    /// It is the next try of one that was missing.
    pub(super) fn after(&mut self, before: &Self) {
        self.retries = before.retries;
        self.comes_until = before.comes_until;
    }

    /// Returns `true` if the server has a capability.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some()
    }

    /// Returns `true` if the server keeps a list of its tasks.
    pub(super) fn lists_tasks(&self) -> bool {
        let tasks = self.capabilities.get("tasks");
        let tasks = tasks.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
        tasks.is_some_and(|tasks| tasks.get("list").is_some())
    }

    /// Returns `true` once it is known what the server has, or that it is missing.
    pub(super) fn is_settled(&self) -> bool {
        match self.phase {
            Phase::Coming => false,
            Phase::Up => self.awaited.is_empty(),
            Phase::Missing(_) | Phase::Ended => true,
        }
    }

    /// The number of entries of its lists that were left out.
    pub(super) fn left_out(&self) -> usize {
        self.lists.values().map(ListEntries::left_out).sum()
    }
}

/// Opens the session, and serves it to its end.
async fn run(parts: UpstreamParts, lines: mpsc::UnboundedReceiver<HandedLine>) {
    let (events, number) = (parts.events.clone(), parts.number);
    let why = serve(parts, lines).await.err().map(|problem| problem.to_string());
    // A connection that is gone need not know.
    let _ = events.send((number, UpstreamEvent::Over(why)));
}

async fn serve(
    parts: UpstreamParts,
    lines: mpsc::UnboundedReceiver<HandedLine>,
) -> Result<(), UpstreamError> {
    let UpstreamParts { state, client, connection, number, config, events, ticket } = parts;
    let now = state.reloader.settings();
    let _place = state.place(now.config.max_sessions)?;
    let services = Services { config: now.config.clone(), ..state.services.clone() };
    let moved = ticket
        .map(|ticket| MovedSession::take(&services.home.sessions(), &ticket, &client.key, &config.name))
        .transpose()?;
    let beginning = Beginning { client, server: config, connection: Some(connection), moved };
    let opened = Session::open(services, beginning).await?;
    let session = opened.session.clone();
    state.began(session.clone());
    // As above.
    let _ = events.send((number, UpstreamEvent::Began(session.clone())));
    let (output, mut said) = mpsc::unbounded_channel();
    let (told, mut notes) = mpsc::unbounded_channel();
    let stdio = ClientStdio { input: Inlet::Memory(lines), output: Outlet::Memory(output) };
    let id = session.id.clone();
    drop(session);
    let served = opened.serve(stdio, Attached::Connection(told));
    tokio::pin!(served);
    loop {
        let event = tokio::select! {
            biased;
            Some(line) = said.recv() => UpstreamEvent::Line(line),
            Some(note) = notes.recv() => UpstreamEvent::Note(note),
            () = &mut served => break,
        };
        // As above.
        let _ = events.send((number, event));
    }
    let lines = std::iter::from_fn(|| said.try_recv().ok()).map(UpstreamEvent::Line);
    let last = lines.chain(std::iter::from_fn(|| notes.try_recv().ok()).map(UpstreamEvent::Note));
    last.for_each(|event| _ = events.send((number, event)));
    state.ended(&id);
    Ok(())
}
