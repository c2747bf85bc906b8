//! The person's settings, servers and policy, which everything else follows: read anew when they change.
//!
//! - One task owns it ([`task`]): what is in force changes there and nowhere else.
//! - What is not understood, cannot be read or is gone changes nothing. What was in force stays, and that is a trouble
//!   until it is mended.
//! - What lies where some server may write is not taken: an agent may have written it.
//! - A change is on record before it is in force.
//! - A look that hangs holds up nothing: what was in force stays, that is a trouble, and the next change is looked at.
//! - A session keeps the settings and the server it began with; the policy it is judged by is always the newest.

mod blocking;
mod change;
mod exposed;
mod file_watch;
mod read;
mod task;

use crate::containment::Machine;
use crate::health::Health;
use crate::policy_snapshot::{PolicySnapshot, SnapshotError};
pub(crate) use exposed::Writable;
use ironcurtain_audit::Audit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, Servers};
use ironcurtain_grants::GrantTable;
use read::Current;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// A handle to what is in force.
#[derive(Debug, Clone)]
pub struct Reloader {
    snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    settings: watch::Receiver<Arc<SessionSettings>>,
    looks: mpsc::Sender<oneshot::Sender<()>>,
}

/// The settings and the servers that a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The settings.
    pub config: Config,
    /// The configured servers.
    pub servers: Servers,
}

/// The parts that the task is started with.
pub struct ReloaderParts {
    /// The folders that the files are in.
    pub home: Home,
    /// Puts changes on record.
    pub audit: Audit,
    /// Is told what is wrong.
    pub health: Health,
    /// The grants, for what servers may write to by them.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// The machine, which follows the settings too.
    pub machine: Machine,
    /// Moves when something that people are shown has changed.
    pub changes: watch::Sender<u64>,
    /// Cancelled when the trusted process ends.
    pub ending: CancellationToken,
}

/// The settings, the servers and the policy in force at the start.
#[derive(Debug)]
pub struct InitialState(Current);

impl InitialState {
    /// Reads all files; none of them may be wrong.
    ///
    /// # Errors
    /// [`SnapshotError`], naming file and place.
    pub fn read(home: &Home) -> Result<Self, SnapshotError> {
        Current::read(home).map(Self)
    }

    /// Refuses files that lie where a server may write by a standing grant, or by its entry.
    ///
    /// # Errors
    /// [`SnapshotError::Exposed`], naming the file and the server.
    pub fn check_places(&self, home: &Home, grants: &GrantTable) -> Result<(), SnapshotError> {
        self.0.check_places(home, grants)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config.1
    }

    /// The configured servers.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.0.servers.1
    }

    /// The policy.
    #[must_use]
    pub fn snapshot(&self) -> &PolicySnapshot {
        &self.0.snapshot
    }

    /// From now on the files are followed.
    #[must_use]
    pub fn follow(self, parts: ReloaderParts) -> Reloader {
        task::start(self.0, parts)
    }
}

impl Reloader {
    /// For following what calls are judged by.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<PolicySnapshot>> {
        self.snapshots.clone()
    }

    /// The settings and the servers for a session that begins now.
    #[must_use]
    pub fn settings(&self) -> Arc<SessionSettings> {
        self.settings.borrow().clone()
    }

    /// For following the settings and the servers.
    #[must_use]
    pub fn follow_settings(&self) -> watch::Receiver<Arc<SessionSettings>> {
        self.settings.clone()
    }

    /// Looks at the files now, and waits until what they say is in force.
    pub async fn look(&self) {
        let (reply, looked) = oneshot::channel();
        // Without an owner the trusted process is ending.
        if self.looks.send(reply).await.is_ok() {
            let _ = looked.await;
        }
    }
}
