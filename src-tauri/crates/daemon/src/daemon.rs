//! Starting the trusted process, and the handle to it.

use crate::autostart::{Autostart, Parts};
use crate::consent::{Broker, Consent};
use crate::containment::{Machine, MachineOptions, ServerPrograms};
use crate::control;
use crate::descriptors;
use crate::grants::{Expired, Grants, StoreError};
use crate::health::{Concern, Health};
use crate::home::{Home, HomeError};
use crate::identity::{self, Client};
use crate::last_words::LastWords;
use crate::listener::{ListenError, Listener, Peer};
use crate::packages::Packages;
use crate::policy_snapshot::SnapshotError;
use crate::reload::{First, Means, Reloader};
use crate::server::LISTENING;
use crate::services::Services;
use crate::session::{Session, Stdio};
use ironcurtain_audit::{self as audit, Audit, AuditError, CallResult, Entry, Event, LOG_NAME, Unfinished};
use ironcurtain_protocol::{Purpose, RefusalCode, Reply, Request, ShimHello, Stdio as StdioKind};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How long to wait when no connection can be accepted (out of descriptors, say) before trying again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The longest that the trusted process takes to end: every sandbox is ended, and what it has to say is heard.
pub const ENDING: Duration = LISTENING.saturating_add(Duration::from_secs(2));

/// What the trusted process is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its files are.
    pub home: Home,
    /// The directory that has `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub programs: PathBuf,
    /// Whether it may run, and make sandboxes, as uid 0.
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
    PolicySnapshot(#[from] SnapshotError),
    /// The audit log cannot be continued.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The grants cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody can be listened to; [`ListenError::AlreadyRunning`] is one of the reasons.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// It was started as root without leave.
    #[error(
        "IronCurtain does not run as root: its sandboxes would be judged as root's files are; `--allow-root` allows it"
    )]
    Root,
}

impl StartError {
    /// Whether another one of this user runs already.
    #[must_use]
    pub fn is_already_running(&self) -> bool {
        matches!(self, Self::Listen(ListenError::AlreadyRunning(_)))
    }
}

/// A handle to the running trusted process.
#[derive(Clone)]
pub struct Daemon(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) services: Services,
    pub(crate) reloader: Reloader,
    pub(crate) started_ms: u64,
    pub(crate) sessions: Mutex<Vec<Arc<Session>>>,
    ending: watch::Sender<bool>,
    ended: watch::Sender<bool>,
}

/// Starts the trusted process on the current tokio runtime. It runs until [`Request::Shutdown`].
///
/// # Errors
/// [`StartError`]: nothing was started.
pub async fn start(mut options: Options, consent: Arc<dyn Consent>) -> Result<Daemon, StartError> {
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
    let listener = Listener::bind(&options.home.socket, &options.home.state)?;
    let first = First::read(&options.home)?;
    let health = Health::default();
    let audit = open_audit(&options.home, &health)?;
    let (expired, expiries) = mpsc::unbounded_channel();
    let grants = Grants::open(&options.home.database(), expired)?;
    first.check_places(&options.home, &grants.now())?;
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
    let unfinished = audit::unfinished(&options.home.audit().join(LOG_NAME));
    let mut started = Entry::new(Event::Daemon, "the trusted process started");
    started.policy_hash = Some(first.snapshot().hash.clone());
    audit.record(started).await?;
    let (changes, ending) = (watch::Sender::new(0), watch::Sender::new(false));
    let config = first.config().clone();
    let reloader = first.follow(Means {
        home: options.home.clone(),
        audit: audit.clone(),
        health: health.clone(),
        grants: grants.watch(),
        machine: machine.clone(),
        changes: changes.clone(),
        ending: ending.subscribe(),
    });
    let last_words = LastWords::default();
    let autostart = Autostart::start(Parts {
        home: &options.home,
        audit: audit.clone(),
        changes: changes.clone(),
        last_words: &last_words,
    });
    let services = Services {
        machine,
        programs: ServerPrograms {
            dir: options.programs,
            allow_root: options.allow_root,
            packages: Packages::of(&options.home),
        },
        home: options.home,
        config,
        snapshots: reloader.snapshots(),
        audit,
        grants,
        broker: Broker::new(consent),
        health,
        autostart,
        last_words,
        changes,
    };
    let inner = Arc::new(Inner {
        services,
        reloader,
        started_ms: crate::clock::now_ms(),
        sessions: Mutex::default(),
        ending,
        ended: watch::Sender::new(false),
    });
    tokio::spawn(note_expiries(inner.clone(), expiries));
    tokio::spawn(note_changes(inner.clone()));
    tokio::spawn(end_of_others(inner.clone(), unfinished));
    tokio::spawn(accept(inner.clone(), listener));
    Ok(Daemon(inner))
}

