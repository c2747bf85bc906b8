//! One server in a client's connection, with its own independent session.
//!
//! - The session judges and records calls, and asks the user, as if it were the client's only session. Lines are passed
//!   to the session in memory.
//! - A server that offers only tools, all of them remembered, has no session until its first call.
//! - A server that does not start or respond is reported as missing and retried. Nothing waits for such a server.

use crate::listener::OutgoingNote;
use ironcurtain_config::Server as ServerConfig;
use ironcurtain_grants::{CachedTools, ListedDefinition};
use ironcurtain_mcp::aggregate::{CatalogueKind, ListEntries, Lists};
use ironcurtain_mcp::server::MemoryShare;
use ironcurtain_mcp::wire::{Allowance, Fields, MAX_MEDIUM_LEN, Outgoing, ReceivedLine};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Delay before the first retry of a missing server; each further retry doubles it.
const FIRST_RETRY: Duration = Duration::from_secs(2);

/// Maximum delay between retries.
const LAST_RETRY: Duration = Duration::from_secs(600);

/// Maximum time for which calls wait for a server to start.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The only capabilities allowed for a server whose tools are listed without starting the server.
const ONLY_TOOLS: [&str; 2] = ["tools", "logging"];

/// Event, and the number of the upstream that sent it.
pub(super) type FromUpstream = (u64, UpstreamEvent);

/// Event from an upstream's session.
pub enum UpstreamEvent {
    /// Result of looking up the server's remembered tools; `None` if the server must be started to list them.
    ToolsLookedUp(Option<CachedTools>),
    /// The session was opened. Cancelling this token closes it.
    Opened(CancellationToken),
    /// The session or its server sent a line.
    Line(Outgoing),
    /// The session sent a note for the shim.
    Note(OutgoingNote),
    /// The session closed. Contains the reason if it failed, or `None` if it was closed deliberately.
    Closed(Option<String>),
}

/// A server's state as the client observes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The session is opening, or the server has not answered `initialize`.
    Starting,
    /// The server has not been started, and its remembered tools are listed.
    Remembered,
    /// The server is initialized.
    Running,
    /// The server is not running. Contains the reason.
    Missing(String),
    /// The session was closed and will not be reopened.
    Closed,
}

/// State of one server in a client's connection.
pub(super) struct Upstream {
    /// Unique number of the upstream. A restarted server gets a new number.
    pub(super) number: u64,
    pub(super) config: ServerConfig,
    pub(super) phase: Phase,
    /// Token that closes the session, or `None` if no session is open.
    pub(super) session: Option<CancellationToken>,
    pub(super) capabilities: Fields,
    pub(super) lists: Lists,
    /// Receives lines for the session until it is opened.
    pub(super) pending_lines: Option<mpsc::UnboundedReceiver<ReceivedLine>>,
    /// `true` once the server's remembered tools have been looked up.
    pub(super) is_looked_up: bool,
    /// `true` from a remembered server's first call until its tools have been read.
    pub(super) is_waking: bool,
    /// Tools whose definition in the client's list differs from the one that the server listed after its start.
    pub(super) outdated: HashSet<String>,
    /// Remembered tools of the server, if any.
    pub(super) remembered: Option<CachedTools>,
    /// Lists that are being fetched. The value is `true` if the list has changed since the request.
    pub(super) awaited: BTreeMap<CatalogueKind, bool>,
    /// Time of the next retry or, while the server is starting, of the warning that it starts slowly.
    pub(super) retry: Option<Instant>,
    /// Time until which calls wait for the server to start.
    pub(super) start_deadline: Instant,
    retries: u32,
    to_session: Option<mpsc::UnboundedSender<ReceivedLine>>,
    memory: Allowance,
}

/// Request to open a session with one server.
pub struct UpstreamSession {
    /// Identifier of the connection.
    pub connection: String,
    /// The server's entry in `mcp-servers.json`.
    pub config: ServerConfig,
    /// Ticket for continuing a session from another daemon process, or `None` for a new session.
    pub ticket: Option<String>,
    /// Messages from the client to the session.
    pub lines: mpsc::UnboundedReceiver<ReceivedLine>,
    /// Sender for the session's events.
    pub events: UpstreamEvents,
}

