//! The owner of one server's process and of what it sees.
//!
//! - What is mounted follows from the live grants and the leases of calls under way; nothing else adds a mount
//!   (see [`reconcile`]).
//! - Another policy is followed as another grant is: what it opens no longer is taken away, with proof.
//! - A process that is started again is greeted as the client greeted the first one.

mod applied;
mod files;
mod greeting;
mod masks;
mod options;
mod reconcile;
mod recreating;
mod running;
mod starting;
mod stderr_tail;

pub use applied::{Applied, Versions};
pub use options::ActorOptions;

use super::control::SupervisorControl;
pub use super::down::{DownReason, ServerExit};
use super::mounted::Mounted;
use super::roots::ServerView;
use super::told::{Greeted, Told};
use super::{MountLease, ServerError};
use files::SessionFiles;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::mounts::Need;
use ironcurtain_mcp::server::ServerConnection;
use ironcurtain_mcp::wire::ProtocolVersion;
use ironcurtain_paths::CanonicalPath;
use reconcile::ServerRules;
use recreating::RecreatedFiles;
use running::{Greeting, News, Running, news, uncovered};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// A server that ends sooner than this after its start is not started again at once.
const STEADY: Duration = Duration::from_secs(2);

/// The number of times in a row that a server is started anew because it ended before it had answered the greeting.
const MOST_GREETINGS: u32 = 3;

#[derive(Debug)]
pub(super) enum ServerState {
    /// The process of this number is started, or has not answered the greeting.
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
    Greet,
    Initialized,
    Start(oneshot::Sender<Result<(), DownReason>>),
    Restart(oneshot::Sender<Result<(), DownReason>>),
    Lease(Vec<Need>, Vec<CanonicalPath>, oneshot::Sender<Result<MountLease, ServerError>>),
    /// Mounts what stands there now, for a call that needs nothing more: it does not wait until the server has understood.
    Refresh(oneshot::Sender<()>),
    Release(u64),
}

/// Starts the actor; it ends with the last sender of commands, or when its task is aborted.
pub(super) fn start(
    options: ActorOptions,
    told: Told,
    commands: mpsc::WeakUnboundedSender<Command>,
    inbox: mpsc::UnboundedReceiver<Command>,
) -> (ActorView, AbortHandle) {
    let (state, state_seen) = watch::channel(ServerState::Starting(0));
    let (applied, applied_seen) = watch::channel(Applied::default());
    let (roots, roots_seen) = watch::channel(ServerView::default());
    let starts = Arc::<AtomicU64>::default();
    let server_rules = ServerRules::of(&options.snapshots.borrow(), &options.server.name);
    let actor = Actor {
        _files: SessionFiles::of(&options.containment),
        server_rules,
        hides_too_little: false,
        options,
        told,
        commands,
        inbox,
        postponed: VecDeque::new(),
        state: Arc::new(state),
        applied,
        roots,
        running: None,
        mounted: Vec::new(),
        leases: BTreeMap::new(),
        named: BTreeSet::new(),
        next_lease: 0,
        asks_for_roots: None,
        understands: 0,
        announced: 0,
        started: Instant::now(),
        quick_ends: 0,
        unanswered: 0,
        restarts: 0,
        starts: starts.clone(),
        recreating: RecreatedFiles::default(),
        tries: 0,
    };
    let task = tokio::spawn(actor.run()).abort_handle();
    (ActorView { state: state_seen, applied: applied_seen, roots: roots_seen, starts }, task)
}

/// The part of an actor's state that others see.
#[derive(Debug, Clone)]
pub(super) struct ActorView {
    pub(super) state: watch::Receiver<ServerState>,
    pub(super) applied: watch::Receiver<Applied>,
    pub(super) roots: watch::Receiver<ServerView>,
    pub(super) starts: Arc<AtomicU64>,
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
    inbox: mpsc::UnboundedReceiver<Command>,
    /// Commands that came while something else was waited for, oldest first.
    postponed: VecDeque<Command>,
    told: Told,
    state: Arc<watch::Sender<ServerState>>,
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
    /// Set when the server asks for roots; unknown at first.
    asks_for_roots: Option<bool>,
    /// The version of the roots that this process has understood, or been given time to.
    understands: u64,
    /// The version of the roots that this process was last notified of.
    announced: u64,
    started: Instant,
    quick_ends: u32,
    /// The number of processes in a row that ended before they had answered the greeting.
    unanswered: u32,
    /// The number of times that the server was restarted because it still held something that was taken away.
    restarts: u64,
    /// The number of times that the server was started; others see it.
    starts: Arc<AtomicU64>,
    /// The limits that it has since it recreated files.
    recreating: RecreatedFiles,
    /// The number of processes that were tried for that. Each has a sandbox of its own name.
    tries: u64,
    /// Its files, removed after the process is killed.
    _files: Option<SessionFiles>,
}

