//! Starting the trusted process, and the handle to it.

mod accept;
mod changed_servers;
mod giving;
mod storage;
mod take_over;

pub use changed_servers::ChangedServers;
pub use giving::{Gift, GiftOf, GiveError, GrantTerms, ProvedClient};

use crate::control::{self, Asker};
use crate::daemon_state::DaemonState;
use crate::descriptors;
use crate::health::{Concern, Health};
use crate::identity_gate::Identities;
use crate::machine::{Machine, MachineOptions};
use crate::metrics::Metrics;
use crate::record_head::{self, RecordHead};
use crate::reload::{InitialState, ReloaderParts};
use crate::server::{LISTENING, ServerError};
use crate::services::Services;
use crate::session_log::SessionLogs;
use crate::shutdown::Shutdown;
use crate::workspaces::Workspaces;
use ironcurtain_audit::clock::Clock;
use ironcurtain_audit::{self as audit, Audit, AuditError, Entry, Event, Keeping, Unfinished};
use ironcurtain_autostart::{Autostart, AutostartParts};
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_config::{Config, SnapshotError};
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
use ironcurtain_server_identity::bind_existing;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The longest that the trusted process takes to end: every sandbox is ended, and what it has to say is heard.
pub const ENDING: Duration = LISTENING.saturating_add(Duration::from_secs(2));

/// Options of the trusted process.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The folders that its files are in.
    pub home: Home,
    /// The directory that has `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub programs: PathBuf,
    /// Lets it run, and make sandboxes, as uid 0.
    pub allow_root: bool,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its directories cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A configuration or policy file is refused.
    #[error("{0}")]
    Policy(#[from] SnapshotError),
    /// The audit log cannot be continued.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The grants cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody can be listened to; [`ListenError::AlreadyRunning`] is one of the reasons.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
    /// There is no sandbox for this system.
    #[error(transparent)]
    Unsupported(#[from] SandboxLaunchError),
    /// It was started as root without leave.
    #[error(
        "IronCurtain does not run as root: its sandboxes would be judged as root's files are; `--allow-root` allows it"
    )]
    Root,
}

impl StartError {
    /// Returns `true` if another one of this user runs already.
    #[must_use]
    pub fn is_already_running(&self) -> bool {
        matches!(self, Self::Listen(ListenError::AlreadyRunning(_)))
    }
}

/// Why a server was not started again.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// The session is over.
    #[error("there is no live session `{0}`")]
    NoSession(String),
    /// It does not run.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// A handle to the running trusted process.
#[derive(Clone)]
pub struct Daemon(Arc<DaemonState>);

/// Starts the trusted process on the current tokio runtime. It runs until [`Request::Shutdown`].
///
/// # Errors
/// [`StartError`]: nothing was started.
pub async fn start(mut options: DaemonOptions, consent: Arc<dyn Consent>) -> Result<Daemon, StartError> {
    if !cfg!(target_os = "linux") {
        return Err(SandboxLaunchError::Unsupported.into());
    }
    if rustix::process::geteuid().is_root() && !options.allow_root {
        return Err(StartError::Root);
    }
    if let Err(e) = descriptors::take_all() {
        tracing::warn!("the number of descriptors stays as it is: {e}");
    }
    options.home.programs = Some(options.programs.clone());
    ironcurtain_sandbox::give_large_blocks_back();
    options.home.prepare()?;
    // The lock first: what follows must not be done by two.
    let listener = if consent.asked_on() != AskedOn::Nobody {
        take_over::listen(&options.home).await?
    } else {
        take_over::bind(&options.home).await?
    };
    let first = InitialState::read(&options.home)?;
    let health = Health::default();
    let audit = open_audit(&options.home, first.config(), &health).await?;
    let of_grants = health.clone();
    let grants = Grants::open(GrantParts {
        database: &options.home.database(),
        audit: audit.clone(),
        on_trouble: Box::new(move |trouble| of_grants.set(Concern::Grants, trouble)),
        clock: Clock::of_machine().map_err(StoreError::Clock)?,
    })?;
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
    let stops = Stops::open(options.home.lockdown());
    let services = Services {
        machine,
        programs: ServerPrograms {
            dir: options.programs,
            allow_root: options.allow_root,
            packages: Packages::of(&options.home),
            secrets: SecretStore::of(&options.home.state),
        },
        record_head: RecordHead::new(options.home.clone(), audit.clone(), health.clone()),
        broker: Broker::new(consent, stops, options.home.other.as_ref().map(ToString::to_string)),
        home: options.home,
        config,
        snapshots: reloader.snapshots(),
        settings: reloader.follow_settings(),
        audit,
        grants,
        identities,
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
    let state = Arc::new(DaemonState::new(services, reloader));
    tokio::spawn(note_changes(state.clone()));
    tokio::spawn(end_of_others(state.clone(), unfinished));
    tokio::spawn(accept::accept(state.clone(), listener));
    Ok(Daemon(state))
}

impl Daemon {
    /// The secrets of servers, as this process opened them.
    #[must_use]
    pub fn secrets(&self) -> SecretStore {
        self.0.services.programs.secrets.clone()
    }

    /// Does what a person's own program may ask for; the same as over the socket.
    pub async fn request(&self, request: Request) -> Reply {
        control::answer(&self.0, request, Asker::Own).await
    }

    /// Puts a question that nobody answered in time to the person again, on the dialog or the terminal, and waits for the
    /// answer. `true` where the agent's identical call passes once from now on.
    ///
    /// # Errors
    /// [`LateError`]: nothing is allowed.
    pub async fn ask_again(&self, question: &str) -> Result<bool, LateError> {
        self.0.services.late_asking().ask(question).await
    }

    /// Stops the server of a live session and starts it again.
    ///
    /// # Errors
    /// [`RestartError`].
    pub async fn restart_server(&self, session: &str) -> Result<(), RestartError> {
        let live = self.0.live().into_iter().find(|live| live.id == session);
        let session = live.ok_or_else(|| RestartError::NoSession(session.to_owned()))?;
        Ok(session.server().start_again().await?)
    }

    /// A counter that moves whenever sessions, questions, grants or activity change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.services.changes.subscribe()
    }

    /// Waits until the trusted process has ended.
    pub async fn ended(&self) {
        self.0.services.shutdown.ended.cancelled().await;
    }
}

