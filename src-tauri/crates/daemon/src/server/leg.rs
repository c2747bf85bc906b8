//! The owner of one server's process and of what it sees.
//!
//! - What is mounted follows from the live grants and the leases of calls under way; nothing else adds a mount.
//! - Adding: mount, then tell, then wait until the server has understood. Removing: tell, then unmount with proof;
//!   a server that still holds a file is killed and started again.
//! - Every wait has a bound, after which the kernel and the server have the last word.

use super::process::{self, Hold, Process, ServerPrograms};
use super::pump::{Answered, Pump, PumpOptions};
use super::roots::{Shown, shown};
use super::{ServerError, control::Control};
use crate::audit::{Audit, Entry, Event};
use crate::config::Server;
use crate::grants::{GrantTable, StandingGrant};
use crate::mounts::{Need, Step, additions, removals};
use crate::wire::{Input, Response};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_sandbox::{Answer, ControlOp, Proof};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// How long the server may take to understand a change of its roots.
const ROOTS_BOUND: Duration = Duration::from_secs(5);

/// How long a server that has never asked for roots is waited for, once.
const FIRST_ASK_BOUND: Duration = Duration::from_millis(500);

/// How long a restarted server may take to answer its greeting.
const GREETING_BOUND: Duration = Duration::from_secs(30);

/// A server that ends sooner than this after its start is not started again at once.
const STEADY: Duration = Duration::from_secs(2);

/// The tool by which file servers tell what they accept.
const LIST_ALLOWED: &str = "list_allowed_directories";

/// What a leg needs.
pub struct LegOptions {
    /// The server's configuration.
    pub server: Server,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// The session sandbox directory.
    pub sandbox_dir: CanonicalPath,
    /// For looking at granted paths, and for the person's home.
    pub resolver: Resolver,
    /// The grants this server may use, out of all.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// The live grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// Lines for the client.
    pub client: mpsc::Sender<Vec<u8>>,
    /// Methods the client takes from a server.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// Whether the server has `list_allowed_directories`.
    pub lists_allowed: bool,
    /// The session's log file.
    pub log: mpsc::Sender<String>,
    /// The audit log.
    pub audit: Audit,
    /// The session's id, for the audit log.
    pub session: String,
}

/// How far the projection has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// The table of grants it follows from.
    pub grants_version: u64,
    /// How often the server was restarted because it still held something that was taken away.
    pub restarts: u64,
    /// What could not be mounted, and why.
    pub failed: BTreeMap<CanonicalPath, String>,
}

#[derive(Debug)]
pub(super) enum State {
    Starting,
    Up { pump: Pump, pid: u32, settled: bool },
    Down(String),
}

#[derive(Debug)]
pub(super) enum Command {
    Greeting(Box<RawValue>),
    Initialized,
    Start(oneshot::Sender<Result<(), String>>),
    Lease(Vec<Need>, oneshot::Sender<Result<u64, ServerError>>),
    Release(u64),
}

pub(super) fn start(
    options: LegOptions,
    inbox: mpsc::UnboundedReceiver<Command>,
) -> (watch::Receiver<State>, watch::Receiver<Applied>, watch::Receiver<Shown>) {
    let (state, state_seen) = watch::channel(State::Starting);
    let (applied, applied_seen) = watch::channel(Applied::default());
    let (roots, roots_seen) = watch::channel(Shown::default());
    let leg = Leg {
        options,
        state,
        applied,
        roots,
        running: None,
        mounted: Vec::new(),
        leases: BTreeMap::new(),
        next_lease: 0,
        greeting: None,
        initialized: false,
        asks_for_roots: None,
        started: Instant::now(),
        quick_ends: 0,
    };
    tokio::spawn(leg.run(inbox));
    (state_seen, applied_seen, roots_seen)
}

struct Running {
    pump: Pump,
    control: Option<(Box<Control>, process::Killer)>,
    ended: oneshot::Receiver<()>,
    /// Kept for its drop, which kills.
    _child: Option<Box<tokio::process::Child>>,
}

