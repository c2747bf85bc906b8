//! Starts the daemon and provides a handle to it.

mod accept;
mod changed_servers;
mod manual_grants;
mod run_sessions;
mod serve_session;
mod storage;
mod take_over;

pub use changed_servers::ChangedServers;
pub use manual_grants::{GrantChanges, GrantRequest, GrantRequestError, GrantTarget, VerifiedClient};

use crate::control::{self, Requester};
use crate::daemon_state::DaemonState;
use crate::descriptors;
use crate::managed_policy;
use crate::record_export::RecordExport;
use ironcurtain_audit::clock::Clock;
use ironcurtain_audit::{self as audit, Audit, AuditError, Entry, Event, LogOptions, UnfinishedSession};
use ironcurtain_autostart::{Autostart, AutostartParts};
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{Config, ManagedPolicy, PolicySnapshot, SnapshotError};
use ironcurtain_connection::ListenError;
use ironcurtain_consent::{Broker, Consent, ReopenError, Stops};
use ironcurtain_containment::ServerPrograms;
use ironcurtain_grants::{GrantParts, Grants, StoreError};
use ironcurtain_mcp::wire::{KnownInstructions, KnownVersions, MemoryBudget};
use ironcurtain_packages::Packages;
use ironcurtain_paths::atomic_file;
use ironcurtain_protocol::{PromptLocation, Reply, Request};
use ironcurtain_sandbox::SandboxLaunchError;
use ironcurtain_secrets::SecretStore;
use ironcurtain_server::{EXIT_TIMEOUT, ServerError};
use ironcurtain_server_identity::bind_existing;
use ironcurtain_services::{
    ChangedTools, DesktopConsent, Health, HealthComponent, Identities, InitialState, Metrics, RecordHead,
    ReloaderParts, SandboxProbe, SandboxProbeOptions, Services, SessionLogs, Shutdown, Workspaces,
    record_head,
};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum time for the daemon to shut down, including the time to terminate all sandboxes and check their writable
/// folders.
pub const SHUTDOWN_TIMEOUT: Duration = EXIT_TIMEOUT.saturating_add(Duration::from_secs(2));

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
    ironcurtain_sandbox::return_large_blocks();
    options.home.prepare()?;
    // Takes the lock first so that two processes cannot perform the following steps at the same time.
    let listener = if consent.prompt_location() != PromptLocation::Nobody {
        take_over::listen(&options.home).await?
    } else {
        take_over::bind(&options.home).await?
    };
    if let Some(mut managed) = ManagedPolicy::load(&options.home).map_err(SnapshotError::from)? {
        managed.record_first_seen(&options.home)?;
    }
    let initial = InitialState::read(&options.home)?;
    let health = Health::default();
    let audit = open_audit(&options.home, initial.config(), &health).await?;
    let grants_health = health.clone();
    let grants = Grants::open(GrantParts {
        database: &options.home.database(),
        audit: audit.clone(),
        on_trouble: Box::new(move |trouble| grants_health.set(HealthComponent::Grants, trouble)),
        clock: Clock::system().map_err(StoreError::Clock)?,
    })?;
    grants.limit(managed_policy::max_lifetime(initial.snapshot()));
    initial.check_not_writable(&options.home, &grants.now())?;
    bind(&options, &initial, &grants).await?;
    let file = options.home.state.join("workspaces.json");
    let workspaces = Workspaces::open(file.clone()).map_err(|source| HomeError::Io { path: file, source })?;
    remove_leftover_dir(&options.home.srt())?;
    let sandbox_probe = SandboxProbeOptions {
        backend: initial.config().sandbox_backend,
        policy: initial.config().sandbox_policy,
        programs: options.programs.clone(),
        sandboxes: options.home.sandboxes(),
        srt_test_dir: options.home.srt().join("trial"),
        allow_root: options.allow_root,
    };
    let sandbox_probe = SandboxProbe::new(sandbox_probe, health.clone());
    let unfinished = audit::unfinished_sessions(&options.home.audit());
    let mut started = Entry::new(Event::Daemon, "the trusted process started");
    started.policy_hash = Some(initial.snapshot().hash.clone());
    audit.record(started).await?;
    let (changes, shutdown) = (watch::Sender::new(0), Shutdown::default());
    let config = initial.config().clone();
    let memory = MemoryBudget::new(config.memory_mib, config.session_memory_mib);
    let reloader = initial.start_reloading(ReloaderParts {
        home: options.home.clone(),
        audit: audit.clone(),
        health: health.clone(),
        grants: grants.watch(),
        sandbox_probe: sandbox_probe.clone(),
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
        sandbox_probe,
        programs: ServerPrograms {
            dir: options.programs,
            allow_root: options.allow_root,
            packages: Packages::in_home(&options.home),
            secrets: SecretStore::of(&options.home.state),
        },
        record_head: RecordHead::new(options.home.clone(), audit.clone(), health.clone()),
        broker: Broker::new(
            desktop.clone(),
            stops,
            options.home.override_warning.as_ref().map(ToString::to_string),
        ),
        home: options.home,
        config,
        snapshots: reloader.snapshots(),
        settings: reloader.watch_settings(),
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
    tokio::spawn(services.record_head.clone().run());
    tokio::spawn(storage::monitor(services.home.state.clone(), services.health.clone()));
    let home = services.home.clone();
    tokio::task::spawn_blocking(move || sweep_temporary_files(&home));
    let (changed_tools, settings) = (services.changed_tools.clone(), services.settings.borrow().clone());
    tokio::task::spawn_blocking(move || changed_tools.resume(&settings.servers));
    let state = Arc::new(DaemonState::new(services, reloader));
    tokio::spawn(signal_changes(state.clone()));
    tokio::spawn(record_unfinished(state.clone(), unfinished));
    tokio::spawn(managed_policy::keep_updated(state.clone()));
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
        control::answer(&self.0, request, Requester::Own).await
    }

    /// Asks the user an expired question again and waits for the answer. Returns `true` if the user allows the agent
    /// to repeat the identical call once.
    ///
    /// # Errors
    /// Returns [`ReopenError`] if the question cannot be asked again. In that case, nothing is allowed.
    pub async fn ask_again(&self, question: &str) -> Result<bool, ReopenError> {
        self.0.services.late_asking().ask(question).await
    }

    /// Restarts the server of an active session and waits until it is running.
    ///
    /// # Errors
    /// Returns [`RestartError`] if the session is not active or the server cannot be started.
    pub async fn restart_server(&self, session: &str) -> Result<(), RestartError> {
        let live = self.0.sessions().into_iter().find(|live| live.id == session);
        let session = live.ok_or_else(|| RestartError::NoSession(session.to_owned()))?;
        Ok(session.server().restart_by_user().await?)
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
async fn bind(options: &DaemonOptions, initial: &InitialState, grants: &Grants) -> Result<(), StoreError> {
    let (home, programs, servers) =
        (options.home.clone(), options.programs.clone(), initial.servers().clone());
    let grants = grants.now();
    let bound =
        tokio::task::spawn_blocking(move || bind_existing(&home, &programs, &servers, &grants.grants));
    bound.await.unwrap_or(Err(StoreError::ShuttingDown))
}

/// Removes a directory that a killed daemon left behind.
fn remove_leftover_dir(dir: &Path) -> Result<(), HomeError> {
    match std::fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(HomeError::Io { path: dir.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes temporary files that killed processes left behind in IronCurtain's folders.
fn sweep_temporary_files(home: &Home) {
    let sessions =
        std::fs::read_dir(home.sessions()).into_iter().flatten().flatten().map(|found| found.path());
    let folders = [home.config.clone(), home.policy(), home.state.clone()].into_iter().chain(sessions);
    // Errors are ignored, because the next start tries again.
    folders.for_each(|folder| drop(atomic_file::sweep(&folder)));
}

/// Opens the audit log and reports problems with it to `health`.
async fn open_audit(home: &Home, config: &Config, health: &Health) -> Result<Audit, AuditError> {
    let log_health = health.clone();
    let log_options = LogOptions {
        dir: home.audit(),
        head: Some(home.audit_head()),
        known_entry: record_head::read_if_needed(home).await,
        file_bytes: config.record_file_mib * 1024 * 1024,
        retention: Duration::from_secs(config.record_keep_days * 24 * 60 * 60),
    };
    let audit =
        Audit::open_with(log_options, move |trouble| log_health.set(HealthComponent::Audit, trouble))?;
    health.set(
        HealthComponent::Record,
        audit.unknown_end().map(|why| format!("The record may be incomplete: {why}.")),
    );
    Ok(audit)
}

/// Records the end of the sessions that were open when the previous daemon was killed.
async fn record_unfinished(state: Arc<DaemonState>, unfinished: io::Result<Vec<UnfinishedSession>>) {
    let unfinished = match unfinished {
        Ok(unfinished) => unfinished,
        Err(problem) => {
            return tracing::error!(%problem, "failed to find the sessions whose end is not recorded");
        }
    };
    for UnfinishedSession { session, client, server, .. } in unfinished {
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
