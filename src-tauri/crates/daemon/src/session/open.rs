//! Opens a session: creates its directory and a handle to its server.

use super::handover::{ClientState, SessionHandover};
use super::in_flight::Requests;
use super::issued_values::IssuedValues;
use super::one_time::OneTimeGrants;
use super::pinned_tools::PinnedTools;
use super::queue::CallQueue;
use super::serve::OpenedSession;
use super::tasks::Tasks;
use super::workspace::ClientRoots;
use super::{Session, containment};
use ironcurtain_audit::{AuditError, Event};
use ironcurtain_autostart::SessionFacts;
use ironcurtain_config::Server as ServerConfig;
use ironcurtain_config::home::{HomeError, private_dir};
use ironcurtain_consent::Principal;
use ironcurtain_containment::{DeniedReads, SandboxContext};
use ironcurtain_egress::HostRules;
use ironcurtain_grants::Client;
use ironcurtain_mcp::wire::Outbox;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_server::network::{Caller, HostSource, RunTargets, ServerNetwork};
use ironcurtain_server::served_files::AccessCounts;
use ironcurtain_server::{ActorOptions, AskingOptions, Containment, ContainmentError, ServerHandle};
use ironcurtain_services::Services;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of replies from IronCurtain that the client has not read. At this limit, IronCurtain stops reading
/// from the client.
const MAX_UNREAD: usize = 256;

/// Factors by which a long message's length is multiplied to reserve memory: for requests, which are judged and sent,
/// and for responses, which are only forwarded.
const COPIES: [u32; 2] = [6, 2];

