//! One connected shim, from hello to hang-up.
//!
//! - A session owns its sandbox directory, its server and its grants; all of them end with it.
//! - Requests of the client are judged in the order they came; waiting for a person or a server holds up no other.
//! - Whatever goes wrong with one message, the session lives on.

mod authorize;
mod blocked;
mod call;
mod client;
mod containment;
mod echo;
mod greeting;
mod hosts;
mod in_flight;
mod log;
mod one_time;
mod passing;
mod refusal;
mod resource;
mod tool_call;

use crate::autostart::SessionFacts;
use crate::config::Server as ServerConfig;
use crate::consent::{Principal, shown_client, visible};
use crate::containment::Surroundings;
use crate::grants::GrantSubject;
use crate::home::{HomeError, private_dir};
use crate::identity::Client;
use crate::listener::{ClientStdio, attend};
use crate::network::{Caller, ServerNetwork};
use crate::server::{ActorOptions, Containment, Outgoing, ServerHandle};
use crate::services::Services;
use crate::wire::Id;
use echo::Echo;
use in_flight::{InFlight, Requests};
use ironcurtain_audit::{AuditError, CallResult, Entry, Event};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_protocol::{QuestionNote, RootView, SessionView};
use one_time::OneTimeGrants;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How many lines may wait for a client that does not read.
const TO_CLIENT: usize = 256;

/// How many bytes of requests may be under way at once, in KiB: a client that sends more waits.
const BUDGET_KIB: usize = 192 * 1024;

/// How many KiB of answers may wait for a client that does not read; then its server waits too.
const UNREAD_KIB: usize = 128 * 1024;

/// Why a session cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its directory cannot be made.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its directory has no canonical path.
    #[error("the session's directory `{path}` cannot be used: {problem}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// Its beginning cannot be put on record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The kernel has no random bytes.
    #[error("no name for the session: {0}")]
    Name(#[from] std::io::Error),
}

/// One session.
pub struct Session {
    /// Names it everywhere.
    pub id: String,
    /// Who is calling which server.
    pub principal: Arc<Principal>,
    services: Services,
    config: ServerConfig,
    server: ServerHandle,
    /// What lets the server reach anything, if anything does.
    network: Option<Arc<ServerNetwork>>,
    /// Whether the server runs in a sandbox, if it runs.
    sandboxed: bool,
    sandbox: CanonicalPath,
    resolver: Resolver,
    started_ms: u64,
    counts: Counts,
    to_client: mpsc::Sender<Outgoing>,
    notes: mpsc::UnboundedSender<QuestionNote>,
    /// For what is odd about the client.
    log: mpsc::Sender<String>,
    client_takes: watch::Sender<HashSet<String>>,
    echo: Mutex<Echo>,
    in_flight: Requests,
    one_time: OneTimeGrants,
    greeted: AtomicBool,
    budget: Arc<Semaphore>,
    /// Completes when the last call that had to wait for the server is forwarded, or never will be.
    last_in_line: Mutex<Option<oneshot::Receiver<()>>>,
    end: CancellationToken,
}

#[derive(Default)]
struct Counts {
    allowed: AtomicU64,
    denied: AtomicU64,
    asked: AtomicU64,
    /// Messages that were no requests.
    oddities: AtomicU64,
}

