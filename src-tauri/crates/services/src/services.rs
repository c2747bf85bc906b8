//! Services that all sessions share: settings, policy, audit log, grants and questions to the user.
//!
//! - Does not depend on sessions or servers.

use crate::changed_tools::ChangedTools;
use crate::desktop_consent::{AttachedHosts, DesktopConsent};
use crate::health::Health;
use crate::identity_gate::{Identities, IdentityGate};
use crate::metrics::Metrics;
use crate::record_head::RecordHead;
use crate::reload::WritablePaths;
use crate::sandbox_probe::SandboxProbe;
use crate::session_log::SessionLogs;
use crate::shutdown::Shutdown;
use crate::workspaces::Workspaces;
use ironcurtain_audit::Audit;
use ironcurtain_autostart::Autostart;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, PolicySnapshot, Server, SessionSettings};
use ironcurtain_consent::{Broker, Exchange, Principal, QuestionLimits, ReopenContext};
use ironcurtain_containment::{ProgramError, ServerPrograms};
use ironcurtain_grants::Grants;
use ironcurtain_mcp::wire::{KnownInstructions, KnownVersions, MemoryBudget};
use ironcurtain_server_identity::StoredServerState;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Services that all sessions share. Clones refer to the same services.
#[derive(Clone)]
pub struct Services {
    /// IronCurtain's directories.
    pub home: Home,
    /// Settings for new sessions.
    pub config: Config,
    /// Receiver for the policy. [`Services::snapshot`] returns the current policy.
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// Receiver for the settings and servers. A running session may use older settings.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    /// The audit log.
    pub audit: Audit,
    /// Keeps a copy of the newest audit entry in the keyring.
    pub record_head: RecordHead,
    /// The grants and their journal.
    pub grants: Grants,
    /// Asks the user and holds pending questions.
    pub broker: Broker,
    /// Asks the user through the attached desktop, if any.
    pub desktop: Arc<DesktopConsent>,
    /// Remote machines to which this desktop is attached.
    pub attached_hosts: Arc<AttachedHosts>,
    /// Paths of IronCurtain's helper programs, and the secret store.
    pub programs: ServerPrograms,
    /// Tests whether this machine can create sandboxes.
    pub sandbox_probe: SandboxProbe,
    /// Current problems for display.
    pub health: Health,
    /// Identities of server programs, and the server names bound to them.
    pub identities: Identities,
    /// Reports servers with suspended tools.
    pub changed_tools: ChangedTools,
    /// Workspaces that the user declined.
    pub workspaces: Workspaces,
    /// Counters and histograms for Prometheus.
    pub metrics: Metrics,
    /// Watches writable folders for autostart files.
    pub autostart: Autostart,
    /// Writes the session log files.
    pub logs: SessionLogs,
    /// Protocol versions that each server program has used before.
    pub versions: KnownVersions,
    /// Instructions that each server program has returned before.
    pub instructions: KnownInstructions,
    /// Memory budget for messages in transit.
    pub memory: MemoryBudget,
    /// Progress of the shutdown.
    pub shutdown: Shutdown,
    /// Incremented whenever something shown to the user changes.
    pub changes: watch::Sender<u64>,
}

impl Services {
    /// Notifies user interfaces that something changed.
    pub fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// Returns the interface for asking the user on behalf of this principal.
    #[must_use]
    pub fn exchange<'a>(&'a self, principal: &'a Principal) -> Exchange<'a> {
        let Self { audit, broker, grants, changes, metrics, .. } = self;
        let limits = self.question_limits();
        Exchange { principal, audit, broker, grants, changes, metrics, limits }
    }

    /// Returns the interface for asking an expired question again.
    #[must_use]
    pub fn late_asking(&self) -> ReopenContext<'_> {
        let Self { audit, broker, changes, metrics, .. } = self;
        ReopenContext { audit, broker, changes, metrics, limits: self.question_limits() }
    }

    /// Returns the limits on the number of questions per client.
    fn question_limits(&self) -> QuestionLimits {
        QuestionLimits {
            per_minute: self.config.questions_per_minute,
            denial_duration: Duration::from_secs(self.config.denial_holds_seconds),
        }
    }

    /// Returns the current policy.
    #[must_use]
    pub fn snapshot(&self) -> Arc<PolicySnapshot> {
        self.snapshots.borrow().clone()
    }

    /// Returns the reason why nothing may start if the user's organization requires an audit log export and none is
    /// configured. Returns `None` otherwise.
    pub fn refusal_without_export(&self) -> Option<String> {
        let managed = self.snapshot().managed.clone()?;
        let export = self.settings.borrow().config.export.clone();
        managed.managed.refusal_without_export(export.as_ref().map(|export| export.url.as_str()))
    }

    /// Returns the user's organization if it does not let servers start on a machine that cannot create sandboxes.
    pub fn organization_enforcing_sandbox(&self) -> Option<String> {
        let managed = self.snapshot().managed.clone()?;
        let managed = &managed.managed;
        managed.settings.enforces_sandbox().then(|| managed.organization.clone())
    }

    /// Returns the identity check for a server.
    pub fn identity_gate(&self, server: &Server) -> IdentityGate {
        let (services, server) = (self.clone(), server.clone());
        let stored_under_name = move || {
            let (grants, snapshot) = (services.grants.now(), services.snapshot());
            StoredServerState::of(
                &services.home,
                (&server.name, Some(&server)),
                &grants.grants,
                &snapshot.annotations,
            )
        };
        IdentityGate {
            all: self.identities.clone(),
            own_programs: self.programs.dir.clone(),
            stored_under_name: Box::new(stored_under_name),
        }
    }

    /// Returns a check that refuses programs of this server that another server can modify.
    pub fn refuses_program(
        &self,
        server: &str,
    ) -> impl Fn(&Path) -> Result<(), ProgramError> + Send + Sync + use<> {
        let (services, server) = (self.clone(), server.to_owned());
        move |program| {
            let (settings, grants) = (services.settings.borrow().clone(), services.grants.now());
            let snapshot = services.snapshot();
            let writable = WritablePaths::new(&services.home, &snapshot.home, &settings.servers, &grants);
            writable.refuse_program(program, &server, &snapshot.protected)
        }
    }
}
