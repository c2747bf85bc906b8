//! The user's settings, servers and policy, reloaded when they change.
//!
//! - One task owns them ([`task`]); only it changes what is in force.
//! - A file that is invalid, unreadable or missing changes nothing. The previous version stays in force, and a problem is reported
//!   until it is fixed.
//! - A file in a place that some server may write is rejected: an agent may have written it.
//! - A change is recorded before it takes effect.
//! - A hanging read blocks nothing: the previous version stays in force, a problem is reported, and the next change is read.
//! - A session keeps its initial settings and server; its policy is always the current one.

mod blocking;
mod change;
mod exposed;
mod file_watch;
mod read;
mod task;

use crate::health::Health;
use crate::machine::Machine;
pub(crate) use exposed::Writable;
use ironcurtain_audit::Audit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, PolicySnapshot, Servers, SessionSettings, SnapshotError};
use ironcurtain_grants::GrantTable;
use read::Current;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Handle to the current settings, servers and policy.
#[derive(Debug, Clone)]
pub struct Reloader {
    snapshots: watch::Receiver<Arc<PolicySnapshot>>,
    settings: watch::Receiver<Arc<SessionSettings>>,
    looks: mpsc::Sender<oneshot::Sender<()>>,
}

/// Arguments of the reload task.
pub struct ReloaderParts {
    /// Directories of the files.
    pub home: Home,
    /// Records changes.
    pub audit: Audit,
    /// Receives problems.
    pub health: Health,
    /// Grants, which can make files writable to servers.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// The machine, which follows the settings too.
    pub machine: Machine,
    /// Incremented when something shown to the user changes.
    pub changes: watch::Sender<u64>,
    /// Cancelled at shutdown.
    pub ending: CancellationToken,
}

/// Settings, servers and policy at startup.
#[derive(Debug)]
pub struct InitialState(Current);

impl InitialState {
    /// Reads all files, and requires all of them to be valid.
    ///
    /// # Errors
    /// Returns a [`SnapshotError`] that names the file and the position.
    pub fn read(home: &Home) -> Result<Self, SnapshotError> {
        Current::read(home).map(Self)
    }

    /// Rejects files that a server may write by a standing grant or by its entry.
    ///
    /// # Errors
    /// Returns [`SnapshotError::Exposed`], which names the file and the server.
    pub fn check_places(&self, home: &Home, grants: &GrantTable) -> Result<(), SnapshotError> {
        self.0.check_places(home, grants)
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config.1
    }

    /// Returns the configured servers.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.0.servers.1
    }

    /// Returns the policy.
    #[must_use]
    pub fn snapshot(&self) -> &PolicySnapshot {
        &self.0.snapshot
    }

    /// Starts following the files.
    #[must_use]
    pub fn follow(self, parts: ReloaderParts) -> Reloader {
        task::start(self.0, parts)
    }
}

impl Reloader {
    /// Subscribes to the policy.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<PolicySnapshot>> {
        self.snapshots.clone()
    }

    /// Returns the settings and servers for a new session.
    #[must_use]
    pub fn settings(&self) -> Arc<SessionSettings> {
        self.settings.borrow().clone()
    }

    /// Subscribes to the settings and servers.
    #[must_use]
    pub fn follow_settings(&self) -> watch::Receiver<Arc<SessionSettings>> {
        self.settings.clone()
    }

    /// Reloads the files and waits until the result is in force.
    pub async fn reload(&self) {
        let (reply, looked) = oneshot::channel();
        // The task has already stopped at shutdown.
        if self.looks.send(reply).await.is_ok() {
            let _ = looked.await;
        }
    }
}