impl Session {
    /// Begins a session, which [`Opened::serve`] then serves.
    ///
    /// # Errors
    /// [`SessionError`]: nothing was started.
    pub async fn open(
        services: Services,
        client: Client,
        config: ServerConfig,
    ) -> Result<Opened, SessionError> {
        let id = crate::clock::random_name()?;
        let dir = services.home.sessions().join(&id);
        let sandbox_dir = dir.join("sandbox");
        private_dir(&dir)?;
        private_dir(&sandbox_dir)?;
        let sandbox = canonical(&sandbox_dir)?;
        let snapshot = services.snapshot();
        let resolver = Resolver::new(snapshot.home.clone(), sandbox.clone());
        let (to_client, lines) = mpsc::channel(TO_CLIENT);
        let (notes, notes_for_shim) = mpsc::unbounded_channel();
        let client_takes = watch::Sender::new(HashSet::new());
        let log = log::start(dir.join("session.log"));
        let around = Surroundings::new(&services.home, &snapshot.home, &snapshot.protected, &sandbox)
            .map_err(|e| SessionError::Directory { path: dir.clone(), problem: e.to_string() })?;
        let containment = containment::of(&services, &config, &around, &id).await;
        let principal = Principal {
            session: id.clone(),
            client,
            says_it_is: Arc::default(),
            server: config.name.clone(),
            server_command: config.command_line(),
            // The network of one that is not has no use for it.
            sandboxed: containment.as_ref().is_ok_and(Containment::is_sandboxed),
        };
        let caller = Caller {
            services: services.clone(),
            principal: Arc::new(principal.clone()),
            server: config.clone(),
        };
        let (containment, network) = with_network(containment, caller);
        let sandboxed = containment.as_ref().is_ok_and(Containment::is_sandboxed);
        let principal = Arc::new(Principal { sandboxed, ..principal });
        let whose = principal.clone();
        let facts = SessionFacts {
            client: principal.client.view.name.clone(),
            server: config.name.clone(),
            sandboxed,
            started_ms: crate::clock::now_ms(),
        };
        let started_ms = facts.started_ms;
        services.autostart.began(&id, facts);
        let server = ServerHandle::start(ActorOptions {
            server: config.clone(),
            programs: services.programs.clone(),
            containment,
            network: network.clone(),
            around,
            resolver: resolver.clone(),
            snapshots: services.snapshots.clone(),
            refuses_program: Box::new(services.refuses_program(&config.name)),
            may_use: Box::new(move |g| whose.is_covered_by(&g.subject)),
            grants: services.grants.watch(),
            client: to_client.clone(),
            memory: Arc::new(Semaphore::new(UNREAD_KIB)),
            client_takes: client_takes.subscribe(),
            log: log.clone(),
            audit: services.audit.clone(),
            autostart: services.autostart.clone(),
            session: id.clone(),
            _waited_for: services.shutdown.sandboxes.token(),
        });
        let session = Arc::new(Self {
            id,
            principal,
            services,
            config,
            server,
            network,
            sandboxed,
            sandbox,
            resolver,
            started_ms,
            counts: Counts::default(),
            to_client,
            notes,
            log,
            client_takes,
            echo: Mutex::default(),
            in_flight: Requests::default(),
            one_time: OneTimeGrants::default(),
            greeted: AtomicBool::new(false),
            budget: Arc::new(Semaphore::new(BUDGET_KIB)),
            last_in_line: Mutex::default(),
            end: CancellationToken::new(),
        });
        session.services.audit.record(session.entry(Event::Session, session.began())).await?;

        session.services.changed();
        Ok(Opened { session, lines, notes: notes_for_shim })
    }

    /// Ends the session from our side.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// The session's server.
    #[must_use]
    pub fn server(&self) -> &ServerHandle {
        &self.server
    }

    /// Whether a grant of this subject concerns this session.
    #[must_use]
    pub fn may_use(&self, subject: &GrantSubject) -> bool {
        self.principal.is_covered_by(subject)
    }

    /// For people.
    #[must_use]
    pub fn view(&self) -> SessionView {
        SessionView {
            id: self.id.clone(),
            client: shown_client(&self.principal.client_view()),
            server: visible::line(&self.config.name),
            sandboxed: self.sandboxed,
            server_pid: self.server.pid(),
            started_ms: self.started_ms,
            sandbox_dir: self.sandbox.as_str().to_owned(),
            allowed: self.counts.allowed.load(Ordering::Relaxed),
            denied: self.counts.denied.load(Ordering::Relaxed),
            asked: self.counts.asked.load(Ordering::Relaxed),
            left: self.services.autostart.undecided(&self.id),
            roots: self.server.shown().roots.into_iter().map(shown_root).collect(),
        }
    }

    /// Tells the shim that a person is asked about a request, until the guard is dropped.
    fn asking(&self, id: &Id) -> AskingGuard<'_> {
        let request = id.as_json().to_owned();
        // A shim that relays has no ear for it.
        let _ = self.notes.send(QuestionNote::Asking { request: request.clone() });
        AskingGuard { notes: &self.notes, request }
    }

    fn entry(&self, event: Event, summary: impl Into<String>) -> Entry {
        self.principal.entry(event, summary)
    }

    fn began(&self) -> String {
        format!("{} began a session with the server {}", self.principal.client.view.name, self.config.name)
    }
}