/// Reason why a session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The session directory could not be created.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The path of the session directory is not canonical.
    #[error("failed to access the session directory `{path}`: {problem}")]
    Directory {
        /// Path of the session directory.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The start of the session could not be recorded.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The operating system could not provide random bytes for an id.
    #[error("failed to create a session id: {0}")]
    Name(#[from] std::io::Error),
}

/// Options for opening a session.
pub struct SessionOptions {
    /// Client that opens the session.
    pub client: Client,
    /// The server's entry in `mcp-servers.json`.
    pub server: ServerConfig,
    /// Identifier of the connection if it carries several sessions, or `None`.
    pub connection: Option<String>,
    /// Id of the run whose program opens the session, if any.
    pub run: Option<String>,
    /// State of the session to continue from another daemon process, or `None` for a new session.
    pub handover: Option<SessionHandover>,
}

impl Session {
    /// Opens a session, or continues one that was handed over. Call [`OpenedSession::serve`] next.
    ///
    /// # Errors
    /// Returns [`SessionError`] if the session cannot be opened. In that case, nothing has been started.
    pub async fn open(services: Services, options: SessionOptions) -> Result<OpenedSession, SessionError> {
        let SessionOptions { client, server: config, connection, run, handover } = options;
        let is_resumed = handover.is_some();
        let state = handover.map_or_else(ClientState::new, |handover| Ok(handover.state))?;
        let ClientState { id, started_ms, accepted_requests, replay, unread, version, .. } = state;
        if state.paused {
            services.broker.pause(&id);
        }
        let dir = services.home.sessions().join(&id);
        let sandbox_dir = dir.join("sandbox");
        private_dir(&dir)?;
        private_dir(&sandbox_dir)?;
        let sandbox = canonical(&sandbox_dir)?;
        let snapshot = services.snapshot();
        let resolver = Resolver::new(snapshot.home.clone(), sandbox.clone());
        let to_client = Outbox::unopened();
        let [client_memory, server_memory] = COPIES.map(|copies| services.memory.allowance(copies));
        let (notes, notes_for_shim) = mpsc::unbounded_channel();
        let accepted_requests = watch::Sender::new(accepted_requests);
        let (sampling, sampling_requests) = mpsc::unbounded_channel();
        let log = services.logs.log(dir.join("session.log"));
        let around = SandboxContext::new(&services.home, &snapshot.home, &snapshot.protected, &sandbox)
            .map_err(|e| SessionError::Directory { path: dir.clone(), problem: e.to_string() })?;
        let containment = containment::select(&services, &config, &around, &id).await;
        let principal = Principal {
            session: id.clone(),
            client,
            claimed_name: Arc::new(Mutex::new(state.claimed_name)),
            server: config.name.clone(),
            server_command: config.command_line(),
            // Preliminary value, recomputed below. Only the network uses it, and only sandboxed servers have a
            // network.
            sandboxed: containment.as_ref().is_ok_and(Containment::is_sandboxed),
            remote: config.remote.is_some(),
            is_new: !is_embedded(&services, &config) && !services.grants.has_served(&config.identity()),
        };
        let caller = Caller {
            services: services.clone(),
            principal: Arc::new(principal.clone()),
            source: HostSource::Server(Box::new(config.clone())),
        };
        let remote = config.remote.as_ref().and_then(|remote| remote.rules().ok());
        let (containment, network) = with_network(containment, remote, caller, &resolver);
        let sandboxed = containment.as_ref().is_ok_and(Containment::is_sandboxed);
        let principal = Arc::new(Principal { sandboxed, ..principal });
        let own_folders = containment.as_ref().ok().filter(|_| network.is_none()).and_then(|containment| {
            containment::own_folders(containment, &around, &services.home.server_data(&config.name))
        });
        let denied = config.sandbox.settings().filter(|_| sandboxed);
        let denied = denied.map(|settings| DeniedReads::new(settings, sandbox.as_path(), &snapshot.home));
        let denied = Arc::new(denied.unwrap_or_default());
        let is_remote = config.remote.is_some();
        let (subject_principal, policies) = (principal.clone(), services.snapshots.clone());
        let facts = SessionFacts {
            client: principal.client.view.name.clone(),
            server: config.name.clone(),
            sandboxed,
            remote: config.remote.is_some(),
            started_ms,
        };
        services.autostart.session_started(&id, facts);
        let (counts, in_flight) = (Arc::<AccessCounts>::default(), Arc::<Requests>::default());
        let is_asking =
            containment.as_ref().is_ok_and(|containment| matches!(containment, Containment::Asking(_)));
        let asking = is_asking.then(|| AskingOptions {
            services: services.clone(),
            principal: principal.clone(),
            calls: {
                let in_flight = in_flight.clone();
                Arc::new(move || in_flight.tools_at_server())
            },
            counts: counts.clone(),
        });
        let may_start = CancellationToken::new();
        if config.works_with.is_empty() {
            may_start.cancel();
        }
        let options = ActorOptions {
            server: config.clone(),
            programs: services.programs.clone(),
            containment,
            network: network.clone(),
            sandbox_context: around,
            denied: denied.clone(),
            resolver: resolver.clone(),
            snapshots: services.snapshots.clone(),
            gate: services.identity_gate(&config),
            refuses_program: Box::new(services.refuses_program(&config.name)),
            may_use: Box::new(move |g| {
                subject_principal.is_covered_by(&g.subject)
                    && !policies.borrow().suspends(&subject_principal.server, g)
            }),
            grants: services.grants.watch(),
            client: to_client.clone(),
            memory: server_memory,
            client_takes: accepted_requests.subscribe(),
            versions: services.versions.clone(),
            sampling,
            log: log.clone(),
            audit: services.audit.clone(),
            metrics: services.metrics.clone(),
            autostart: services.autostart.clone(),
            session: id.clone(),
            asking,
            shutdown_token: services.shutdown.sandboxes.token(),
            may_start: may_start.clone(),
        };
        let server = ServerHandle::start(options, replay);
        let session = Arc::new(Self {
            id,
            principal,
            services,
            config,
            connection,
            run,
            server,
            // A remote server's requests do not use the proxy.
            network: network.filter(|_| !is_remote),
            sandboxed,
            own_folders,
            denied,
            sandbox,
            resolver,
            started_ms,
            counts,
            dropped_messages: AtomicU64::new(0),
            to_client,
            unread: Arc::new(Semaphore::new(MAX_UNREAD)),
            notes,
            log,
            accepted_requests,
            client_roots: ClientRoots::new(state.has_roots),
            echo: Mutex::default(),
            in_flight,
            one_time: OneTimeGrants::default(),
            is_initialized: AtomicBool::new(state.initialized),
            has_batches: AtomicBool::new(state.has_batches),
            tasks: Tasks::default(),
            issued: IssuedValues::default(),
            pinned_tools: PinnedTools::default(),
            memory: client_memory,
            queue: CallQueue::default(),
            may_start,
            end: CancellationToken::new(),
        });
        session
            .services
            .audit
            .record(session.entry(Event::Session, session.start_summary(is_resumed)))
            .await?;

        session.services.changed();
        Ok(OpenedSession { session, notes: notes_for_shim, sampling: sampling_requests, unread, version })
    }
}

/// Returns `true` if the server is the filesystem server that is part of IronCurtain.
fn is_embedded(services: &Services, config: &ServerConfig) -> bool {
    let exists = || services.programs.dir.join(ServerConfig::EMBEDDED).is_file();
    config.remote.is_none() && config.command == ServerConfig::EMBEDDED && exists()
}

/// Returns the server's containment and network. If the network settings are invalid, returns an error as the
/// containment, which keeps the server from starting.
fn with_network(
    containment: Result<Containment, ContainmentError>,
    remote: Option<HostRules>,
    caller: Caller,
    resolver: &Resolver,
) -> (Result<Containment, ContainmentError>, Option<Arc<ServerNetwork>>) {
    if let Some(rules) = remote {
        return (containment, Some(ServerNetwork::for_remote_server(rules, caller)));
    }
    let network = match &containment {
        Ok(Containment::Native(profile, _)) => profile
            .network
            .as_ref()
            .map_or(Ok(None), |settings| ServerNetwork::for_server(settings, caller, None)),
        Ok(Containment::Asking(profile)) => profile.network.as_ref().map_or(Ok(None), |settings| {
            let targets = RunTargets::new(resolver.clone(), Vec::new())?;
            ServerNetwork::for_server(settings, caller, Some(targets))
        }),
        // `srt` has a proxy of its own, and the other kinds have no sandbox.
        Ok(Containment::Srt(..) | Containment::Plain | Containment::Remote) | Err(_) => Ok(None),
    };
    match network {
        Ok(network) => (containment, network),
        Err(problem) => (Err(problem.into()), None),
    }
}

fn canonical(dir: &Path) -> Result<CanonicalPath, SessionError> {
    let problem = |problem: String| SessionError::Directory { path: dir.to_path_buf(), problem };
    let real = dir.canonicalize().map_err(|e| problem(e.to_string()))?;
    let text = real.to_str().ok_or_else(|| problem("it is not UTF-8".to_owned()))?;
    CanonicalPath::assume_canonical(text).map_err(|e| problem(e.to_string()))
}
