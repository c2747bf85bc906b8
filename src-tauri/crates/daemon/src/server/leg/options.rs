//! What a server's leg is made of.

use crate::autostart::Autostart;
use crate::config::Server;
use crate::containment::Surroundings;
use crate::grants::{GrantTable, StandingGrant};
use crate::last_words::Awaited;
use crate::law::Law;
use crate::network::Network;
use crate::server::process::{Containment, ServerPrograms};
use crate::server::pump::Outgoing;
use ironcurtain_audit::Audit;
use ironcurtain_paths::Resolver;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};

/// What a leg needs.
pub struct LegOptions {
    /// The server's configuration.
    pub server: Server,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// How it is run; or why it is not.
    pub containment: Result<Containment, String>,
    /// What lets it reach anything, if anything does.
    pub network: Option<Arc<Network>>,
    /// Where its sandbox is made.
    pub around: Surroundings,
    /// For looking at granted paths.
    pub resolver: Resolver,
    /// The grants this server may use, out of all.
    pub may_use: Box<dyn Fn(&StandingGrant) -> bool + Send + Sync>,
    /// The live grants.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// What calls are judged by.
    pub laws: watch::Receiver<Arc<Law>>,
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
    /// Until the leg is gone, the trusted process does not end.
    pub(crate) _awaited: Awaited,
}