impl Daemon {
    /// Does what a person's own program may ask for; the same as over the socket.
    pub async fn request(&self, request: Request) -> Reply {
        control::answer(&self.0, request).await
    }

    /// A counter that moves whenever sessions, questions, grants or activity change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.services.changes.subscribe()
    }

    /// Waits until the trusted process has ended.
    pub async fn ended(&self) {
        is_set(self.0.ended.subscribe()).await;
    }
}

impl Inner {
    pub(crate) fn live(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends every session and stops listening.
    pub(crate) fn shut_down(&self) {
        self.ending.send_replace(true);
    }
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

async fn accept(inner: Arc<Inner>, listener: Listener) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            () = is_set(inner.ending.subscribe()) => break,
            Some(_) = peers.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    let inner = inner.clone();
                    peers.spawn(async move {
                        if let Some(peer) = Peer::meet(stream).await {
                            serve(inner, peer).await;
                        }
                    });
                }
                Err(problem) => {
                    tracing::error!(%problem, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // The state is ours until all is on record.
    let locks = listener.close();
    let ended = async {
        for session in inner.live() {
            session.end();
        }
        while !inner.live().is_empty() && peers.join_next().await.is_some() {}
        inner.services.last_words.heard().await;
    };
    if tokio::time::timeout(ENDING, ended).await.is_err() {
        unheard(&inner).await;
    }
    if let Err(problem) =
        inner.services.audit.record(Entry::new(Event::Daemon, "the trusted process ended")).await
    {
        tracing::error!(%problem, "the end is not on record");
    }
    // Whoever is still connected sees by the connection's end that another one can start.
    drop(locks);
    inner.ended.send_replace(true);
}

/// Puts on record that it ends although not everything was heard.
async fn unheard(inner: &Inner) {
    let words = inner.services.autostart.last_looks().words();
    let summary = format!(
        "the trusted process ended before the last look at what sandboxes could write to was done ({}); it is done at the next \
         start",
        if words.is_empty() { "one did not end".to_owned() } else { words.join("; ") }
    );
    tracing::error!("{summary}");
    if let Err(problem) = inner.services.audit.record(Entry::new(Event::Daemon, summary)).await {
        tracing::error!(%problem, "the end is not on record");
    }
}

/// Completes when the flag is set, or nobody can set it any more.
async fn is_set(mut flag: watch::Receiver<bool>) {
    // Either way there is nothing more to wait for.
    let _ = flag.wait_for(|set| *set).await.is_ok();
}

async fn serve(inner: Arc<Inner>, peer: Peer) {
    match peer.hello.purpose.clone() {
        Purpose::Control => control::serve(inner, peer).await,
        Purpose::Session(shim) => serve_session(inner, peer, shim).await,
    }
}

async fn serve_session(inner: Arc<Inner>, mut peer: Peer, shim: ShimHello) {
    inner.reloader.look().await;
    let now = inner.reloader.settings();
    let client = identity::of_shim(peer.pid, shim.label);
    let config = match now.servers.find(shim.server.as_deref()).cloned() {
        Some(config) => config,
        None => {
            let names = now.servers.names().collect::<Vec<_>>().join("`, `");
            let text = match &shim.server {
                Some(name) => format!("no server is named `{name}`; there is `{names}`"),
                None => format!("say which server with `--server`; there is `{names}`"),
            };
            return refuse(&inner, &mut peer, &client, RefusalCode::UnknownServer, text).await;
        }
    };
    let stdio = match shim.stdio {
        StdioKind::HandedOver => peer.take_stdio().map(Some),
        StdioKind::Relayed => Ok(None),
    };
    let stdio = match stdio {
        Ok(stdio) => stdio,
        Err(problem) => {
            return refuse(&inner, &mut peer, &client, RefusalCode::Malformed, problem.to_string()).await;
        }
    };
    let services = Services { config: now.config.clone(), ..inner.services.clone() };
    let opened = match Session::open(services, client.clone(), config).await {
        Ok(opened) => opened,
        Err(problem) => {
            return refuse(&inner, &mut peer, &client, RefusalCode::Unavailable, problem.to_string()).await;
        }
    };
    let session = opened.session.clone();
    inner.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
    if *inner.ending.borrow() {
        // It may have come too late to be ended with the others.
        session.end();
    }
    match (peer.welcome(Some(session.id.clone())).await, stdio) {
        (Err(problem), _) => {
            opened.unserved(&format!("its shim was gone before it was served: {problem}")).await
        }
        (Ok(()), Some(stdio)) => opened.serve(stdio, Some(peer.stream)).await,
        (Ok(()), None) => {
            let (input, output) = peer.stream.into_split();
            let stdio = Stdio { input: Box::new(input), output: Box::new(output) };
            opened.serve(stdio, None).await;
        }
    }
    inner.sessions.lock().unwrap_or_else(PoisonError::into_inner).retain(|s| s.id != session.id);
    inner.services.changed();
}

/// The log; what is wrong with it is among the troubles.
fn open_audit(home: &Home, health: &Health) -> Result<Audit, AuditError> {
    let health = health.clone();
    Audit::open(&home.audit(), move |trouble| health.set(Concern::Audit, trouble))
}

/// Refuses a session that has not begun, and puts that on record.
async fn refuse(inner: &Inner, peer: &mut Peer, client: &Client, code: RefusalCode, why: String) {
    let name = &client.view.name;
    let mut entry = Entry::new(Event::Session, format!("{name} was refused a session: {why}"));
    entry.client = Some(name.clone());
    entry.result = Some(CallResult::Refused);
    if let Err(problem) = inner.services.audit.record(entry).await {
        tracing::error!(%problem, "the refusal of a session is not on record");
    }
    inner.services.changed();
    peer.refuse(code, why).await;
}

/// Puts the end of sessions on record whose trusted process was killed before it could.
async fn end_of_others(inner: Arc<Inner>, unfinished: io::Result<Vec<Unfinished>>) {
    let unfinished = match unfinished {
        Ok(unfinished) => unfinished,
        Err(problem) => return tracing::error!(%problem, "which sessions have no end on record is not known"),
    };
    for Unfinished { session, client, server } in unfinished {
        let name = client.as_deref().unwrap_or("a client");
        let summary = format!("the session of {name} ended with the trusted process, which did not end it");
        let mut entry = Entry::new(Event::Session, summary);
        (entry.session, entry.client, entry.server_name) = (Some(session), client, server);
        if let Err(problem) = inner.services.audit.record(entry).await {
            tracing::error!(%problem, "the end of a session is not on record");
        }
    }
    inner.services.changed();
}

async fn note_expiries(inner: Arc<Inner>, mut expiries: mpsc::UnboundedReceiver<Expired>) {
    while let Some(Expired(grant)) = expiries.recv().await {
        let mut entry = Entry::new(Event::Revoked, "a grant ended by the clock");
        entry.grant_id = Some(grant.id);
        entry.client = Some(grant.subject.client_name);
        entry.server_name = Some(grant.subject.server);
        grant.what.note_in(&mut entry);
        if let Err(problem) = inner.services.audit.record(entry).await {
            tracing::error!(%problem, "the end of a grant is not on record");
        }
        inner.services.changed();
    }
}

/// What people are shown changes with the questions and the troubles too.
async fn note_changes(inner: Arc<Inner>) {
    let (mut open, mut health) = (inner.services.broker.open(), inner.services.health.watch());
    loop {
        let changed = tokio::select! {
            changed = open.changed() => changed,
            changed = health.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
        inner.services.changed();
    }
}
