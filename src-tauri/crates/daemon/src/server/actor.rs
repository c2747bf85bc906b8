//! The owner of one server's process and of what it sees.
//!
//! - What is mounted follows from the live grants and the leases of calls under way; nothing else adds a mount
//!   (see [`reconcile`]).
//! - Another policy is followed as another grant is: what it opens no longer is taken away, with proof.
//! - A process that is started again is greeted as the client greeted the first one.

mod applied;
mod files;
mod masks;
mod options;
mod reconcile;
mod running;

pub use applied::{Applied, Versions};
pub use options::ActorOptions;

use super::connection::{ConnectionOptions, ServerAnswer, ServerConnection};
use super::control::SupervisorControl;
use super::down::{DownReason, GREETING_BOUND};
use super::mounted::Mounted;
use super::process::{self, Process, ProcessHold, Start, Watch};
use super::roots::ServerView;
use super::start_error::ServerStartError;
use super::{MountLease, ServerError};
use crate::autostart::WatchedServer;
use crate::mounts::{Need, united};
use crate::wire::{Input, Response, notification_line};
use files::SessionFiles;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_paths::CanonicalPath;
use reconcile::ServerRules;
use running::{Running, ended, uncovered};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A server that ends sooner than this after its start is not started again at once.
const STEADY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) enum ServerState {
    Starting,
    Up { connection: ServerConnection, pid: u32, ready: bool },
    Down(DownReason),
}

#[derive(Debug)]
pub(super) enum Command {
    Greeting(Box<RawValue>),
    Initialized(Vec<u8>),
    Start(oneshot::Sender<Result<(), DownReason>>),
    Lease(Vec<Need>, Vec<CanonicalPath>, oneshot::Sender<Result<MountLease, ServerError>>),
    Release(u64),
}

/// Starts the actor; it ends with the last sender of commands, or when its task is aborted.
pub(super) fn start(
    options: ActorOptions,
    commands: mpsc::WeakUnboundedSender<Command>,
    inbox: mpsc::UnboundedReceiver<Command>,
) -> (ActorView, AbortHandle) {
    let (state, state_seen) = watch::channel(ServerState::Starting);
    let (applied, applied_seen) = watch::channel(Applied::default());
    let (roots, roots_seen) = watch::channel(ServerView::default());
    let server_rules = ServerRules::of(&options.snapshots.borrow(), &options.server.name);
    let actor = Actor {
        _files: SessionFiles::of(&options.containment),
        server_rules,
        hides_too_little: false,
        options,
        commands,
        state,
        applied,
        roots,
        running: None,
        mounted: Vec::new(),
        leases: BTreeMap::new(),
        named: BTreeSet::new(),
        next_lease: 0,
        greeting: None,
        initialized: false,
        asks_for_roots: None,
        understands: 0,
        started: Instant::now(),
        quick_ends: 0,
        restarts: 0,
        starts: 0,
    };
    let task = tokio::spawn(actor.run(inbox)).abort_handle();
    (ActorView { state: state_seen, applied: applied_seen, roots: roots_seen }, task)
}

/// The part of an actor's state that others see.
#[derive(Debug, Clone)]
pub(super) struct ActorView {
    pub(super) state: watch::Receiver<ServerState>,
    pub(super) applied: watch::Receiver<Applied>,
    pub(super) roots: watch::Receiver<ServerView>,
}

/// The paths that one call under way needs to see, and the files that an answer to it named.
struct Leased {
    needs: Vec<Need>,
    named: Vec<CanonicalPath>,
}

struct Actor {
    options: ActorOptions,
    /// For the leases it gives; weak, so that it does not keep itself alive.
    commands: mpsc::WeakUnboundedSender<Command>,
    state: watch::Sender<ServerState>,
    applied: watch::Sender<Applied>,
    roots: watch::Sender<ServerView>,
    running: Option<Running>,
    server_rules: ServerRules,
    /// Set when what no server may read has changed since the process was started.
    hides_too_little: bool,
    mounted: Vec<Mounted>,
    leases: BTreeMap<u64, Leased>,
    /// Files that run later and that an answer of the person named.
    named: BTreeSet<CanonicalPath>,
    next_lease: u64,
    /// The parameters of the client's `initialize`, once the server has answered it.
    greeting: Option<Box<RawValue>>,
    initialized: bool,
    /// Set when the server asks for roots; unknown at first.
    asks_for_roots: Option<bool>,
    /// The version of the roots that this process has understood, or been given time to.
    understands: u64,
    started: Instant,
    quick_ends: u32,
    /// The number of times that the server was restarted because it still held something that was taken away.
    restarts: u64,
    /// The number of times that a process was started.
    starts: u64,
    /// Its files, removed after the process is killed.
    _files: Option<SessionFiles>,
}

