//! What a server's actor is made of.

use crate::autostart::Autostart;
use crate::config::Server;
use crate::containment::{RefusesProgram, ServerPrograms, Surroundings};
use crate::grants::{GrantTable, StandingGrant};
use crate::network::ServerNetwork;
use crate::policy_snapshot::PolicySnapshot;
use crate::server::connection::Outgoing;
use crate::server::process::Containment;
use crate::server::start_error::ContainmentError;
use ironcurtain_audit::Audit;
use ironcurtain_paths::Resolver;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// What an actor needs.
pub struct ActorOptions {
    /// The server's configuration.
    pub server: Server,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// The way in which it is run; or why it is not.
    pub containment: Result<Containment, ContainmentError>,
    /// What lets it reach anything, if anything does.
    pub network: Option<Arc<ServerNetwork>>,
    /// The place where its sandbox is made.
    pub around: Surroundings,
    /// For looking at granted paths.
    pub resolver: Resolver,
    /// The grants this server may use, out of all.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// Refuses to start a program that another server may change.
    pub refuses_program: Box<RefusesProgram>,
    /// The live grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// What calls are judged by.
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// Lines for the client.
    pub client: mpsc::Sender<Outgoing>,
    /// The memory for what the client has not read yet, in KiB.
    pub memory: Arc<Semaphore>,
    /// Methods the client takes from a server.
    pub client_takes: watch::Receiver<HashSet<String>>,
    /// The session's log file.
    pub log: mpsc::Sender<String>,
    /// The audit log.
    pub audit: Audit,
    /// Who watches for files that run later.
    pub(crate) autostart: Autostart,
    /// The session's id, for the audit log.
    pub session: String,
    /// Until the actor is gone, the trusted process does not end.
    pub(crate) _waited_for: TaskTrackerToken,
}
