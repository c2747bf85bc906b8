//! The services that all sessions are handed: settings, the policy in force, the log, the grants, the person.
//!
//! - Knows neither sessions nor servers.

use crate::autostart::Autostart;
use crate::containment::{Machine, ProgramError, ServerPrograms};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::policy_snapshot::PolicySnapshot;
use crate::record_head::RecordHead;
use crate::reload::{SessionSettings, Writable};
use crate::server_identity::{Identities, IdentityGate, KeptUnderName};
use crate::session_log::SessionLogs;
use crate::shutdown::Shutdown;
use crate::workspaces::Workspaces;
use ironcurtain_audit::Audit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, Server};
use ironcurtain_consent::{Broker, Exchange, LateAsking, Principal, QuestionLimits};
use ironcurtain_grants::Grants;
use ironcurtain_mcp::wire::{KnownInstructions, KnownVersions, Memory};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The services that all sessions share.
#[derive(Clone)]
pub struct Services {
    /// Our directories.
    pub home: Home,
    /// The settings and servers of new sessions.
    pub config: Config,
    /// The policy, followed as it changes; see [`Services::snapshot`].
    pub snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    /// The settings and the servers in force, which may be newer than what a session began with.
    pub settings: watch::Receiver<Arc<SessionSettings>>,
    /// The audit log.
    pub audit: Audit,
    /// The newest entry of the audit log, as the keyring keeps it.
    pub(crate) record_head: RecordHead,
    /// The grants.
    pub grants: Grants,
    /// The questions.
    pub broker: Broker,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// The machine's ability to make sandboxes.
    pub machine: Machine,
    /// The troubles of the moment.
    pub health: Health,
    /// The programs that what is under servers' names belongs to.
    pub(crate) identities: Identities,
    /// Projects that the person does not want agents to work in.
    pub(crate) workspaces: Workspaces,
    /// Figures of what happens.
    pub(crate) metrics: Metrics,
    /// Who watches for files that run later.
    pub(crate) autostart: Autostart,
    /// The logs of sessions.
    pub(crate) logs: SessionLogs,
    /// The eras of the protocol that server programs speak.
    pub(crate) versions: KnownVersions,
    /// The words of server programs about their own use.
    pub(crate) instructions: KnownInstructions,
    /// The memory for messages on their way.
    pub memory: Memory,
    /// The end of the trusted process.
    pub(crate) shutdown: Shutdown,
    /// Moves whenever something that people are shown has changed.
    pub changes: watch::Sender<u64>,
}

impl Services {
    /// Tells whoever shows things to look again.
    pub fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// The way to the person, on behalf of this principal.
    #[must_use]
    pub fn exchange<'a>(&'a self, principal: &'a Principal) -> Exchange<'a> {
        let Self { audit, broker, grants, changes, metrics, .. } = self;
        let limits = self.question_limits();
        Exchange { principal, audit, broker, grants, changes, metrics, limits }
    }

    /// The way to the person for a question that nobody answered in time.
    #[must_use]
    pub fn late_asking(&self) -> LateAsking<'_> {
        let Self { audit, broker, changes, metrics, .. } = self;
        LateAsking { audit, broker, changes, metrics, limits: self.question_limits() }
    }

    /// The limits of how much a client asks.
    fn question_limits(&self) -> QuestionLimits {
        QuestionLimits {
            per_minute: self.config.questions_per_minute,
            denial_holds: Duration::from_secs(self.config.denial_holds_seconds),
        }
    }

    /// The policy in force.
    #[must_use]
    pub fn snapshot(&self) -> Arc<PolicySnapshot> {
        self.snapshots.borrow().clone()
    }

    /// The check that what is under a server's name is its own.
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

    /// Refuses the program of a server that another server may change at that moment.
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