/// Servers whose remembered tools must be looked up.
pub struct ToolLookup {
    /// Identity of each server, and the sender for the result.
    pub servers: Vec<(String, UpstreamEvents)>,
    /// Kind of the client.
    pub client: String,
}

/// Sender for one upstream's events.
#[derive(Debug, Clone)]
pub struct UpstreamEvents {
    number: u64,
    connection: mpsc::UnboundedSender<FromUpstream>,
}

impl UpstreamEvents {
    pub(super) fn new(number: u64, connection: mpsc::UnboundedSender<FromUpstream>) -> Self {
        Self { number, connection }
    }

    /// Reports an event. Does nothing if the connection is closed.
    pub fn send(&self, event: UpstreamEvent) {
        let _ = self.connection.send((self.number, event));
    }
}

/// Error returned when the memory budget for messages to a server is exhausted.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for messages to the server `{0}`, because it or others have not read earlier ones; try again"
)]
pub(super) struct MemoryExhausted(String);

impl Upstream {
    /// Creates the state of a server whose session is opening.
    pub(super) fn new(
        number: u64,
        config: ServerConfig,
        (to_session, lines): (mpsc::UnboundedSender<ReceivedLine>, mpsc::UnboundedReceiver<ReceivedLine>),
        memory: Allowance,
    ) -> Self {
        let start_deadline = Instant::now() + ARRIVAL_TIMEOUT;
        Self {
            number,
            config,
            phase: Phase::Starting,
            session: None,
            capabilities: Fields::default(),
            lists: Lists::new(),
            pending_lines: Some(lines),
            is_looked_up: false,
            is_waking: false,
            outdated: HashSet::new(),
            remembered: None,
            awaited: BTreeMap::new(),
            retry: Some(start_deadline),
            start_deadline,
            retries: 0,
            to_session: Some(to_session),
            memory,
        }
    }

    /// Passes a line to the session and charges it to the server's share of the memory budget. A server that stops
    /// reading therefore cannot use up the memory that others need.
    pub(super) fn send(&self, mut line: Vec<u8>, share: MemoryShare) -> Result<(), MemoryExhausted> {
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        let full = || MemoryExhausted(self.config.name.clone());
        let share = match share {
            // Unless the line is part of a batch, it keeps the share that was acquired for reading it.
            Some(share) if share.bytes() > MAX_MEDIUM_LEN => Some(Arc::into_inner(share).ok_or_else(full)?),
            Some(_) => Some(self.memory.try_acquire(line.len()).ok_or_else(full)?),
            None => None,
        };
        if let Some(to_session) = &self.to_session {
            // Sending fails only if the session has closed. The session reports that itself.
            let _ = to_session.send((line, share));
        }
        Ok(())
    }

    /// Closes the session's input. The session then answers pending requests before it is closed or handed over.
    pub(super) fn close_input(&mut self) {
        self.to_session = None;
    }

    /// Closes the session immediately.
    pub(super) fn end(&mut self) {
        self.close_input();
        if let Some(session) = &self.session {
            session.cancel();
        }
    }

    /// Lists remembered tools instead of starting the server.
    pub(super) fn remember(&mut self, tools: CachedTools) {
        self.lists = Lists::from([(CatalogueKind::Tools, ListEntries::from_tools(&tools.tools))]);
        self.remembered = Some(tools);
        self.phase = Phase::Remembered;
        self.retry = None;
    }

    /// Marks a remembered server as about to start.
    pub(super) fn wake(&mut self) {
        self.phase = Phase::Starting;
        self.is_waking = true;
        self.start_deadline = Instant::now() + ARRIVAL_TIMEOUT;
        self.retry = Some(self.start_deadline);
    }

    /// Returns `true` if the server's lists are included in the client's lists.
    pub(super) fn is_listed(&self) -> bool {
        match self.phase {
            Phase::Running | Phase::Remembered => true,
            Phase::Starting => self.is_waking,
            Phase::Missing(_) | Phase::Closed => false,
        }
    }