impl Actor {
    async fn run(mut self) {
        if self.wait_to_start().await.is_none() {
            return;
        }
        self.start_server().await;
        self.reconcile().await;
        let (mut grants, mut snapshots) = (self.options.grants.clone(), self.options.snapshots.clone());
        loop {
            let check = self.running.as_mut().and_then(Running::check);
            tokio::select! {
                command = next_command(&mut self.postponed, &mut self.inbox) => match command {
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
                news = news(self.running.as_mut()) => match news {
                    News::Greeted(outcome) => self.process_greeted(outcome).await,
                    News::Ended => self.process_ended().await,
                },
            }
        }
    }

    /// Waits until the server may start. Nothing of it runs meanwhile, so that whatever is revoked does not exist. Returns
    /// nothing where the session is over.
    async fn wait_to_start(&mut self) -> Option<()> {
        let (may_start, mut grants) = (self.options.may_start.clone(), self.options.grants.clone());
        while !may_start.is_cancelled() {
            self.reconcile().await;
            tokio::select! {
                () = may_start.cancelled() => {}
                command = self.inbox.recv() => self.postponed.push_back(command?),
                changed = grants.changed() => changed.ok()?,
            }
        }
        Some(())
    }

    async fn handle(&mut self, command: Command) {
        match command {
            Command::Greet => match self.running.take() {
                // It was started with it.
                Some(running) if running.greeted == Some(self.told.number()) => self.running = Some(running),
                Some(mut running) => {
                    self.state.send_replace(ServerState::Starting(self.starts.load(Ordering::Relaxed)));
                    self.greet(&mut running);
                    self.running = Some(running);
                }
                None => {
                    self.start_server().await;
                    self.reconcile().await;
                }
            },
            Command::Initialized => self.reconcile().await,
            Command::Start(reply) => {
                if self.running.is_none() {
                    self.start_server().await;
                    self.reconcile().await;
                }
                // Who no longer waits was cancelled.
                let _ = reply.send(self.outcome());
            }
            Command::Restart(reply) => {
                self.restart("the person had it started again").await;
                self.reconcile().await;
                let _ = reply.send(self.outcome());
            }
            Command::Lease(needs, named, reply) => {
                let outcome = self.lease(needs, named).await;
                // A lease that nobody takes is dropped, which releases it.
                let _ = reply.send(outcome);
            }
            Command::Refresh(reply) => {
                self.reconcile().await;
                // As above.
                let _ = reply.send(());
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

    /// The process has answered the greeting, or never will.
    async fn process_greeted(&mut self, outcome: Greeted) {
        let Some(running) = &mut self.running else { return };
        match outcome {
            Greeted::Welcome => {
                running.greeting = Greeting::Welcome;
                self.unanswered = 0;
                self.reconcile().await;
            }
            Greeted::Refused => running.greeting = Greeting::None,
            Greeted::Failed => self.process_ended().await,
            Greeted::RefusedAgain(error) => self.give_up(DownReason::GreetingRefused(error)).await,
            Greeted::Unanswered => self.give_up(DownReason::GreetingUnanswered).await,
        }
    }

    /// Ends a process that is of no use.
    async fn give_up(&mut self, why: DownReason) {
        self.running = None;
        self.down(why).await;
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
        let stderr_tail = running.stderr_tail.text().await;
        let remote = running.hold.remote_end();
        let ending = ServerExit { status: status.or_else(|| running.hold.status()), stderr_tail, remote };
        running.connection.ended(&ending);
        let lost = running.control().map(SupervisorControl::uncovered).unwrap_or_default();
        let (was_greeted, was_probed) = (running.greeting.is_open(), running.greeting.is_probed());
        drop(running);
        self.tell_uncovered(lost).await;
        self.quick_ends = if self.started.elapsed() < STEADY { self.quick_ends + 1 } else { 0 };
        let why = DownReason::Ended(Arc::new(ending));
        self.unanswered += u32::from(was_greeted);
        if was_probed {
            // It is of the other version, and is greeted as that.
            self.options.versions.remember(&self.options.server.command_line(), ProtocolVersion::Handshake);
        }
        if was_greeted && (was_probed || !self.told.is_awaited()) && self.unanswered < MOST_GREETINGS {
            self.mounted.clear();
            self.record(format!("the server {} is greeted again: {why}", self.options.server.name)).await;
            self.start_server().await;
            return self.reconcile().await;
        }
        self.down(why).await;
    }

    fn outcome(&self) -> Result<(), DownReason> {
        match &*self.state.borrow() {
            ServerState::Down(reason) => Err(reason.clone()),
            ServerState::Up { .. } | ServerState::Starting(_) => Ok(()),
        }
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
        self.unanswered = 0;
        self.options.log.write(format!("the server is down: {reason}"));
        self.record(format!("the server {} is not running: {reason}", self.options.server.name)).await;
        self.not_running(reason);
    }

    /// Tells everybody that waits for it.
    fn not_running(&self, reason: DownReason) {
        self.told.give_up(&reason);
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
}

/// Returns the next command, the postponed ones first; nothing when nobody can send one any more.
async fn next_command(
    postponed: &mut VecDeque<Command>,
    inbox: &mut mpsc::UnboundedReceiver<Command>,
) -> Option<Command> {
    match postponed.pop_front() {
        Some(command) => Some(command),
        None => inbox.recv().await,
    }
}