/// Binds what an older version kept under the names of servers.
async fn bind(options: &DaemonOptions, first: &InitialState, grants: &Grants) -> Result<(), StoreError> {
    let (home, ours, servers) = (options.home.clone(), options.programs.clone(), first.servers().clone());
    let grants = grants.now();
    let bound = tokio::task::spawn_blocking(move || bind_existing(&home, &ours, &servers, &grants.grants));
    bound.await.unwrap_or(Err(StoreError::Ended))
}

/// Removes what one that was killed has left.
fn sweep(dir: &Path) -> Result<(), HomeError> {
    match std::fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(HomeError::Io { path: dir.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the temporary files that killed processes have left in our folders.
fn sweep_temporary(home: &Home) {
    let sessions =
        std::fs::read_dir(home.sessions()).into_iter().flatten().flatten().map(|found| found.path());
    let folders = [home.config.clone(), home.policy(), home.state.clone()].into_iter().chain(sessions);
    // What cannot be removed costs nothing, and is tried again at the next start.
    folders.for_each(|folder| drop(atomic_file::sweep(&folder)));
}

/// Opens the log; what is wrong with it is among the troubles.
async fn open_audit(home: &Home, config: &Config, health: &Health) -> Result<Audit, AuditError> {
    let of_log = health.clone();
    let keeping = Keeping {
        dir: home.audit(),
        head: Some(home.audit_head()),
        elsewhere: record_head::if_needed(home).await,
        file_bytes: config.record_file_mib * 1024 * 1024,
        keep: Duration::from_secs(config.record_keep_days * 24 * 60 * 60),
    };
    let audit = Audit::keep(keeping, move |trouble| of_log.set(Concern::Audit, trouble))?;
    health
        .set(Concern::Record, audit.unknown_end().map(|why| format!("The record may be incomplete: {why}.")));
    Ok(audit)
}

/// Puts the end of sessions on record whose trusted process was killed before it could.
async fn end_of_others(state: Arc<DaemonState>, unfinished: io::Result<Vec<Unfinished>>) {
    let unfinished = match unfinished {
        Ok(unfinished) => unfinished,
        Err(problem) => return tracing::error!(%problem, "which sessions have no end on record is not known"),
    };
    for Unfinished { session, client, server, .. } in unfinished {
        let name = client.as_deref().unwrap_or("a client");
        let summary = format!("the session of {name} ended with the trusted process, which did not end it");
        let mut entry = Entry::new(Event::Session, summary);
        (entry.session, entry.client, entry.server_name) = (Some(session), client, server);
        if let Err(problem) = state.services.audit.record(entry).await {
            tracing::error!(%problem, "the end of a session is not on record");
        }
    }
    state.services.changed();
}

/// Notes a change of what people are shown whenever the questions, the troubles or the grants change.
async fn note_changes(state: Arc<DaemonState>) {
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
