//! Runs: programs that the user starts in a sandbox, with the user's own terminal and files.
//!
//! - The working folder is mounted. All other files are served ([`ServedFiles`]).
//! - The only network access is through a proxy that asks the user about each host.
//! - A run owns its sandbox and the grants for its session, and releases both when it ends.

mod denying;
mod freeze;
mod network;
mod open;
mod serve;
mod ssh_agent;
mod ssh_upstream;
mod tool_calls;
mod tools;

pub(crate) use denying::DenyAllQuestions;
use ironcurtain_consent::{Principal, shown_client};
use ironcurtain_grants::{Client, GrantSubject};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_protocol::{RootView, RunAsk, SessionView};
use ironcurtain_server::always_accessible;
use ironcurtain_server::network::ServerNetwork;
use ironcurtain_server::served_files::ServedFiles;
use ironcurtain_services::Services;
use ironcurtain_visible as visible;
pub(crate) use open::RunOptions;
use std::sync::Arc;
use std::sync::atomic::Ordering;
pub(crate) use tools::SERVER_NAME as BUILT_IN_SERVER;

/// Program that runs in a sandbox.
pub(crate) struct Run {
    /// Session id, unique to this run.
    pub(crate) id: String,
    /// The program as a principal with the name `run:NAME`.
    pub(crate) principal: Arc<Principal>,
    services: Services,
    pub(crate) files: Arc<ServedFiles>,
    network: Arc<ServerNetwork>,
    /// Working folder.
    folder: CanonicalPath,
    pid: u32,
    started_ms: u64,
    /// Limitation of this machine that affects the run, if any.
    limitation: Option<String>,
}

impl Run {
    /// Requests termination of the run. Does not wait for the run to end.
    pub(crate) fn end(&self) {
        self.files.end();
    }

    /// Returns `true` if termination of the run was requested.
    pub(crate) fn is_ending(&self) -> bool {
        self.files.is_ending()
    }

    /// Returns the destination of the run's questions.
    pub(crate) fn ask(&self) -> RunAsk {
        self.files.notes.ask()
    }

    /// Completes when termination of the run is requested.
    pub(crate) async fn wait_for_end(&self) {
        self.files.wait_for_end().await;
    }

    /// Waits until neither the file view nor a connection uses grants older than this version, or the run has ended.
    pub(crate) async fn wait_for_revocation(&self, version: u64) {
        let revoked = async {
            let ((), is_cut_off) =
                tokio::join!(self.files.wait_until_enforced(version), self.network.enforce_grants());
            if !is_cut_off {
                tracing::error!(
                    run = self.id,
                    "a connection to a revoked host was not closed in time; terminating the run"
                );
                self.end();
                self.files.wait_for_exit().await;
            }
        };
        tokio::select! {
            () = revoked => {}
            () = self.files.wait_for_exit() => {}
        }
    }

    /// Returns the client for sessions that the run's programs open. The programs choose `label` themselves.
    pub(crate) fn client(&self, label: Option<String>) -> Client {
        let mut client = self.principal.client.clone();
        client.view.label = label;
        client
    }

    /// Returns `true` if grants for this subject apply to the run.
    pub(crate) fn may_use(&self, subject: &GrantSubject) -> bool {
        self.files.may_use(subject)
    }

    /// Returns the paths that the run's profile permits, except those that were revoked.
    fn profile_roots(&self) -> Vec<RootView> {
        let profile = &self.files.profile;
        let source = format!("the profile {}", visible::line(&profile.plan.profile.name));
        let open = profile.open(&self.services.grants.now()).into_iter();
        open.map(|(path, writable)| {
            always_accessible(visible::isolated_path(path.as_str()), &source, writable)
        })
        .collect()
    }

    /// Returns the run for display.
    pub(crate) fn view(&self) -> SessionView {
        let path = visible::isolated_path(self.folder.as_str());
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
            sandbox_dir: self.folder.as_str().to_owned(),
            allowed: self.files.counts.allowed.load(Ordering::Relaxed),
            denied: self.files.counts.denied.load(Ordering::Relaxed),
            asked: self.files.counts.asked.load(Ordering::Relaxed),
            roots: self.files.working_folder().map(|_| root()).into_iter().collect(),
            always: self.profile_roots(),
            hosts: self.network.reachable(),
            left: self.services.autostart.undecided(&self.id),
            paused: self.services.broker.stops().is_paused(&self.id),
        }
    }
}
