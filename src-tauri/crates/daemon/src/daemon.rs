//! Starts the daemon, and provides a handle to it.

mod accept;
mod changed_servers;
mod manual_grants;
mod run_sessions;
mod serve_session;
mod storage;
mod take_over;

pub use changed_servers::ChangedServers;
pub use manual_grants::{GrantRequest, GrantRequestError, GrantTarget, GrantTerms, VerifiedClient};

use crate::control::{self, Asker};
use crate::daemon_state::DaemonState;
use crate::descriptors;
use crate::managed_policy;
use crate::record_export::RecordExport;
use ironcurtain_audit::clock::Clock;
use ironcurtain_audit::{self as audit, Audit, AuditError, Entry, Event, Keeping, Unfinished};
use ironcurtain_autostart::{Autostart, AutostartParts};
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{Config, ManagedPolicy, PolicySnapshot, SnapshotError};
use ironcurtain_connection::ListenError;
use ironcurtain_consent::{Broker, Consent, LateError, Stops};
use ironcurtain_containment::ServerPrograms;
use ironcurtain_grants::{GrantParts, Grants, StoreError};
use ironcurtain_mcp::wire::{KnownInstructions, KnownVersions, Memory};
use ironcurtain_packages::Packages;
use ironcurtain_paths::atomic_file;
use ironcurtain_protocol::{AskedOn, Reply, Request};
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_secrets::SecretStore;
use ironcurtain_server::{LISTENING, ServerError};
use ironcurtain_server_identity::bind_existing;
use ironcurtain_services::{
    ChangedTools, Concern, DesktopConsent, Health, Identities, InitialState, Machine, MachineOptions,
    Metrics, RecordHead, ReloaderParts, Services, SessionLogs, Shutdown, Workspaces, record_head,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum time for the daemon to shut down, including the time to terminate all sandboxes and check their writable
/// folders.
pub const ENDING: Duration = LISTENING.saturating_add(Duration::from_secs(2));

/// Options for starting the daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// IronCurtain's directories.
    pub home: Home,
    /// Directory that contains `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub programs: PathBuf,
    /// Permits the daemon to run, and to create sandboxes, as root.
    pub allow_root: bool,
}

/// Reason why the daemon could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory cannot be created or is not private.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A configuration or policy file is invalid.
    #[error("{0}")]
    Policy(#[from] SnapshotError),
    /// The audit log cannot be opened or continued.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The grants database cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The socket cannot be used, for example because another daemon is running ([`ListenError::AlreadyRunning`]).
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A thread cannot be spawned.
    #[error("failed to spawn a thread: {0}")]
    Thread(io::Error),
    /// This operating system has no supported sandbox.
    #[error(transparent)]
    Unsupported(#[from] SandboxLaunchError),
    /// The user is root, but [`DaemonOptions::allow_root`] is `false`.
    #[error(
        "refusing to run as root, whose rights sandboxes would inherit; run as another user, or pass `--allow-root`"
    )]
    Root,
}

impl StartError {
    /// Returns `true` if a daemon of this user is already running.
    #[must_use]
    pub fn is_already_running(&self) -> bool {
        matches!(self, Self::Listen(ListenError::AlreadyRunning(_)))
    }
}

/// Reason why a server could not be restarted.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// No active session has this id.
    #[error("no active session `{0}`")]
    NoSession(String),
    /// The server cannot be started.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// Handle to the running daemon. Clones refer to the same daemon.
#[derive(Clone)]
pub struct Daemon(Arc<DaemonState>);

