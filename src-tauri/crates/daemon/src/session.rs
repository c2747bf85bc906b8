//! Session of one connected shim, from its hello message until it disconnects.
//!
//! - A session owns its session folder, its server and its grants, and releases them when it closes.
//! - Requests are judged in order of arrival. A request that is waiting for the user or a server does not delay other
//!   requests.
//! - An error in one message never closes the session.

mod authorize;
mod call;
mod client;
mod client_notifications;
mod containment;
mod echo;
mod handover;
mod hosts;
mod in_flight;
mod initialize;
mod issued_values;
mod one_time;
mod open;
mod params;
mod passthrough;
mod pin_error;
mod pinned_tools;
mod progress;
mod queue;
mod refusal;
mod responses;
mod sampling;
mod sandbox_hints;
mod serve;
mod tasks;
mod tool_call;
mod unusable_path;
mod workspace;

use echo::EchoDetector;
pub use handover::SessionHandover;
use in_flight::Requests;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_config::{Managed, Server as ServerConfig};
use ironcurtain_connection::OutgoingNote;
use ironcurtain_consent::{Principal, shown_client};
use ironcurtain_containment::DeniedReads;
use ironcurtain_grants::GrantSubject;
use ironcurtain_mcp::wire::{Allowance, Id, Outbox};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_protocol::{RootView, SessionView, ShimNote};
use ironcurtain_server::network::ServerNetwork;
use ironcurtain_server::served_files::AccessCounts;
use ironcurtain_server::{ServerHandle, entry_paths};
use ironcurtain_services::{Services, SessionLog};
use ironcurtain_visible as visible;
use issued_values::IssuedValues;
use one_time::OneTimeGrants;
pub use open::{SessionError, SessionOptions};
use pinned_tools::PinnedTools;
use queue::CallQueue;
pub use serve::NoteReceiver;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tasks::Tasks;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use workspace::ClientRoots;

/// Session of one client with one server.
pub struct Session {
    /// Random identifier of the session.
    pub id: String,
    /// Client and server, for decisions and the audit log.
    pub principal: Arc<Principal>,
    services: Services,
    config: ServerConfig,
    /// Identifier of the connection if it carries several sessions, or `None`.
    connection: Option<String>,
    /// Id of the run whose program opened the session, if any.
    pub(crate) run: Option<String>,
    server: ServerHandle,
    /// Proxy for the server's network, or `None` if the server has no network.
    network: Option<Arc<ServerNetwork>>,
    /// `true` if the server runs in a sandbox.
    sandboxed: bool,
    /// The server's own folders, or `None` if the server could access anything else when it started.
    own_folders: Option<Vec<CanonicalPath>>,
    /// Paths that the server's entry makes unreadable.
    denied: Arc<DeniedReads>,
    sandbox: CanonicalPath,
    resolver: Resolver,
    started_ms: u64,
    counts: Arc<AccessCounts>,
    /// Number of invalid messages that were dropped because they were not requests.
    dropped_messages: AtomicU64,
    to_client: Outbox,
    /// Permits for queueing replies to the client, one for each reply.
    unread: Arc<Semaphore>,
    notes: mpsc::UnboundedSender<OutgoingNote>,
    /// Log file of the session: problems with the client, and the server's standard error.
    log: SessionLog,
    accepted_requests: watch::Sender<HashSet<String>>,
    client_roots: ClientRoots,
    echo: Mutex<EchoDetector>,
    in_flight: Arc<Requests>,
    one_time: OneTimeGrants,
    is_initialized: AtomicBool,
    /// `true` if the negotiated protocol version supports JSON-RPC batches.
    has_batches: AtomicBool,
    tasks: Tasks,
    /// List cursors and task ids that the server has issued.
    issued: IssuedValues,
    /// Tools that differ from their pinned definitions and are therefore suspended.
    pinned_tools: PinnedTools,
    /// Memory budget for the client's messages.
    memory: Allowance,
    queue: CallQueue,
    /// Cancelled once the user has answered all questions about paths in the server's entry. The server can then start.
    may_start: CancellationToken,
    end: CancellationToken,
}

impl Session {
    /// Starts closing the session if the user's organization no longer allows its server. A session whose server was
    /// refused from the start stays open, because it reports the reason to the client.
    pub(crate) fn end_if_refused(&self, managed: &Managed) {
        if self.config.refused.is_none() && managed.refuses(&self.config) {
            self.end();
        }
    }

