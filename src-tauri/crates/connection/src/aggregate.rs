//! Connection from one client to several servers, with one session per server.
//!
//! - Each session works as if it were the client's only session: it has its own permissions, questions and grants. This
//!   module only keeps the servers' names and ids apart.
//! - A broken or slow server delays neither the other servers nor the handshake. It is reported as missing, and its
//!   tools appear once it starts. Changes to `mcp-servers.json` add and remove servers immediately.
//! - One task owns all state and never blocks. A forwarded message holds its share of the memory budget until it is
//!   written.

mod from_client;
mod from_upstream;
mod handover;
mod initialize;
mod routing;
mod serve;
mod task_lists;
mod upstream;

use crate::listener::OutgoingNote;
use crate::selection::selected;
use from_client::HeldRequest;
pub use handover::AggregateHandover;
use handover::UpstreamHandover;
use initialize::PendingInitialize;
use ironcurtain_audit::{Audit, Entry};
use ironcurtain_config::{Server as ServerConfig, SessionSettings};
use ironcurtain_grants::{CachedTools, Client};
use ironcurtain_mcp::aggregate::{Catalogue, CatalogueKind, InitializeRequest, RequestTables};
use ironcurtain_mcp::client::ClientVersion;
use ironcurtain_mcp::server::MemoryShare;
use ironcurtain_mcp::wire::{Fields, KnownInstructions, MemoryBudget, Outbox, notification_line};
use ironcurtain_paths::random_name;
use ironcurtain_protocol::ShimNote;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use task_lists::TaskList;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use upstream::{FromUpstream, Phase, Upstream};
pub use upstream::{ToolLookup, UpstreamEvent, UpstreamEvents, UpstreamSession};

/// Maximum number of replies that the client has not read yet. At this limit, IronCurtain stops reading from the
/// client.
const MAX_UNREAD: usize = 256;

/// Number of copies of a long request that exist while it is judged and sent. The memory reserved for a request is its
/// length multiplied by this number.
const COPIES: u32 = 6;

/// Maximum number of distinct warnings to send to one client.
const MAX_WARNINGS: usize = 200;

/// The daemon's services that an [`Aggregate`] uses.
pub struct AggregateHost {
    /// Receiver for the settings and servers. A change starts and closes sessions.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    /// Directory that contains the session directories.
    pub sessions: PathBuf,
    /// Instructions that server programs have returned, by command line.
    pub instructions: KnownInstructions,
    /// Memory budget for messages in transit.
    pub memory: MemoryBudget,
    /// Audit log in which rejected requests are recorded.
    pub audit: Audit,
    /// Incremented whenever something shown to the user changes.
    pub changes: watch::Sender<u64>,
    /// Cancelled when shutdown is requested.
    pub shutdown: CancellationToken,
    /// Cancelled once the process that replaces this one can take over sessions.
    pub taken_over: CancellationToken,
    /// Opens one server's session and serves it in a separate task until it closes.
    pub open: Box<dyn Fn(UpstreamSession) + Send + Sync>,
    /// Looks up the remembered tools of servers and sends an event for each server.
    pub look_up_tools: Box<dyn Fn(ToolLookup) + Send + Sync>,
    /// Stores the tools of the server with this identity for clients of this kind. `None` deletes the stored tools, so
    /// that the next connection starts the server immediately.
    pub remember_tools: Box<dyn Fn(String, String, Option<CachedTools>) + Send + Sync>,
}

