//! Runs: programs that the user starts in a sandbox, with the user's own terminal and files.
//!
//! - The working folder is mounted, and so are folders in which the run may do everything. The network is a proxy that asks
//!   about each host. Any other file is opened only after the access was judged by the same rules, questions and grants as a
//!   call.
//! - INVARIANT: an access is permitted without a question only while judging it again would allow it.
//! - A run owns its sandbox and the grants for its session, and releases both when it ends.

mod asking;
mod denying;
mod freeze;
mod holders;
mod judge;
mod link;
mod mounts;
mod network;
mod open;
mod permissions;
mod ports;
mod profile;
mod raise;
mod searching;
mod serve;
mod ssh_agent;
mod ssh_upstream;
mod tool_calls;
mod tools;

use crate::network::ServerNetwork;
use crate::run_notes::RunNotes;
use crate::services::Services;
use asking::AskedFolders;
pub(crate) use denying::DenyingRun;
use ironcurtain_consent::{Principal, shown_client};
use ironcurtain_grants::{Client, GrantSubject};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_protocol::{RootView, RunAsk, SessionView};
use ironcurtain_sandbox::file_access::ToView;
use ironcurtain_visible as visible;
pub(crate) use open::RunOptions;
use permissions::Permissions;
use profile::{ProfileGrants, SandboxOrder};
use searching::Searches;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
pub(crate) use tools::NAME as BUILT_IN_SERVER;

/// Program that runs in a sandbox.
pub(crate) struct Run {
    /// Session id, unique to this run.
    pub(crate) id: String,
    /// The program as a principal with the name `run:NAME`.
    pub(crate) principal: Arc<Principal>,
    services: Services,
    resolver: Resolver,
    network: Arc<ServerNetwork>,
    /// Working folder, and whether it is mounted.
    folder: (CanonicalPath, bool),
    pid: u32,
    started_ms: u64,
    counts: Counts,
    notes: Arc<RunNotes>,
    permissions: Permissions,
    profile: ProfileGrants,
    to_sandbox: mpsc::UnboundedSender<SandboxOrder>,
    /// Number of the newest folder that the view has reserved for a mount.
    reserved: watch::Sender<u64>,
    searches: Searches,
    asked: AskedFolders,
    to_view: mpsc::UnboundedSender<ToView>,
    end: CancellationToken,
    /// Reason that IronCurtain ended the run, if it did.
    ended_because: OnceLock<String>,
    /// Cancelled once the sandbox has exited.
    gone: CancellationToken,
}

#[derive(Default)]
struct Counts {
    allowed: AtomicU64,
    denied: AtomicU64,
    asked: AtomicU64,
}

impl Run {
    /// Requests termination of the run. Does not wait for the run to end.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Ends the run and reports the reason to its starter.
    fn end_because(&self, why: String) {
        // The first reason counts.
        let _ = self.ended_because.set(why);
        self.end();
    }

    /// Returns `true` if the run is ending.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Returns the place where questions of the run are answered.
    pub(crate) fn ask(&self) -> RunAsk {
        self.notes.ask()
    }

    /// Completes when the run begins to end.
    pub(crate) async fn ending(&self) {
        self.end.cancelled().await;
    }

    /// Returns the client of the sessions that programs of the run open. The label is their own.
    pub(crate) fn client(&self, label: Option<String>) -> Client {
        let mut client = self.principal.client.clone();
        client.view.label = label;
        client
    }

    /// Returns `true` if grants for this subject apply to the run.
    pub(crate) fn may_use(&self, subject: &GrantSubject) -> bool {
        self.principal.is_covered_by(subject)
    }

    /// Returns the run for display.
    pub(crate) fn view(&self) -> SessionView {
        let (folder, is_mounted) = &self.folder;
        let path = visible::whole_path(folder.as_str());
        let source = "the folder that the run was started in".to_owned();
        let access = ["read", "write", "delete"].map(str::to_owned).into();
        let root = || RootView { path: path.clone(), source, grant: None, access };
        SessionView {
            id: self.id.clone(),
            client: shown_client(&self.principal.client_view()),
            server: visible::line(&self.principal.server),
            connection: None,
            run: None,
            trouble: None,
            restarts: 0,
            sandboxed: true,
            remote: false,
            server_pid: Some(self.pid),
            started_ms: self.started_ms,
            sandbox_dir: folder.as_str().to_owned(),
            allowed: self.counts.allowed.load(Ordering::Relaxed),
            denied: self.counts.denied.load(Ordering::Relaxed),
            asked: self.counts.asked.load(Ordering::Relaxed),
            roots: is_mounted.then(root).into_iter().collect(),
            hosts: self.network.reachable(),
            left: self.services.autostart.undecided(&self.id),
            paused: self.services.broker.stops().is_paused(&self.id),
        }
    }
}