/// Starts the daemon on the current tokio runtime. The daemon runs until it receives [`Request::Shutdown`].
///
/// # Errors
/// Returns [`StartError`] if the daemon cannot be started. In that case, nothing is left running.
pub async fn start(mut options: DaemonOptions, consent: Arc<dyn Consent>) -> Result<Daemon, StartError> {
    if !cfg!(target_os = "linux") {
        return Err(SandboxLaunchError::Unsupported.into());
    }
    if rustix::process::geteuid().is_root() && !options.allow_root {
        return Err(StartError::Root);
    }
    if let Err(e) = descriptors::raise_limit() {
        tracing::warn!("failed to raise the limit of open files: {e}");
    }
    options.home.programs = Some(options.programs.clone());
    ironcurtain_sandbox::give_large_blocks_back();
    options.home.prepare()?;
    // Takes the lock first, so that two processes cannot perform the following steps at the same time.
    let listener = if consent.asked_on() != AskedOn::Nobody {
        take_over::listen(&options.home).await?
    } else {
        take_over::bind(&options.home).await?
    };
    if let Some(mut managed) = ManagedPolicy::load(&options.home).map_err(SnapshotError::from)? {
        managed.record_arrivals(&options.home)?;
    }
    let first = InitialState::read(&options.home)?;
    let health = Health::default();
    let audit = open_audit(&options.home, first.config(), &health).await?;
    let grants_health = health.clone();
    let grants = Grants::open(GrantParts {
        database: &options.home.database(),
        audit: audit.clone(),
        on_trouble: Box::new(move |trouble| grants_health.set(Concern::Grants, trouble)),
        clock: Clock::of_machine().map_err(StoreError::Clock)?,
    })?;
    grants.limit(managed_policy::max_lifetime(first.snapshot()));
    first.check_places(&options.home, &grants.now())?;
    bind(&options, &first, &grants).await?;
    let file = options.home.state.join("workspaces.json");
    let workspaces = Workspaces::open(file.clone()).map_err(|source| HomeError::Io { path: file, source })?;
    sweep(&options.home.srt())?;
    let machine = MachineOptions {
        backend: first.config().sandbox_backend,
        policy: first.config().sandbox_policy,
        programs: options.programs.clone(),
        sandboxes: options.home.sandboxes(),
        trial: options.home.srt().join("trial"),
        allow_root: options.allow_root,
    };
    let machine = Machine::new(machine, health.clone());
    let unfinished = audit::unfinished(&options.home.audit());
    let mut started = Entry::new(Event::Daemon, "the trusted process started");
    started.policy_hash = Some(first.snapshot().hash.clone());
    audit.record(started).await?;
    let (changes, shutdown) = (watch::Sender::new(0), Shutdown::default());
    let config = first.config().clone();
    let memory = Memory::new(config.memory_mib, config.session_memory_mib);
    let reloader = first.follow(ReloaderParts {
        home: options.home.clone(),
        audit: audit.clone(),
        health: health.clone(),
        grants: grants.watch(),
        machine: machine.clone(),
        changes: changes.clone(),
        ending: shutdown.requested.clone(),
    });
    let autostart = Autostart::start(AutostartParts {
        home: &options.home,
        audit: audit.clone(),
        changes: changes.clone(),
        sandboxes: &shutdown.sandboxes,
    });
    let identities = Identities::open(&options.home, audit.clone(), health.clone()).await;
    let changed_tools = ChangedTools::new(&options.home, health.clone());
    let stops = Stops::open(options.home.lockdown());
    let desktop = Arc::new(DesktopConsent::new(consent));
    let services = Services {
        machine,
        programs: ServerPrograms {
            dir: options.programs,
            allow_root: options.allow_root,
            packages: Packages::of(&options.home),
            secrets: SecretStore::of(&options.home.state),
        },
        record_head: RecordHead::new(options.home.clone(), audit.clone(), health.clone()),
        broker: Broker::new(desktop.clone(), stops, options.home.other.as_ref().map(ToString::to_string)),
        home: options.home,
        config,
        snapshots: reloader.snapshots(),
        settings: reloader.follow_settings(),
        audit,
        grants,
        identities,
        changed_tools,
        desktop,
        attached_hosts: Arc::default(),
        health,
        workspaces,
        metrics: Metrics::default(),
        autostart,
        logs: SessionLogs::start().map_err(StartError::Thread)?,
        versions: KnownVersions::default(),
        instructions: KnownInstructions::default(),
        memory,
        shutdown,
        changes,
    };
    tokio::spawn(services.record_head.clone().follow());
    tokio::spawn(storage::follow(services.home.state.clone(), services.health.clone()));
    let home = services.home.clone();
    tokio::task::spawn_blocking(move || sweep_temporary(&home));
    let (changed_tools, settings) = (services.changed_tools.clone(), services.settings.borrow().clone());
    tokio::task::spawn_blocking(move || changed_tools.resume(&settings.servers));
    let state = Arc::new(DaemonState::new(services, reloader));
    tokio::spawn(signal_changes(state.clone()));
    tokio::spawn(record_unfinished(state.clone(), unfinished));
    tokio::spawn(managed_policy::follow(state.clone()));
    tokio::spawn(managed_policy::apply_settings(state.clone()));
    let export = RecordExport::start(state.clone());
    tokio::spawn(accept::accept(state.clone(), listener, export));
    Ok(Daemon(state))
}

impl Daemon {
    /// Returns the server secret store. All handles share its unlocked state.
    #[must_use]
    pub fn secrets(&self) -> SecretStore {
        self.0.services.programs.secrets.clone()
    }

