//! Options for starting a server's actor.

use super::served::AskingOptions;
use crate::network::ServerNetwork;
use crate::server::process::Containment;
use crate::server::start_error::ContainmentError;
use ironcurtain_audit::Audit;
use ironcurtain_autostart::Autostart;
use ironcurtain_config::{PolicySnapshot, Server};
use ironcurtain_containment::{DeniedReads, RefusesProgram, SandboxContext, ServerPrograms};
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::server::SamplingRequest;
use ironcurtain_mcp::wire::{Allowance, KnownVersions, Outbox};
use ironcurtain_paths::Resolver;
use ironcurtain_services::{IdentityGate, Metrics, SessionLog};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Options for starting a server's actor.
pub struct ActorOptions {
    /// The server's entry in `mcp-servers.json`.
    pub server: Server,
    /// Paths of IronCurtain's helper programs, and the secret store.
    pub programs: ServerPrograms,
    /// Containment for the server, or the reason why it cannot be contained.
    pub containment: Result<Containment, ContainmentError>,
    /// Network access of the server, or `None` if it has none.
    pub network: Option<Arc<ServerNetwork>>,
    /// Session folder and protected paths.
    pub sandbox_context: SandboxContext,
    /// Paths that the server's entry makes unreadable. They are never mounted.
    pub denied: Arc<DeniedReads>,
    /// Resolver that checks granted paths before they are mounted.
    pub resolver: Resolver,
    /// Returns `true` if this server may use a grant.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// Refuses the server if grants and secrets under its name belong to a different program.
    pub gate: IdentityGate,
    /// Refuses a program that another server can modify.
    pub refuses_program: Box<RefusesProgram>,
    /// Receiver for the grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// Receiver for the policy.
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// Queue of messages to the client.
    pub client: Outbox,
    /// Memory budget for messages that the client has not read.
    pub memory: Allowance,
    /// Methods of server requests that the client supports.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// Protocol versions that each server program has used before.
    pub versions: KnownVersions,
    /// Receives the server's sampling requests.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// Log file of the session.
    pub log: SessionLog,
    /// Audit log, which records starts and exits of the server.
    pub audit: Audit,
    /// The daemon's counters and histograms.
    pub metrics: Metrics,
    /// Watches the sandbox's writable folders for autostart files.
    pub autostart: Autostart,
    /// Identifier of the session, for the audit log.
    pub session: String,
    /// Token that keeps the daemon running until the actor has exited.
    pub shutdown_token: TaskTrackerToken,
    /// Dependencies for asking the user about the server's files, or `None` if grants are mounted instead.
    pub asking: Option<AskingOptions>,
    /// Cancelled once the server may start.
    pub may_start: CancellationToken,
}