fn shown_root(root: RootView) -> RootView {
    RootView { path: visible::path(&root.path), source: visible::line(&root.source), grant: root.grant }
}

struct AskingGuard<'a> {
    notes: &'a mpsc::UnboundedSender<QuestionNote>,
    request: String,
}

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        // As above.
        let _ = self.notes.send(QuestionNote::Settled { request: std::mem::take(&mut self.request) });
    }
}

/// A session that is about to be served.
pub struct Opened {
    /// The session.
    pub session: Arc<Session>,
    notes: mpsc::UnboundedReceiver<QuestionNote>,
    lines: mpsc::Receiver<Outgoing>,
}

impl Opened {
    /// Serves the client until it hangs up, the shim does, or the session is ended; then nothing of it is left but its
    /// record. `shim` is the connection to a shim that waits.
    pub async fn serve(self, stdio: ClientStdio, shim: Option<UnixStream>) {
        let Self { session, lines, notes } = self;
        let hung_up = async {
            match shim {
                Some(shim) => attend(shim, notes).await,
                None => std::future::pending().await,
            }
        };
        let writer = tokio::spawn(client::write(stdio.output, lines));
        let why = tokio::select! {
            why = client::read(&session, stdio.input) => why,
            () = hung_up => None,
            () = session.end.cancelled() => None,
        };
        writer.abort();
        session.close(why).await;
    }

    /// Ends it before it is served, for this reason.
    pub async fn unserved(self, why: &str) {
        self.session.close(Some(why)).await;
    }
}

impl Session {
    /// Ends what is under way and puts the end on record, with the reason where it is ours.
    async fn close(&self, why: Option<&str>) {
        for (id, call) in &self.in_flight.take_all() {
            self.abandon(id, call, "the session ended before the call was answered").await;
        }
        self.services.grants.end_session(&self.id);
        self.services.autostart.ended(&self.id);
        let name = &self.principal.client.view.name;
        let summary = match why {
            None => format!("{name} ended its session"),
            Some(why) => format!("the session of {name} was ended: {why}"),
        };
        if let Err(problem) = self.services.audit.record(self.entry(Event::Session, summary)).await {
            tracing::error!(%problem, "the end of a session is not on record");
        }
        self.services.changed();
    }
}

impl Session {
    /// Ends what waits for a request that nobody wants answered any more, and puts that on record.
    async fn abandon(&self, id: &Id, call: &InFlight, why: &str) {
        if let Some(task) = &call.task {
            task.abort();
        }
        let Some(tool) = &call.tool else { return };
        let mut entry = self.entry(Event::Outcome, why);
        entry.request_id = Some(id.as_json().to_owned());
        entry.tool_name = Some(tool.clone());
        entry.result = Some(CallResult::GivenUp);
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "the end of a call is not on record");
        }
    }
}

/// The network that its containment gives a server; one that cannot be understood keeps it from starting.
fn with_network(
    containment: Result<Containment, String>,
    caller: Caller,
) -> (Result<Containment, String>, Option<Arc<ServerNetwork>>) {
    let network = match &containment {
        Ok(Containment::Native(profile, _)) => {
            profile.network.as_ref().map_or(Ok(None), |settings| ServerNetwork::of(settings, caller))
        }
        // The other kind has a proxy of its own.
        Ok(Containment::Srt(..) | Containment::Plain) | Err(_) => Ok(None),
    };
    match network {
        Ok(network) => (containment, network),
        Err(problem) => (Err(format!("`sandbox.network`: {problem}")), None),
    }
}

fn canonical(dir: &std::path::Path) -> Result<CanonicalPath, SessionError> {
    let problem = |problem: String| SessionError::Directory { path: dir.to_path_buf(), problem };
    let real = dir.canonicalize().map_err(|e| problem(e.to_string()))?;
    let text = real.to_str().ok_or_else(|| problem("it is not UTF-8".to_owned()))?;
    CanonicalPath::assume_canonical(text).map_err(|e| problem(e.to_string()))
}
