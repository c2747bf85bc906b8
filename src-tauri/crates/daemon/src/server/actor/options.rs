//! Parameters of a server's actor.

use crate::identity_gate::IdentityGate;
use crate::metrics::Metrics;
use crate::network::ServerNetwork;
use crate::server::process::Containment;
use crate::server::start_error::ContainmentError;
use crate::session_log::SessionLog;
use ironcurtain_audit::Audit;
use ironcurtain_autostart::Autostart;
use ironcurtain_config::{PolicySnapshot, Server};
use ironcurtain_containment::{RefusesProgram, ServerPrograms, Surroundings};
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::server::SamplingRequest;
use ironcurtain_mcp::wire::{Allowance, KnownVersions, Outbox};
use ironcurtain_paths::Resolver;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Parameters to start an actor with.
pub struct ActorOptions {
    /// Configuration of the server.
    pub server: Server,
    /// Paths of our helper programs.
    pub programs: ServerPrograms,
    /// Containment of the server, or why it cannot run.
    pub containment: Result<Containment, ContainmentError>,
    /// Network of the server, if it has one.
    pub network: Option<Arc<ServerNetwork>>,
    /// Folders and protected paths around the sandbox.
    pub around: Surroundings,
    /// Resolves granted paths.
    pub resolver: Resolver,
    /// Selects the grants that this server may use.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// Checks that data under the server's name belongs to this server.
    pub(crate) gate: IdentityGate,
    /// Rejects programs that another server can modify.
    pub refuses_program: Box<RefusesProgram>,
    /// Live grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// Policy, updated as it changes.
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// Outgoing messages to the client.
    pub client: Outbox,
    /// Memory budget for messages that the client has not read.
    pub memory: Allowance,
    /// Server methods that the client accepts.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// Known protocol versions of server programs.
    pub versions: KnownVersions,
    /// Receives the server's sampling requests.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// Log of the session.
    pub log: SessionLog,
    /// Audit log.
    pub audit: Audit,
    /// Metrics.
    pub(crate) metrics: Metrics,
    /// Watches for autostart files.
    pub(crate) autostart: Autostart,
    /// Session id, for the audit log.
    pub session: String,
    /// Keeps the trusted process from exiting before the actor has.
    pub(crate) waited_for: TaskTrackerToken,
    /// Cancelled once the server may start.
    pub may_start: CancellationToken,
}