    /// Starts closing the session without waiting for it to close.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Returns the token that is cancelled to close the session.
    #[must_use]
    pub fn ending(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Returns the session's server.
    #[must_use]
    pub fn server(&self) -> &ServerHandle {
        &self.server
    }

    /// Returns `true` if the user has paused the session.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.services.broker.stops().is_paused(&self.id)
    }

    /// Returns `true` if grants for this subject apply to the session.
    #[must_use]
    pub fn may_use(&self, subject: &GrantSubject) -> bool {
        self.principal.is_covered_by(subject)
    }

    /// Returns the session for display.
    #[must_use]
    pub fn view(&self) -> SessionView {
        SessionView {
            id: self.id.clone(),
            client: shown_client(&self.principal.client_view()),
            server: visible::line(&self.config.name),
            connection: self.connection.clone(),
            run: self.run.clone(),
            trouble: self.server.trouble().map(|why| visible::line(&why)),
            restarts: self.server.restarts(),
            sandboxed: self.sandboxed,
            remote: self.principal.remote,
            server_pid: self.server.pid(),
            started_ms: self.started_ms,
            sandbox_dir: self.sandbox.as_str().to_owned(),
            allowed: self.counts.allowed.load(Ordering::Relaxed),
            denied: self.counts.denied.load(Ordering::Relaxed),
            asked: self.counts.asked.load(Ordering::Relaxed),
            hosts: self
                .network
                .iter()
                .flat_map(|network| network.reachable())
                .map(|host| visible::line(&host))
                .collect(),
            left: self.services.autostart.undecided(&self.id),
            paused: self.is_paused(),
            roots: self.server.intended_view().roots.into_iter().map(shown_root).collect(),
            always: self.entry_roots(),
        }
    }

    /// Returns the paths that the server's entry permits. Returns no paths for an unsandboxed server, which can open any
    /// path.
    fn entry_roots(&self) -> Vec<RootView> {
        let Some(settings) = self.config.sandbox.settings().filter(|_| self.sandboxed) else {
            return Vec::new();
        };
        let paths = entry_paths(settings, &self.services.home.user_home, &self.sandbox);
        paths.into_iter().map(shown_root).collect()
    }

    /// Notifies the shim that a question about a request is pending. Dropping the returned guard notifies the shim that
    /// the question is closed.
    fn notify_asking(&self, id: &Id) -> AskingGuard<'_> {
        let request = id.as_json().to_owned();
        // A shim that copies the streams itself has no channel for notes, so the error is ignored.
        let _ = self.notes.send(ShimNote::Asking { request: request.clone() }.into());
        AskingGuard { notes: &self.notes, request }
    }

    fn entry(&self, event: Event, summary: impl Into<String>) -> Entry {
        self.principal.entry(event, summary)
    }

    fn start_summary(&self, is_resumed: bool) -> String {
        let verb = if is_resumed { "continued its session" } else { "opened a session" };
        format!("{} {verb} with the server {}", self.principal.client.view.name, self.config.name)
    }
}

fn shown_root(root: RootView) -> RootView {
    RootView { path: visible::path(&root.path), source: visible::line(&root.source), ..root }
}

/// Maximum time to wait for the shim to receive a note.
const NOTE_TIMEOUT: Duration = Duration::from_secs(1);

struct AskingGuard<'a> {
    notes: &'a mpsc::UnboundedSender<OutgoingNote>,
    request: String,
}

impl AskingGuard<'_> {
    /// Notifies the shim that the question is closed, and waits until the shim has received the note. Must be called
    /// before the request is answered. Otherwise, if the daemon were killed in between, the shim would answer the
    /// request a second time.
    async fn notify_settled(mut self) {
        let (written, is_written) = oneshot::channel();
        let note = ShimNote::Settled { request: std::mem::take(&mut self.request) };
        if self.notes.send(OutgoingNote { note, written: Some(written) }).is_ok() {
            // A shim that does not read delays the response by at most this timeout.
            let _ = tokio::time::timeout(NOTE_TIMEOUT, is_written).await;
        }
    }
}

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        if !self.request.is_empty() {
            // Fails only if the shim has disconnected.
            let _ = self.notes.send(ShimNote::Settled { request: std::mem::take(&mut self.request) }.into());
        }
    }
}
