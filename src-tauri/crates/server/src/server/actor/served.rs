//! Serves the files and ports of a running server whose entry has `"access": "ask"`.
//!
//! - The state is dropped with the process. The next process gets a new view, without any access that was allowed once.

use crate::network::{LocalServices, ServerNetwork, serve_ports};
use crate::run_notes::{NotesInbox, RunNotes};
use crate::served_files::{
    AccessCounts, CallsInProgress, FilesInbox, ProfileGrants, SandboxOrder, ServedFiles, ServedFilesOptions,
    ServingFiles,
};
use crate::server::process::{FileApprovalConnections, ProcessGuard};
use ironcurtain_consent::Principal;
use ironcurtain_containment::HiddenPaths;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::Resolver;
use ironcurtain_protocol::{RunAsk, RunNote};
use ironcurtain_services::{Services, SessionLog};
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, JoinSet};

/// Dependencies for asking the user about a server's files.
pub struct AskingOptions {
    /// Services that all sessions share.
    pub services: Services,
    /// Principal that questions name: the client and the server.
    pub principal: Arc<Principal>,
    /// Returns the calls that questions list.
    pub calls: Arc<CallsInProgress>,
    /// Access counts of the session.
    pub counts: Arc<AccessCounts>,
}

/// Parts of the session that a process's files depend on.
pub(super) struct SessionParts<'a> {
    pub(super) session: &'a str,
    pub(super) resolver: &'a Resolver,
    /// Writable folders that are mounted from the start.
    pub(super) mounted: Vec<MountRequest>,
    pub(super) closed: HiddenPaths,
    pub(super) log: SessionLog,
}

/// File and port access of one process. Dropping this value withdraws its questions.
pub(super) struct ServedProcess {
    files: Arc<ServedFiles>,
    serving: ServingFiles,
    /// Orders from the task that applies changed grants.
    orders: UnboundedReceiver<SandboxOrder>,
    local: Option<Arc<LocalServices>>,
    _ports: JoinSet<()>,
    logging: AbortHandle,
}

/// Event that the server's actor must handle.
pub(super) enum FilesEvent {
    /// An order must be sent to the supervisor.
    Order(SandboxOrder),
    /// The process must be stopped. Contains the reason.
    Stop(String),
}

impl ServedProcess {
    /// Starts serving a process's files and ports.
    pub(super) fn start(
        options: &AskingOptions,
        SessionParts { session, resolver, mounted, closed, log }: SessionParts<'_>,
        network: Option<&ServerNetwork>,
        (pid, connections): (u32, FileApprovalConnections),
    ) -> io::Result<Self> {
        let FileApprovalConnections { view, services } = connections;
        view.set_nonblocking(true)?;
        let view = UnixStream::from_std(view)?;
        let local = network.and_then(ServerNetwork::local);
        let ports = match services {
            Some(link) => serve_ports(local.clone(), link, Vec::new())?,
            None => JoinSet::new(),
        };
        let (notes, denials) = RunNotes::new(RunAsk::Default);
        let logging = tokio::spawn(log_denials(denials, log)).abort_handle();
        let calls = options.calls.clone();
        let (files, FilesInbox { for_view, orders }) = ServedFiles::new(ServedFilesOptions {
            id: session.to_owned(),
            principal: options.principal.clone(),
            services: options.services.clone(),
            resolver: resolver.clone(),
            notes,
            profile: ProfileGrants::default(),
            working_folder: None,
            mounted: mounted.into_iter().map(|need| need.path).collect(),
            closed,
            pid,
            calls: Box::new(move || calls()),
            is_frozen_when_paused: false,
            counts: options.counts.clone(),
        });
        let serving = ServingFiles::start(&files, view, for_view);
        Ok(Self { files, serving, orders, local, _ports: ports, logging })
    }

    /// Waits until the view no longer uses grants older than this version. Returns `false` if the process must be
    /// stopped to ensure that.
    pub(super) async fn wait_until_enforced(&mut self, version: u64, guard: &mut ProcessGuard) -> bool {
        let Self { files, serving, orders, .. } = self;
        loop {
            tokio::select! {
                () = files.wait_until_enforced(version) => return true,
                () = files.wait_for_end() => return false,
                // The sandbox exits when its view does.
                () = serving.disconnected() => return true,
                Some(order) = orders.recv() => execute_order(guard, order).await,
            }
        }
    }

    /// Returns the next event.
    pub(super) async fn event(&mut self) -> FilesEvent {
        tokio::select! {
            Some(order) = self.orders.recv() => FilesEvent::Order(order),
            () = self.files.wait_for_end() => {
                let why = self.files.end_reason();
                FilesEvent::Stop(why.unwrap_or_else(|| "it still had access that was revoked".to_owned()))
            }
        }
    }
}

impl Drop for ServedProcess {
    fn drop(&mut self) {
        self.logging.abort();
        self.files.end();
        self.files.mark_exited();
        self.local.iter().for_each(|local| local.close());
    }
}

/// Waits for the next event of a process's files. Never completes if the process has no served files.
pub(super) async fn files_event(served: Option<&mut ServedProcess>) -> FilesEvent {
    match served {
        Some(served) => served.event().await,
        None => std::future::pending().await,
    }
}

/// Writes the denied accesses to the session's log, with the reasons.
async fn log_denials(mut notes: NotesInbox, log: SessionLog) {
    loop {
        match notes.next().await {
            RunNote::Denied { path, why } => {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                log.write(format!("the server was denied `{path}`{why}"));
            }
            RunNote::Started { .. }
            | RunNote::Waiting { .. }
            | RunNote::Answered
            | RunNote::Exited { .. } => {}
        }
    }
}

/// Carries out an order to the supervisor.
pub(super) async fn execute_order(guard: &mut ProcessGuard, (order, answer): SandboxOrder) {
    if let ProcessGuard::Native { control, .. } = guard {
        // Ignore the error: the receiver is dropped only while the process is ending.
        let _ = answer.send(control.execute(order).await);
    }
}
