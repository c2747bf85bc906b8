//! What the person writes and everything else follows: settings, servers and the policy, read anew when it changes.
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

use crate::config::{Config, Servers};
use crate::containment::Machine;
use crate::grants::GrantTable;
use crate::health::Health;
use crate::home::Home;
use crate::policy_snapshot::{PolicySnapshot, SnapshotError};
pub(crate) use exposed::Writable;
use ironcurtain_audit::Audit;
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

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// The settings.
    pub config: Config,
    /// The configured servers.
    pub servers: Servers,
}

/// What the owner of all this needs.
pub struct ReloaderParts {
    /// The place where the files are.
    pub home: Home,
    /// The place where changes are put on record.
    pub audit: Audit,
    /// The place where it tells what is wrong.
    pub health: Health,
    /// What servers may write to by what was granted.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// What follows the settings, too.
    pub machine: Machine,
    /// Moves when something that people are shown has changed.
    pub changes: watch::Sender<u64>,
    /// Cancelled when the trusted process ends.
    pub ending: CancellationToken,
}

/// What is in force at the start.
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

    /// What a session that begins now begins with.
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