    /// Finishes the start of a remembered server: marks the tools whose definitions differ from the client's list as
    /// outdated.
    pub(super) fn compare_with_remembered(&mut self, listed: &ListEntries) {
        if !std::mem::take(&mut self.is_waking) {
            return;
        }
        // Compares definitions as pins do, because the session may have replaced the server's text with the pinned
        // text.
        let pinned =
            |tool: &Fields| serde_json::to_string(tool).ok().and_then(|text| ListedDefinition::parse(&text));
        let now: HashMap<&str, Option<ListedDefinition>> =
            listed.entries.iter().map(|(name, tool)| (name.as_str(), pinned(tool))).collect();
        let known = self.lists.get(&CatalogueKind::Tools).into_iter().flat_map(|known| &known.entries);
        let outdated = known.filter(|(name, tool)| {
            now.get(name.as_str()).is_none_or(|now| now.is_none() || *now != pinned(tool))
        });
        self.outdated = outdated.map(|(name, _)| name.clone()).collect();
    }

    /// Returns the tools to remember. Returns `None` if the server offers no tools or anything other than tools, or if
    /// entries were omitted.
    pub(super) fn tools_to_remember(&self, instructions: Option<&str>) -> Option<CachedTools> {
        let has_more = self.capabilities.iter().any(|(name, _)| !ONLY_TOOLS.contains(&name));
        let listed = self.lists.get(&CatalogueKind::Tools);
        let listed = listed.filter(|listed| listed.omitted() == 0 && !listed.entries.is_empty())?;
        let tools: Vec<String> = listed
            .entries
            .iter()
            .map(|(_, tool)| serde_json::to_string(tool))
            .collect::<Result<_, _>>()
            .ok()?;
        let tools = CachedTools {
            capabilities: serde_json::to_string(&self.capabilities).ok()?,
            instructions: instructions.map(str::to_owned),
            tools,
        };
        (!has_more).then_some(tools)
    }

    /// Marks the server as missing and schedules a retry.
    pub(super) fn mark_missing(&mut self, why: String) {
        self.is_waking = false;
        self.phase = Phase::Missing(why);
        let pause = FIRST_RETRY.saturating_mul(1 << self.retries.min(16)).min(LAST_RETRY);
        self.retries += 1;
        self.retry = Some(Instant::now() + pause);
    }

    /// Marks the server as running, with the capabilities from its `initialize` response.
    pub(super) fn mark_running(&mut self, capabilities: Fields) {
        self.phase = Phase::Running;
        self.capabilities = capabilities;
        (self.retry, self.retries) = (None, 0);
        self.awaited = BTreeMap::new();
        // Until the tools are read, the remembered tools are listed.
        self.is_waking &= self.has(CatalogueKind::Tools.capability());
        if !self.is_waking {
            self.lists = Lists::new();
        }
    }

    /// Copies the retry count and the deadline from the previous attempt.
    pub(super) fn copy_retries_from(&mut self, before: &Self) {
        self.retries = before.retries;
        self.start_deadline = before.start_deadline;
    }

    /// Returns `true` if the server declared this capability in `initialize`.
    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some()
    }

    /// Returns `true` if the server declared that it supports `tasks/list`.
    pub(super) fn lists_tasks(&self) -> bool {
        let tasks = self.capabilities.get("tasks");
        let tasks = tasks.and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
        tasks.is_some_and(|tasks| tasks.get("list").is_some())
    }

    /// Returns `true` if the server's lists have been fetched, or if the server is missing or closed.
    pub(super) fn has_started_or_failed(&self) -> bool {
        match self.phase {
            Phase::Starting => false,
            Phase::Running => self.awaited.is_empty(),
            Phase::Remembered | Phase::Missing(_) | Phase::Closed => true,
        }
    }

    /// Returns the number of list entries that were omitted because they are invalid or there are too many.
    pub(super) fn omitted_entries(&self) -> usize {
        self.lists.values().map(ListEntries::omitted).sum()
    }
}
