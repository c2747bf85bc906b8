//! The services shared by all sessions: settings, policy, audit log, grants and the prompts to the user.
//!
//! - Independent of sessions and servers.

use crate::changed_tools::ChangedTools;
use crate::health::Health;
use crate::identity_gate::{Identities, IdentityGate};
use crate::machine::Machine;
use crate::metrics::Metrics;
use crate::record_head::RecordHead;
use crate::reload::Writable;
use crate::session_log::SessionLogs;
use crate::shutdown::Shutdown;
use crate::workspaces::Workspaces;
use ironcurtain_audit::Audit;
use ironcurtain_autostart::Autostart;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, PolicySnapshot, Server, SessionSettings};
use ironcurtain_consent::{Broker, Exchange, LateAsking, Principal, QuestionLimits};
use ironcurtain_containment::{ProgramError, ServerPrograms};
use ironcurtain_grants::Grants;
use ironcurtain_mcp::wire::{KnownInstructions, KnownVersions, Memory};
use ironcurtain_server_identity::KeptUnderName;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Services shared by all sessions.
#[derive(Clone)]
pub struct Services {
    /// IronCurtain's directories.
    pub home: Home,
    /// Settings and servers of new sessions.
    pub config: Config,
    /// The current policy; see [`Services::snapshot`].
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// The current settings and servers, which may be newer than those of a running session.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    pub audit: Audit,
    /// The newest audit entry, as stored in the keyring.
    pub(crate) record_head: RecordHead,
    pub grants: Grants,
    /// Prompts the user.
    pub broker: Broker,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// The machine's ability to create sandboxes.
    pub machine: Machine,
    /// Current problems.
    pub health: Health,
    /// Recorded identities of server programs.
    pub(crate) identities: Identities,
    /// Servers with suspended tools.
    pub(crate) changed_tools: ChangedTools,
    /// Workspaces that the user declined.
    pub(crate) workspaces: Workspaces,
    /// Prometheus metrics.
    pub(crate) metrics: Metrics,
    /// Watcher for autostart files.
    pub(crate) autostart: Autostart,
    /// Session logs.
    pub(crate) logs: SessionLogs,
    /// Protocol versions that server programs speak.
    pub(crate) versions: KnownVersions,
    /// Instructions that server programs returned.
    pub(crate) instructions: KnownInstructions,
    /// Memory for messages in transit.
    pub memory: Memory,
    /// State of the shutdown.
    pub(crate) shutdown: Shutdown,
    /// Incremented whenever something shown to the user changes.
    pub changes: watch::Sender<u64>,
}

impl Services {
    /// Notifies user interfaces of a change.
    pub fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// Returns the consent channel for this principal.
    #[must_use]
    pub fn exchange<'a>(&'a self, principal: &'a Principal) -> Exchange<'a> {
        let Self { audit, broker, grants, changes, metrics, .. } = self;
        let limits = self.question_limits();
        Exchange { principal, audit, broker, grants, changes, metrics, limits }
    }

    /// Returns the consent channel for a question that timed out.
    #[must_use]
    pub fn late_asking(&self) -> LateAsking<'_> {
        let Self { audit, broker, changes, metrics, .. } = self;
        LateAsking { audit, broker, changes, metrics, limits: self.question_limits() }
    }

    /// Returns the limits on how often a client may prompt.
    fn question_limits(&self) -> QuestionLimits {
        QuestionLimits {
            per_minute: self.config.questions_per_minute,
            denial_holds: Duration::from_secs(self.config.denial_holds_seconds),
        }
    }

    /// Returns the current policy.
    #[must_use]
    pub fn snapshot(&self) -> Arc<PolicySnapshot> {
        self.snapshots.borrow().clone()
    }

    /// Returns the identity check for a server.
    pub(crate) fn gate(&self, server: &Server) -> IdentityGate {
        let (services, server) = (self.clone(), server.clone());
        let kept = move || {
            let (grants, snapshot) = (services.grants.now(), services.snapshot());
            KeptUnderName::of(
                &services.home,
                (&server.name, Some(&server)),
                &grants.grants,
                &snapshot.annotations,
            )
        };
        IdentityGate { all: self.identities.clone(), ours: self.programs.dir.clone(), kept: Box::new(kept) }
    }

    /// Refuses a server program that another server can modify.
    pub(crate) fn refuses_program(
        &self,
        server: &str,
    ) -> impl Fn(&Path) -> Result<(), ProgramError> + Send + Sync + use<> {
        let (services, server) = (self.clone(), server.to_owned());
        move |program| {
            let (settings, grants) = (services.settings.borrow().clone(), services.grants.now());
            let snapshot = services.snapshot();
            let writable = Writable::by(&services.home, &snapshot.home, &settings.servers, &grants);
            writable.refuse_program(program, &server, &snapshot.protected)
        }
    }
}
