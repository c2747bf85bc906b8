//! Actor that owns a server's process and mounts.
//!
//! - Only active grants, leases of in-flight calls and folders that the policy permits add mounts (see [`reconcile`]).
//! - A policy change is handled like a grant change: paths that the policy no longer permits are unmounted, and the
//!   unmount is proven.
//! - A restarted process receives the same `initialize` as the first one.

mod applied;
mod exits;
mod file_events;
mod files;
mod handshake;
mod masks;
mod options;
mod reconcile;
mod recreating;
mod running;
mod served;
mod starting;
mod stderr_tail;

pub use applied::{Applied, Versions};
pub use options::ActorOptions;
pub use served::AskingOptions;

pub use super::down::{DownReason, ServerExit};
use super::mounted::MountRecord;
use super::replay::Replay;
use super::roots::ServerView;
use super::{MountLease, ServerError};
use files::SessionFiles;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_mcp::server::ServerConnection;
use ironcurtain_paths::CanonicalPath;
use reconcile::ServerRules;
use recreating::RecreatedFiles;
use running::{Handshake, ProcessEvent, Running, masks_may_be_lost, next_event};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Minimum uptime. A server that repeatedly exits sooner is restarted only after a delay.
const MIN_UPTIME: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) enum ServerState {
    /// The process with this start number is running, but has not answered `initialize`.
    Starting(u64),
    Up {
        connection: ServerConnection,
        pid: Option<u32>,
        ready: bool,
    },
    Down(DownReason),
}

#[derive(Debug)]
pub(super) enum Command {
    Initialize,
    Initialized,
    StartOptions(oneshot::Sender<Result<(), DownReason>>),
    Restart(oneshot::Sender<Result<(), DownReason>>),
    Lease(Vec<MountRequest>, Vec<CanonicalPath>, oneshot::Sender<Result<MountLease, ServerError>>),
    /// Updates the mounts for a call that needs no further access, without waiting for the server to confirm its roots.
    Refresh(oneshot::Sender<()>),
    Release(u64),
    /// Asks the process to exit. The actor exits after the process.
    Close,
}

/// Spawns the actor. It exits when the last command sender is dropped, its task is aborted, or the process has exited after
/// [`Command::Close`].
pub(super) fn start(
    options: ActorOptions,
    replay: Replay,
    commands: mpsc::WeakUnboundedSender<Command>,
    inbox: mpsc::UnboundedReceiver<Command>,
) -> (ActorView, AbortHandle) {
    let (state, state_seen) = watch::channel(ServerState::Starting(0));
    let (applied, applied_seen) = watch::channel(Applied::default());
    let (roots, roots_seen) = watch::channel(ServerView::default());
    let starts = Arc::<AtomicU64>::default();
    let server_rules = ServerRules::of(&options.snapshots.borrow(), &options.server.name);
    let actor = Actor {
        _files: SessionFiles::new(&options.containment),
        server_rules,
        must_hide_more: false,
        options,
        replay,
        commands,
        inbox,
        postponed: VecDeque::new(),
        state: Arc::new(state),
        applied,
        roots,
        running: None,
        mounted: Vec::new(),
        leases: BTreeMap::new(),
        approved_files: BTreeSet::new(),
        next_lease: 0,
        asks_for_roots: None,
        confirmed_version: 0,
        announced_version: 0,
        started: Instant::now(),
        early_exits: 0,
        failed_handshakes: 0,
        restarts: 0,
        starts: starts.clone(),
        recreating: RecreatedFiles::default(),
        start_attempts: 0,
        is_closing: false,
    };
    let task = tokio::spawn(actor.run()).abort_handle();
    (ActorView { state: state_seen, applied: applied_seen, roots: roots_seen, starts }, task)
}

/// Part of an actor's state that its handle can read.
#[derive(Debug, Clone)]
pub(super) struct ActorView {
    pub(super) state: watch::Receiver<ServerState>,
    pub(super) applied: watch::Receiver<Applied>,
    pub(super) roots: watch::Receiver<ServerView>,
    pub(super) starts: Arc<AtomicU64>,
}