struct Leg {
    options: LegOptions,
    state: watch::Sender<State>,
    applied: watch::Sender<Applied>,
    roots: watch::Sender<Shown>,
    running: Option<Running>,
    mounted: Vec<Need>,
    leases: BTreeMap<u64, Vec<Need>>,
    next_lease: u64,
    greeting: Option<Box<RawValue>>,
    initialized: bool,
    /// Whether the server asks for roots; unknown at first.
    asks_for_roots: Option<bool>,
    started: Instant,
    quick_ends: u32,
}

impl Leg {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        self.bring_up().await;
        self.reconcile().await;
        let mut grants = self.options.grants.clone();
        loop {
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.obey(command).await,
                    None => return,
                },
                changed = grants.changed() => match changed {
                    Ok(()) => self.reconcile().await,
                    Err(_) => return,
                },
                () = ended(self.running.as_mut()) => self.fell().await,
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Greeting(params) => self.greeting = Some(params),
            Command::Initialized => {
                self.initialized = true;
                self.settle().await;
            }
            Command::Start(reply) => {
                if self.running.is_none() {
                    self.bring_up().await;
                }
                let outcome = match &*self.state.borrow() {
                    State::Down(reason) => Err(reason.clone()),
                    State::Up { .. } | State::Starting => Ok(()),
                };
                // Who no longer waits was cancelled.
                let _ = reply.send(outcome);
            }
            Command::Lease(needs, reply) => {
                let outcome = self.lease(needs).await;
                if let Err(Ok(id)) = reply.send(outcome) {
                    self.release(id).await;
                }
            }
            Command::Release(id) => self.release(id).await,
        }
    }

    async fn lease(&mut self, needs: Vec<Need>) -> Result<u64, ServerError> {
        self.next_lease += 1;
        let id = self.next_lease;
        self.leases.insert(id, needs.clone());
        self.reconcile().await;
        let failed = self.applied.borrow().failed.clone();
        match needs.iter().find_map(|n| failed.get_key_value(&n.path)) {
            None => Ok(id),
            Some((path, reason)) => {
                self.release(id).await;
                Err(ServerError::NotShown { path: path.as_str().to_owned(), reason: reason.clone() })
            }
        }
    }

    async fn release(&mut self, id: u64) {
        if self.leases.remove(&id).is_some() {
            self.reconcile().await;
        }
    }

    /// Makes what is mounted and told what grants and leases say.
    async fn reconcile(&mut self) {
        let table = self.options.grants.borrow().clone();
        let version = self.project(&table);
        let wanted = self.roots.borrow().needs.clone();
        let mut failed = BTreeMap::new();
        let mut held = false;
        held |= self.take(additions(&self.mounted, &wanted), &mut failed).await;
        let told = self.tell();
        held |= self.take(removals(&self.mounted, &wanted), &mut failed).await;
        let restarts = u64::from(held) + self.applied.borrow().restarts;
        if held {
            self.restart("it still held something that was taken back").await;
        } else if let Some(roots_version) = told {
            self.understood(roots_version).await;
        }
        self.applied.send_replace(Applied { grants_version: version, restarts, failed });
    }

    /// Works out what is to be seen; gives the version of the grants it follows from.
    fn project(&mut self, table: &GrantTable) -> u64 {
        let grants: Vec<StandingGrant> =
            table.grants.iter().filter(|g| (self.options.may_use)(g)).cloned().collect();
        let leases: Vec<Need> = self.leases.values().flatten().cloned().collect();
        let new = shown(&self.options.sandbox_dir, &grants, &leases, &self.options.resolver);
        self.roots.send_if_modified(|old| {
            let paths = |s: &Shown| s.roots.iter().map(|r| r.path.clone()).collect::<Vec<_>>();
            let version = if paths(old) == paths(&new) { old.version } else { old.version + 1 };
            *old = Shown { version, ..new };
            true
        });
        table.version
    }

    /// Carries out steps; tells whether something that was taken away is still held.
    async fn take(&mut self, steps: Vec<Step>, failed: &mut BTreeMap<CanonicalPath, String>) -> bool {
        let Some((control, _)) = self.running.as_mut().and_then(|r| r.control.as_mut()) else {
            return false;
        };
        let mut held = false;
        for step in steps {
            let (op, path) = match &step {
                Step::Add(need) => (ControlOp::Add(process::mount(need)), &need.path),
                Step::Remove(path) => (ControlOp::Remove { path: path.as_str().to_owned() }, path),
            };
            match (control.ask(op).await, &step) {
                (Ok(Answer::Added), Step::Add(need)) => self.mounted.push(need.clone()),
                (Ok(Answer::Removed { proof }), Step::Remove(path)) => {
                    self.mounted.retain(|m| m.path != *path);
                    held |= proof == Proof::Held;
                }
                (Ok(Answer::Refused { message, .. }), Step::Add(_)) => {
                    failed.insert(path.clone(), message);
                }
                // Without proof that it is gone the server is started anew.
                (Ok(_) | Err(_), Step::Remove(_)) => held = true,
                (Ok(other), Step::Add(_)) => {
                    failed.insert(path.clone(), format!("the sandbox answered {other:?}"));
                }
                (Err(problem), Step::Add(_)) => {
                    failed.insert(path.clone(), problem);
                }
            }
        }
        held
    }

    /// Tells the server that its roots changed, if they did since it last heard; gives their version.
    fn tell(&self) -> Option<u64> {
        let version = self.roots.borrow().version;
        let pump = &self.running.as_ref()?.pump;
        if !self.initialized || *pump.told.borrow() == version || self.asks_for_roots == Some(false) {
            return None;
        }
        if self.asks_for_roots.is_some() {
            pump.send(crate::wire::notification_line("notifications/roots/list_changed", None));
        }
        Some(version)
    }

    /// Waits until the server has understood its roots, or a bound has passed.
    async fn understood(&mut self, version: u64) {
        let Some(pump) = self.running.as_ref().map(|r| r.pump.clone()) else { return };
        let bound = if self.asks_for_roots.is_none() { FIRST_ASK_BOUND } else { ROOTS_BOUND };
        let mut told = pump.told.clone();
        let asked = tokio::time::timeout(bound, told.wait_for(|v| *v >= version)).await;
        match (asked.is_ok_and(|a| a.is_ok()), self.asks_for_roots) {
            (true, _) => self.asks_for_roots = Some(true),
            (false, None) => self.asks_for_roots = Some(false),
            (false, Some(_)) => {
                self.log(format!("the server did not ask for its new roots within {bound:?}")).await
            }
        }
        if self.options.lists_allowed && self.asks_for_roots == Some(true) {
            self.lists_all(&pump).await;
        }
    }

    /// Asks the server itself until it names every root: that it was told is not yet that it has understood.
    async fn lists_all(&self, pump: &Pump) {
        let shown = self.roots.borrow().clone();
        let deadline = Instant::now() + ROOTS_BOUND;
        let mut pause = Duration::from_micros(500);
        let params =
            serde_json::value::to_raw_value(&serde_json::json!({ "name": LIST_ALLOWED, "arguments": {} }))
                .ok();
        while Instant::now() < deadline {
            let asked = pump.request("tools/call", params.as_deref());
            let Ok(answer) = tokio::time::timeout_at(deadline, asked.answer()).await else { break };
            match answer {
                Answered::Response(Response::Result(result)) => {
                    let text = result_text(&result);
                    if shown.is_told_by(&text.lines().map(str::trim).collect::<Vec<_>>()) {
                        return;
                    }
                }
                Answered::Response(Response::Error(_)) | Answered::Failed(_) => return,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        self.log(format!("the server did not accept all of its roots within {ROOTS_BOUND:?}")).await;
    }

    /// The first time the server is told of roots.
    async fn settle(&mut self) {
        if self.running.is_none() {
            return;
        }
        if let Some(version) = self.tell() {
            self.understood(version).await;
        }
        self.state.send_if_modified(|state| match state {
            State::Up { settled, .. } => {
                *settled = true;
                true
            }
            State::Starting | State::Down(_) => false,
        });
    }

    /// Starts the process with everything mounted that is to be seen, and greets it if the client has.
    async fn bring_up(&mut self) {
        if self.quick_ends >= 3 && self.started.elapsed() < STEADY * self.quick_ends.min(15) {
            let reason =
                format!("it ended {} times right after its start; it is tried again later", self.quick_ends);
            self.state.send_replace(State::Down(reason));
            return;
        }
        self.state.send_replace(State::Starting);
        self.started = Instant::now();
        let table = self.options.grants.borrow().clone();
        self.project(&table);
        let needs = self.roots.borrow().needs.clone();
        let o = &self.options;
        let home = o.resolver.home().as_path();
        match process::start(&o.server, &o.programs, &o.sandbox_dir, &needs, home).await {
            Ok(process) => self.came_up(process, needs).await,
            Err(reason) => self.down(reason).await,
        }
    }

    async fn came_up(&mut self, process: Process, needs: Vec<Need>) {
        let Process { pid, stdin, stdout, stderr, hold } = process;
        tokio::spawn(copy_stderr(stderr, self.options.log.clone()));
        let (pump, ended) = Pump::start(PumpOptions {
            stdin,
            stdout,
            client: self.options.client.clone(),
            roots: self.roots.subscribe(),
            client_takes: self.options.client_takes.clone(),
            noise: self.options.log.clone(),
        });
        let (control, child) = match hold {
            Hold::Sandbox(control, killer) => (Some((control, killer)), None),
            Hold::Plain(child) => (None, Some(child)),
        };
        self.mounted = if control.is_some() { needs } else { Vec::new() };
        self.running = Some(Running { pump: pump.clone(), control, ended, _child: child });
        self.record(format!("the server {} started", self.options.server.name)).await;
        if let Some(greeting) = self.greeting.clone().filter(|_| self.initialized) {
            if let Err(reason) = greet(&pump, &greeting).await {
                self.running = None;
                self.down(reason).await;
                return;
            }
            self.state.send_replace(State::Up { pump, pid, settled: false });
            self.settle().await;
        } else {
            self.state.send_replace(State::Up { pump, pid, settled: false });
        }
    }

    /// The process ended by itself.
    async fn fell(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let status = match running.control.as_mut() {
            Some((control, _)) => {
                tokio::time::timeout(Duration::from_millis(500), control.exit()).await.ok().flatten()
            }
            None => None,
        };
        drop(running);
        self.quick_ends = if self.started.elapsed() < STEADY { self.quick_ends + 1 } else { 0 };
        let how = status.map_or_else(|| "it ended".to_owned(), |s| format!("it ended with status {s}"));
        self.down(how).await;
    }

    async fn restart(&mut self, why: &str) {
        self.running = None;
        self.mounted.clear();
        self.record(format!("the server {} was stopped: {why}", self.options.server.name)).await;
        self.quick_ends = 0;
        self.bring_up().await;
    }

    async fn down(&mut self, reason: String) {
        self.mounted.clear();
        self.log(format!("the server is down: {reason}")).await;
        self.record(format!("the server {} is not running: {reason}", self.options.server.name)).await;
        self.state.send_replace(State::Down(reason));
    }

    async fn record(&self, summary: String) {
        let mut entry = Entry::new(Event::Server, summary);
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

async fn ended(running: Option<&mut Running>) {
    match running {
        // Either way the conversation is over.
        Some(running) => drop((&mut running.ended).await),
        None => std::future::pending().await,
    }
}

/// Greets a restarted server as the client greeted the first one.
async fn greet(pump: &Pump, params: &RawValue) -> Result<(), String> {
    let asked = pump.request("initialize", Some(params));
    match tokio::time::timeout(GREETING_BOUND, asked.answer()).await {
        Ok(Answered::Response(Response::Result(_))) => {
            pump.send(crate::wire::notification_line("notifications/initialized", None));
            Ok(())
        }
        Ok(Answered::Response(Response::Error(error))) => {
            Err(format!("it refused the greeting: {}", error.get()))
        }
        Ok(Answered::Failed(reason)) => Err(reason),
        Err(_) => Err(format!("it did not answer the greeting within {} s", GREETING_BOUND.as_secs())),
    }
}

/// All text of a tool result.
fn result_text(result: &RawValue) -> String {
    let value: serde_json::Value = serde_json::from_str(result.get()).unwrap_or_default();
    let items = value.get("content").and_then(serde_json::Value::as_array);
    let texts = items.into_iter().flatten().filter_map(|item| item.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
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