/// Connection from one client to several servers.
pub struct Aggregate {
    host: AggregateHost,
    client: Client,
    /// Random identifier of the connection.
    id: String,
    profile: Option<String>,
    to_client: Outbox,
    /// Permits for queueing replies to the client, one per reply.
    unread: Arc<Semaphore>,
    notes: mpsc::UnboundedSender<OutgoingNote>,
    events: mpsc::UnboundedSender<FromUpstream>,
    upstreams: BTreeMap<String, Upstream>,
    last_upstream: u64,
    initialize_request: Option<InitializeRequest>,
    initialized_at: Instant,
    /// The client's `initialize` request, until it has been answered.
    pending_initialize: Option<PendingInitialize>,
    /// Capabilities of servers that have answered `initialize` but are not yet marked as running, with their upstream
    /// numbers.
    initialized_upstreams: Vec<(u64, Fields)>,
    /// Parameters of the client's last `logging/setLevel`.
    level: Option<Box<RawValue>>,
    catalogue: Catalogue,
    /// Lists that the client has read since the last change notification, identified by the method of that
    /// notification.
    unchanged_since_read: BTreeSet<&'static str>,
    tables: RequestTables,
    held_requests: Vec<HeldRequest>,
    task_lists: Vec<TaskList>,
    warned: HashSet<String>,
    dropped_messages: u64,
    /// Sessions from the previous daemon process that have not been continued yet, by server name.
    handovers: BTreeMap<String, UpstreamHandover>,
    /// Tickets of sessions that are being handed over to another process, by server name.
    tickets: BTreeMap<String, String>,
    /// Upstream numbers of servers that have an open session.
    running: HashSet<u64>,
}

/// Connection that has been opened and must now be served with [`OpenedAggregate::serve`].
pub struct OpenedAggregate {
    aggregate: Aggregate,
    events: mpsc::UnboundedReceiver<FromUpstream>,
    notes: mpsc::UnboundedReceiver<OutgoingNote>,
    unread: Vec<u8>,
    version: ClientVersion,
}