/// Paths that one in-flight call needs, and the autostart files among them that the user approved.
struct Leased {
    mounts: Vec<MountRequest>,
    approved_files: Vec<CanonicalPath>,
}

struct Actor {
    options: ActorOptions,
    /// Sender for the actor's leases. It is weak, so that the actor does not keep itself alive.
    commands: mpsc::WeakUnboundedSender<Command>,
    inbox: mpsc::UnboundedReceiver<Command>,
    /// Commands that arrived while the actor was busy, oldest first.
    postponed: VecDeque<Command>,
    replay: Replay,
    state: Arc<watch::Sender<ServerState>>,
    applied: watch::Sender<Applied>,
    roots: watch::Sender<ServerView>,
    running: Option<Running>,
    server_rules: ServerRules,
    /// `true` if more paths must be hidden now than when the process was started.
    must_hide_more: bool,
    mounted: Vec<MountRecord>,
    leases: BTreeMap<u64, Leased>,
    /// Autostart files that are not quarantined, because the user approved them.
    approved_files: BTreeSet<CanonicalPath>,
    next_lease: u64,
    /// `true` if the server requests roots, `false` if it does not, or `None` if that is unknown.
    asks_for_roots: Option<bool>,
    /// Newest version of the roots that the process has confirmed, or has had enough time to confirm.
    confirmed_version: u64,
    /// Version of the roots at the time of the last `roots/list_changed` notification to the process.
    announced_version: u64,
    started: Instant,
    early_exits: u32,
    /// Number of consecutive processes that exited before they answered `initialize`.
    failed_handshakes: u32,
    /// Number of restarts because the server kept using revoked access.
    restarts: u64,
    /// Number of started processes. Shared with the handle.
    starts: Arc<AtomicU64>,
    /// Limits that apply because the server recreated quarantined files.
    recreating: RecreatedFiles,
    /// Number of attempts to start a process, used for unique sandbox names.
    start_attempts: u64,
    /// `true` once the process was asked to exit.
    is_closing: bool,
    /// Files for an `srt` sandbox. They are removed after the process has been killed.
    _files: Option<SessionFiles>,
}