impl Actor {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        self.start_server().await;
        self.reconcile().await;
        let (mut grants, mut snapshots) = (self.options.grants.clone(), self.options.snapshots.clone());
        loop {
            let check = self.running.as_mut().and_then(Running::check);
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.handle(command).await,
                    None => return,
                },
                changed = grants.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let version = grants.borrow_and_update().version;
                    // A use is a change of the table too, but not of what is granted.
                    if version != self.applied.borrow().versions.grants {
                        self.reconcile().await;
                    }
                }
                changed = snapshots.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let version = snapshots.borrow_and_update().version;
                    if version != self.applied.borrow().versions.policy {
                        self.reconcile().await;
                    }
                }
                () = uncovered(check) => self.check().await,
                () = ended(self.running.as_mut()) => self.process_ended().await,
            }
        }
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Greeting(params) => self.greeting = Some(params),
            Command::Initialized(line) => {
                self.initialized = true;
                if let Some(running) = &self.running {
                    running.connection.send(line, None);
                }
                self.reconcile().await;
            }
            Command::Start(reply) => {
                if self.running.is_none() {
                    self.start_server().await;
                    self.reconcile().await;
                }
                let outcome = match &*self.state.borrow() {
                    ServerState::Down(reason) => Err(reason.clone()),
                    ServerState::Up { .. } | ServerState::Starting => Ok(()),
                };
                // Who no longer waits was cancelled.
                let _ = reply.send(outcome);
            }
            Command::Lease(needs, named, reply) => {
                let outcome = self.lease(needs, named).await;
                // A lease that nobody takes is dropped, which releases it.
                let _ = reply.send(outcome);
            }
            Command::Release(id) => {
                if self.leases.remove(&id).is_some() {
                    self.reconcile().await;
                }
            }
        }
    }

    async fn lease(
        &mut self,
        needs: Vec<Need>,
        named: Vec<CanonicalPath>,
    ) -> Result<MountLease, ServerError> {
        self.next_lease += 1;
        let id = self.next_lease;
        let commands = self.commands.upgrade().ok_or(ServerError::Ending)?;
        let lease = MountLease { id, needs: needs.clone(), commands };
        self.leases.insert(id, Leased { needs: needs.clone(), named });
        self.reconcile().await;
        let failed = self.applied.borrow().failed.clone();
        match needs.iter().find_map(|n| failed.get_key_value(&n.path)) {
            None => Ok(lease),
            Some((path, reason)) => {
                Err(ServerError::NotShown { path: path.as_str().to_owned(), reason: reason.clone() })
            }
        }
    }

    /// Starts the process with everything mounted that is to be seen, and greets it if the client has.
    async fn start_server(&mut self) {
        if self.quick_ends >= 3 && self.started.elapsed() < STEADY * self.quick_ends.min(15) {
            self.state.send_replace(ServerState::Down(DownReason::EndsTooSoon(self.quick_ends)));
            return;
        }
        self.state.send_replace(ServerState::Starting);
        self.started = Instant::now();
        self.project();
        self.hides_too_little = false;
        let needs = united(self.roots.borrow().needs.clone());
        let mounted = needs.iter().cloned().map(Mounted::about_to_be).collect();
        match self.start_process(&needs).await {
            Ok(process) => self.process_started(process, mounted).await,
            // One grant that cannot be shown must not keep the server down: it is added, and refused, by itself.
            Err(_) if !needs.is_empty() => match self.start_process(&[]).await {
                Ok(process) => self.process_started(process, Vec::new()).await,
                Err(problem) => self.down(problem.into()).await,
            },
            Err(problem) => self.down(problem.into()).await,
        }
    }

    async fn start_process(&mut self, needs: &[Need]) -> Result<Process, ServerStartError> {
        let before = self.starts;
        self.starts += 1;
        let o = &self.options;
        let containment = o.containment.as_ref().map_err(Clone::clone)?;
        let network = o.network.as_deref();
        let watched = WatchedServer { session: &o.session, server: &o.server.name, before };
        let watch = Some(Watch { autostart: &o.autostart, watched, named: &self.named });
        let start = Start {
            server: &o.server,
            programs: &o.programs,
            refuses_program: &*o.refuses_program,
            around: &o.around,
            network,
            needs,
            watch,
        };
        process::start(containment, start).await
    }

    async fn process_started(&mut self, process: Process, mounted: Vec<Mounted>) {
        let Process { pid, stdin, stdout, stderr, hold, mut closed } = process;
        tokio::spawn(copy_stderr(stderr, self.options.log.clone()));
        let (connection, ended) = ServerConnection::start(ConnectionOptions {
            stdin,
            stdout,
            client: self.options.client.clone(),
            memory: self.options.memory.clone(),
            roots: self.roots.subscribe(),
            client_takes: self.options.client_takes.clone(),
            noise: self.options.log.clone(),
        });
        self.understands = 0;
        self.mounted = match hold {
            ProcessHold::Live { .. } | ProcessHold::Fixed { .. } => {
                let closing = |m: Mounted| {
                    let closed = closed.remove(&m.need.path).unwrap_or_default();
                    m.closing(closed)
                };
                mounted.into_iter().map(closing).collect()
            }
            ProcessHold::Plain { .. } => Vec::new(),
        };
        self.running = Some(Running { connection: connection.clone(), hold, ended });
        self.record(format!("the server {} started", self.options.server.name)).await;
        if let Some(greeting) = self.greeting.clone()
            && let Err(reason) = greet(&connection, &greeting, self.initialized).await
        {
            self.running = None;
            self.down(reason).await;
            return;
        }
        self.state.send_replace(ServerState::Up { connection, pid, ready: false });
    }

    /// The process ended by itself.
    async fn process_ended(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let status = match running.control() {
            Some(control) => {
                tokio::time::timeout(Duration::from_millis(500), control.exit()).await.ok().flatten()
            }
            None => None,
        };
        let lost = running.control().map(SupervisorControl::uncovered).unwrap_or_default();
        drop(running);
        self.tell_uncovered(lost).await;
        self.quick_ends = if self.started.elapsed() < STEADY { self.quick_ends + 1 } else { 0 };
        self.down(status.map_or(DownReason::Ended, DownReason::EndedWith)).await;
    }

    async fn restart(&mut self, why: &str) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
        self.mounted.clear();
        self.record(format!("the server {} was stopped: {why}", self.options.server.name)).await;
        self.quick_ends = 0;
        self.start_server().await;
    }

    async fn down(&mut self, reason: DownReason) {
        self.mounted.clear();
        self.log(format!("the server is down: {reason}")).await;
        self.record(format!("the server {} is not running: {reason}", self.options.server.name)).await;
        self.state.send_replace(ServerState::Down(reason));
    }

    async fn record(&self, summary: String) {
        self.record_entry(Entry::new(Event::Server, summary)).await;
    }

    async fn record_entry(&self, mut entry: Entry) {
        entry.session = Some(self.options.session.clone());
        entry.server_name = Some(self.options.server.name.clone());
        if let Err(problem) = self.options.audit.record(entry).await {
            tracing::error!(%problem, "a change of a server is not on record");
        }
    }

    async fn log(&self, text: String) {
        // Without a log there is nobody to tell.
        let _ = self.options.log.send(text).await;
    }
}

/// Greets a restarted server as far as the client greeted the first one.
async fn greet(
    connection: &ServerConnection,
    params: &RawValue,
    initialized: bool,
) -> Result<(), DownReason> {
    let asked = connection.request("initialize", Some(params));
    match tokio::time::timeout(GREETING_BOUND, asked.answer()).await {
        Ok(ServerAnswer::Response(Response::Result(_))) => {
            if initialized {
                connection.send(notification_line("notifications/initialized", None), None);
            }
            Ok(())
        }
        Ok(ServerAnswer::Response(Response::Error(error))) => {
            Err(DownReason::GreetingRefused(error.get().to_owned()))
        }
        Ok(ServerAnswer::Failed(reason)) => Err(reason.into()),
        Err(_) => Err(DownReason::GreetingUnanswered),
    }
}

async fn copy_stderr(stderr: Input, log: mpsc::Sender<String>) {
    let mut lines = BufReader::new(stderr).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let text = String::from_utf8_lossy(line.get(..line.len().min(4000)).unwrap_or_default()).into_owned();
        if log.send(text).await.is_err() {
            return;
        }
    }
}