impl Aggregate {
    /// Opens a new connection, or continues the one in `handover`.
    ///
    /// # Errors
    /// Returns the operating system's error if it cannot provide random bytes.
    pub fn open(
        host: AggregateHost,
        client: Client,
        profile: Option<String>,
        handover: Option<AggregateHandover>,
    ) -> io::Result<OpenedAggregate> {
        let handover = match handover {
            Some(handover) => handover,
            None => AggregateHandover::new(random_name()?),
        };
        let AggregateHandover { id, initialize_params, level, tasks, upstreams, unread, version, .. } =
            handover;
        let initialize_request =
            initialize_params.and_then(|params| InitializeRequest::parse(Some(&params)).ok());
        let ((events, from_upstreams), (notes, for_shim)) =
            (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let is_resumed = initialize_request.is_some();
        let mut aggregate = Self {
            tables: RequestTables::new(random_name()?, tasks),
            host,
            client,
            id,
            profile,
            to_client: Outbox::unopened(),
            unread: Arc::new(Semaphore::new(MAX_UNREAD)),
            notes,
            events,
            upstreams: BTreeMap::new(),
            last_upstream: 0,
            initialize_request,
            initialized_at: Instant::now(),
            pending_initialize: None,
            initialized_upstreams: Vec::new(),
            level,
            catalogue: Catalogue::default(),
            unchanged_since_read: CatalogueKind::ALL
                .into_iter()
                .filter(|_| is_resumed)
                .map(CatalogueKind::change_notification)
                .collect(),
            held_requests: Vec::new(),
            task_lists: Vec::new(),
            warned: HashSet::new(),
            dropped_messages: 0,
            handovers: upstreams,
            tickets: BTreeMap::new(),
            running: HashSet::new(),
        };
        aggregate.apply_settings();
        Ok(OpenedAggregate { aggregate, events: from_upstreams, notes: for_shim, unread, version })
    }

    /// Starts configured servers that are not running, and closes servers whose entry was removed or changed.
    fn apply_settings(&mut self) {
        let now = self.host.settings.borrow().clone();
        let selected = selected(&now, self.profile.as_deref());
        let removed: Vec<String> = self
            .upstreams
            .iter()
            .filter(|(name, upstream)| selected.get(*name) != Some(&upstream.config))
            .map(|(name, _)| name.clone())
            .collect();
        for name in removed {
            let Some(mut upstream) = self.upstreams.remove(&name) else { continue };
            upstream.end();
            let why =
                format!("the entry of the server `{name}` in `mcp-servers.json` was removed or changed");
            self.fail_pending(upstream.number, &why);
            self.catalogue.remove_links(&name);
        }
        for (name, config) in selected {
            if !self.upstreams.contains_key(&name) {
                let ticket = self.handovers.get(&name).map(|handover| handover.ticket.clone());
                self.add_upstream(&name, config);
                if ticket.is_some() {
                    self.open_session(&name, ticket);
                }
            }
        }
        self.look_up_tools();
        self.refresh();
    }

    /// Adds a server without opening its session.
    fn add_upstream(&mut self, name: &str, config: ServerConfig) {
        self.last_upstream += 1;
        let memory = self.host.memory.allowance(COPIES);
        let upstream = Upstream::new(self.last_upstream, config, mpsc::unbounded_channel(), memory);
        self.upstreams.insert(name.to_owned(), upstream);
    }

    /// Opens a server's session, unless it is already open.
    fn open_session(&mut self, name: &str, ticket: Option<String>) {
        let Some(upstream) = self.upstreams.get_mut(name) else { return };
        let Some(lines) = upstream.pending_lines.take() else { return };
        self.running.insert(upstream.number);
        let events = UpstreamEvents::new(upstream.number, self.events.clone());
        let (connection, config) = (self.id.clone(), upstream.config.clone());
        (self.host.open)(UpstreamSession { connection, config, ticket, lines, events });
    }

    /// Looks up the remembered tools of new servers once the kind of client is known.
    fn look_up_tools(&mut self) {
        let Some(client) = self.initialize_request.as_ref().map(InitializeRequest::client_key) else {
            return;
        };
        let is_new = |upstream: &&mut Upstream| upstream.pending_lines.is_some() && !upstream.is_looked_up;
        let mut wanted = Vec::new();
        for upstream in self.upstreams.values_mut().filter(is_new) {
            upstream.is_looked_up = true;
            let events = UpstreamEvents::new(upstream.number, self.events.clone());
            wanted.push((upstream.config.identity(), events));
        }
        if !wanted.is_empty() {
            (self.host.look_up_tools)(ToolLookup { servers: wanted, client });
        }
    }

    /// Lists a server's remembered tools, or starts the server if none are remembered.
    fn handle_remembered_tools(&mut self, number: u64, tools: Option<CachedTools>) {
        let Some(name) = self.server(number) else { return };
        let Some(tools) = tools else { return self.open_session(&name, None) };
        if let Some(upstream) = self.upstreams.get_mut(&name) {
            let instructions = tools.instructions.as_deref().map(Arc::from);
            self.host.instructions.insert(&upstream.config.command_line(), instructions);
            upstream.remember(tools);
        }
        self.refresh();
    }

    /// Starts a remembered server for its first call.
    fn wake(&mut self, name: &str) {
        if let Some(upstream) = self.upstreams.get_mut(name) {
            upstream.wake();
        }
        self.open_session(name, None);
    }

    /// Fails the client's pending requests to a closed upstream and cancels the upstream's pending requests to the
    /// client.
    fn fail_pending(&mut self, upstream: u64, why: &str) {
        self.stop_waiting_for_tasks(upstream);
        let (client_requests, server_requests) = self.tables.remove_upstream(upstream);
        for id in client_requests {
            self.fail(&id, ErrorCode::INTERNAL_ERROR, why);
        }
        for id in server_requests {
            let params = format!("{{\"requestId\":{}}}", id.as_json());
            let params = RawValue::from_string(params).ok();
            self.reply(notification_line("notifications/cancelled", params.as_deref()));
        }
    }

    fn handle_event(&mut self, (number, event): FromUpstream) {
        match event {
            UpstreamEvent::Line(line) => self.handle_upstream_line(number, line),
            UpstreamEvent::Note(OutgoingNote { note: ShimNote::Moved { ticket }, .. }) => {
                if let Some(server) = self.server(number) {
                    self.tickets.insert(server, ticket);
                }
            }
            UpstreamEvent::Note(note) => {
                // Fails if the shim copies the streams itself, because then there is no channel for notes.
                let _ = self.notes.send(note);
            }
            UpstreamEvent::ToolsLookedUp(tools) => self.handle_remembered_tools(number, tools),
            UpstreamEvent::Opened(session) => self.handle_session_opened(number, session),
            UpstreamEvent::Closed(why) => self.session_closed(number, why),
        }
    }

    fn handle_session_opened(&mut self, number: u64, session: CancellationToken) {
        let Some((name, upstream)) =
            self.upstreams.iter_mut().find(|(_, upstream)| upstream.number == number)
        else {
            // The server's entry was removed while the session was being opened.
            return session.cancel();
        };
        upstream.session = Some(session);
        match self.handovers.remove(name) {
            Some(UpstreamHandover { capabilities, .. }) => self.mark_running(number, capabilities),
            None => self.initialize_upstream(number),
        }
    }

    fn session_closed(&mut self, number: u64, why: Option<String>) {
        self.running.remove(&number);
        let Some((name, upstream)) =
            self.upstreams.iter_mut().find(|(_, upstream)| upstream.number == number)
        else {
            return;
        };
        let name = name.clone();
        upstream.session = None;
        match why {
            Some(why) => {
                self.handovers.remove(&name);
                self.mark_missing(number, why);
            }
            None => {
                upstream.phase = Phase::Closed;
                upstream.close_input();
                self.fail_pending(number, &format!("the session with the server `{name}` was closed"));
                self.catalogue.remove_links(&name);
                self.refresh();
            }
        }
    }

    /// Warns about servers that are slow to start, and retries missing servers whose retry is due.
    fn handle_due_retries(&mut self) {
        let now = Instant::now();
        let due = |upstream: &&mut Upstream| upstream.retry.is_some_and(|at| at <= now);
        let mut again = Vec::new();
        for upstream in self.upstreams.values_mut().filter(due) {
            upstream.retry = None;
            again.push((
                upstream.number,
                upstream.phase == Phase::Starting,
                upstream.session.is_some(),
                upstream.config.clone(),
            ));
        }
        for (number, is_late, has_session, config) in again {
            if is_late {
                self.warn(format!(
                    "the server `{}` is missing: it has not answered `initialize` yet",
                    config.name
                ));
            } else if has_session {
                self.initialize_upstream(number);
            } else {
                self.restart(config);
            }
        }
    }

    fn restart(&mut self, config: ServerConfig) {
        let name = config.name.clone();
        let before = self.upstreams.remove(&name);
        self.add_upstream(&name, config);
        self.open_session(&name, None);
        if let (Some(upstream), Some(before)) = (self.upstreams.get_mut(&name), before) {
            upstream.copy_retries_from(&before);
        }
    }

    fn send_to_upstream(&self, number: u64, line: Vec<u8>, share: MemoryShare) {
        if let Some(upstream) = self.upstreams.values().find(|upstream| upstream.number == number)
            && let Err(full) = upstream.send(line, share)
        {
            tracing::warn!("{full}");
        }
    }

    async fn record(&self, mut entry: Entry) {
        entry.client = Some(self.client.view.name.clone());
        if let Err(problem) = self.host.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a rejected request");
        }
        self.host.changes.send_modify(|n| *n += 1);
    }

    /// Returns `true` if the user has closed the sessions of all servers.
    fn user_closed_all(&self) -> bool {
        !self.upstreams.is_empty() && self.upstreams.values().all(|upstream| upstream.phase == Phase::Closed)
    }
}
