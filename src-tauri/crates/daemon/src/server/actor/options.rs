//! The parts of a server's actor.

use crate::autostart::Autostart;
use crate::containment::{RefusesProgram, ServerPrograms, Surroundings};
use crate::metrics::Metrics;
use crate::network::ServerNetwork;
use crate::policy_snapshot::PolicySnapshot;
use crate::server::process::Containment;
use crate::server::start_error::ContainmentError;
use crate::server_identity::IdentityGate;
use crate::session_log::SessionLog;
use ironcurtain_audit::Audit;
use ironcurtain_config::Server;
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_mcp::server::SamplingRequest;
use ironcurtain_mcp::wire::{Allowance, KnownVersions, Outbox};
use ironcurtain_paths::Resolver;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The parts that an actor is started with.
pub struct ActorOptions {
    /// The server's configuration.
    pub server: Server,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// The containment it runs in; or why it does not run.
    pub containment: Result<Containment, ContainmentError>,
    /// The network that it reaches; nothing when it reaches none.
    pub network: Option<Arc<ServerNetwork>>,
    /// The folders and protected paths around its sandbox.
    pub around: Surroundings,
    /// For looking at granted paths.
    pub resolver: Resolver,
    /// The grants this server may use, out of all.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// Checks that what is under the server's name is its own.
    pub(crate) gate: IdentityGate,
    /// Refuses to start a program that another server may change.
    pub refuses_program: Box<RefusesProgram>,
    /// The live grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// The policy, followed as it changes.
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// The way to the client.
    pub client: Outbox,
    /// The memory for what the client has not read yet.
    pub memory: Allowance,
    /// Methods the client takes from a server.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// The eras of server programs.
    pub versions: KnownVersions,
    /// Takes what the server wants the client's model to answer.
    pub sampling: mpsc::UnboundedSender<SamplingRequest>,
    /// The session's log.
    pub log: SessionLog,
    /// The audit log.
    pub audit: Audit,
    /// Figures of what happens.
    pub(crate) metrics: Metrics,
    /// Who watches for files that run later.
    pub(crate) autostart: Autostart,
    /// The session's id, for the audit log.
    pub session: String,
    /// Until the actor is gone, the trusted process does not end.
    pub(crate) waited_for: TaskTrackerToken,
    /// Cancelled once the server may start.
    pub may_start: CancellationToken,
}