impl Actor {
    /// Handles events until the session closes. Boxes the handlers, so that an idle server needs no memory for them.
    async fn run(mut self) {
        if self.wait_to_start().await.is_none() {
            return;
        }
        Box::pin(self.start_server()).await;
        Box::pin(self.reconcile()).await;
        let (mut grants, mut snapshots) = (self.options.grants.clone(), self.options.snapshots.clone());
        while self.running.is_some() || !self.is_closing {
            let check = self.running.as_mut().and_then(Running::mask_alert);
            tokio::select! {
                command = next_command(&mut self.postponed, &mut self.inbox) => match command {
                    Some(Command::Close) if !self.ask_to_exit() => return,
                    Some(command) => Box::pin(self.handle(command)).await,
                    None => return,
                },
                changed = grants.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let version = grants.borrow_and_update().version;
                    // Using a grant also changes the table, but not the granted access.
                    if version != self.applied.borrow().versions.grants {
                        Box::pin(self.reconcile()).await;
                    }
                }
                changed = snapshots.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let version = snapshots.borrow_and_update().version;
                    if version != self.applied.borrow().versions.policy {
                        Box::pin(self.reconcile()).await;
                    }
                }
                () = masks_may_be_lost(check) => Box::pin(self.check()).await,
                next_event = next_event(self.running.as_mut()) => match next_event {
                    ProcessEvent::Files(event) => Box::pin(self.files_event(event)).await,
                    ProcessEvent::Exited if self.is_closing => return,
                    ProcessEvent::Handshake(outcome) => Box::pin(self.handshake_ended(outcome)).await,
                    ProcessEvent::Exited => Box::pin(self.process_ended()).await,
                },
            }
        }
    }

    /// Closes the process's input, which asks it to exit. Returns `false` if there is no process on this computer.
    fn ask_to_exit(&mut self) -> bool {
        self.is_closing = true;
        let Some(running) = self.running.as_mut().filter(|running| !running.is_remote()) else {
            return false;
        };
        running.handshake = Handshake::None;
        running.connection.close_input();
        true
    }

    /// Waits until the server may start. Nothing is mounted before that, so revocations take effect at once. Returns
    /// `None` if the session closes.
    async fn wait_to_start(&mut self) -> Option<()> {
        let (may_start, mut grants) = (self.options.may_start.clone(), self.options.grants.clone());
        while !may_start.is_cancelled() {
            self.reconcile().await;
            tokio::select! {
                () = may_start.cancelled() => {}
                command = self.inbox.recv() => {
                    let command = command.filter(|command| !matches!(command, Command::Close))?;
                    self.postponed.push_back(command);
                }
                changed = grants.changed() => changed.ok()?,
            }
        }
        Some(())
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Initialize => match self.running.take() {
                // The process received the latest `initialize` when it was started.
                Some(running) if running.initialize_number == Some(self.replay.initialize_count()) => {
                    self.running = Some(running)
                }
                Some(mut running) => {
                    self.state.send_replace(ServerState::Starting(self.starts.load(Ordering::Relaxed)));
                    self.initialize(&mut running);
                    self.running = Some(running);
                }
                None => {
                    self.start_server().await;
                    self.reconcile().await;
                }
            },
            Command::Initialized => self.reconcile().await,
            Command::StartOptions(reply) => {
                if self.running.is_none() {
                    self.start_server().await;
                    self.reconcile().await;
                }
                // Ignore the error, which occurs if the caller was cancelled.
                let _ = reply.send(self.outcome());
            }
            Command::Restart(reply) => {
                self.restart("the user restarted it").await;
                self.reconcile().await;
                let _ = reply.send(self.outcome());
            }
            Command::Lease(mounts, approved_files, reply) => {
                let outcome = self.lease(mounts, approved_files).await;
                // If the caller was cancelled, dropping the lease releases it.
                let _ = reply.send(outcome);
            }
            Command::Refresh(reply) => {
                self.reconcile().await;
                // Ignore the error, which occurs if the caller was cancelled.
                let _ = reply.send(());
            }
            // Handled before.
            Command::Close => {}
            Command::Release(id) => {
                if self.leases.remove(&id).is_some() {
                    self.reconcile().await;
                }
            }
        }
    }

    async fn lease(
        &mut self,
        mounts: Vec<MountRequest>,
        approved_files: Vec<CanonicalPath>,
    ) -> Result<MountLease, ServerError> {
        self.next_lease += 1;
        let id = self.next_lease;
        let commands = self.commands.upgrade().ok_or(ServerError::SessionClosing)?;
        let lease = MountLease { id, mounts: mounts.clone(), commands };
        self.leases.insert(id, Leased { mounts: mounts.clone(), approved_files });
        self.reconcile().await;
        let failed = self.applied.borrow().failed.clone();
        match mounts.iter().find_map(|n| failed.get_key_value(&n.path)) {
            None => Ok(lease),
            Some((path, reason)) => {
                Err(ServerError::NotMounted { path: path.as_str().to_owned(), reason: reason.clone() })
            }
        }
    }

    async fn record(&self, summary: String) {
        self.record_entry(Entry::new(Event::Server, summary)).await;
    }

    async fn record_entry(&self, mut entry: Entry) {
        entry.session = Some(self.options.session.clone());
        entry.server_name = Some(self.options.server.name.clone());
        if let Err(problem) = self.options.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a change of a server");
        }
    }
}

/// Returns the next command. Postponed commands precede new ones. Returns `None` once all senders are dropped.
async fn next_command(
    postponed: &mut VecDeque<Command>,
    inbox: &mut mpsc::UnboundedReceiver<Command>,
) -> Option<Command> {
    match postponed.pop_front() {
        Some(command) => Some(command),
        None => inbox.recv().await,
    }
}