    /// Returns the current policy.
    #[must_use]
    pub fn policy(&self) -> Arc<PolicySnapshot> {
        self.0.services.snapshot()
    }

    /// Handles a control request as if it had arrived over the socket.
    pub async fn request(&self, request: Request) -> Reply {
        control::answer(&self.0, request, Asker::Own).await
    }

    /// Asks the user an expired question again, and waits for the answer. Returns `true` if the user allows the agent
    /// to repeat the identical call once.
    ///
    /// # Errors
    /// Returns [`LateError`] if the question cannot be asked again. In that case, nothing is allowed.
    pub async fn ask_again(&self, question: &str) -> Result<bool, LateError> {
        self.0.services.late_asking().ask(question).await
    }

    /// Restarts the server of an active session, and waits until it is running.
    ///
    /// # Errors
    /// Returns [`RestartError`] if the session is not active or the server cannot be started.
    pub async fn restart_server(&self, session: &str) -> Result<(), RestartError> {
        let live = self.0.live().into_iter().find(|live| live.id == session);
        let session = live.ok_or_else(|| RestartError::NoSession(session.to_owned()))?;
        Ok(session.server().start_again().await?)
    }

    /// Returns a counter that increases whenever sessions, questions, grants or activity change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.services.changes.subscribe()
    }

    /// Waits until the daemon has shut down.
    pub async fn ended(&self) {
        self.0.services.shutdown.ended.cancelled().await;
    }
}

/// Migrates data that an older version stored under server names: binds it to the identities of these servers.
async fn bind(options: &DaemonOptions, first: &InitialState, grants: &Grants) -> Result<(), StoreError> {
    let (home, ours, servers) = (options.home.clone(), options.programs.clone(), first.servers().clone());
    let grants = grants.now();
    let bound = tokio::task::spawn_blocking(move || bind_existing(&home, &ours, &servers, &grants.grants));
    bound.await.unwrap_or(Err(StoreError::Ended))
}

/// Removes a directory that a killed daemon left behind.
fn sweep(dir: &Path) -> Result<(), HomeError> {
    match std::fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(HomeError::Io { path: dir.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes temporary files that killed processes left behind in IronCurtain's folders.
fn sweep_temporary(home: &Home) {
    let sessions =
        std::fs::read_dir(home.sessions()).into_iter().flatten().flatten().map(|found| found.path());
    let folders = [home.config.clone(), home.policy(), home.state.clone()].into_iter().chain(sessions);
    // Errors are ignored, because the next start tries again.
    folders.for_each(|folder| drop(atomic_file::sweep(&folder)));
}

/// Opens the audit log, and reports problems with it to `health`.
async fn open_audit(home: &Home, config: &Config, health: &Health) -> Result<Audit, AuditError> {
    let log_health = health.clone();
    let keeping = Keeping {
        dir: home.audit(),
        head: Some(home.audit_head()),
        elsewhere: record_head::if_needed(home).await,
        file_bytes: config.record_file_mib * 1024 * 1024,
        keep: Duration::from_secs(config.record_keep_days * 24 * 60 * 60),
    };
    let audit = Audit::keep(keeping, move |trouble| log_health.set(Concern::Audit, trouble))?;
    health
        .set(Concern::Record, audit.unknown_end().map(|why| format!("The record may be incomplete: {why}.")));
    Ok(audit)
}

/// Records the end of the sessions that were open when the previous daemon was killed.
async fn record_unfinished(state: Arc<DaemonState>, unfinished: io::Result<Vec<Unfinished>>) {
    let unfinished = match unfinished {
        Ok(unfinished) => unfinished,
        Err(problem) => {
            return tracing::error!(%problem, "failed to find the sessions whose end is not recorded");
        }
    };
    for Unfinished { session, client, server, .. } in unfinished {
        let name = client.as_deref().unwrap_or("a client");
        let summary = format!("the session of {name} ended when the trusted process stopped unexpectedly");
        let mut entry = Entry::new(Event::Session, summary);
        (entry.session, entry.client, entry.server_name) = (Some(session), client, server);
        if let Err(problem) = state.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record the end of a session");
        }
    }
    state.services.changed();
}

/// Increments the change counter whenever questions, health, grants, lockdown or pauses change.
async fn signal_changes(state: Arc<DaemonState>) {
    let (mut open, mut health) = (state.services.broker.open(), state.services.health.watch());
    let (mut grants, mut stops) = (state.services.grants.watch(), state.services.broker.stops().watch());
    loop {
        let changed = tokio::select! {
            changed = open.changed() => changed,
            changed = health.changed() => changed,
            changed = grants.changed() => changed,
            changed = stops.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        state.services.changed();
    }
}
