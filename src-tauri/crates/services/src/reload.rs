//! The user's settings, servers and policy, which are reloaded when their files change.
//!
//! - One task ([`task`]) owns the current state and makes all changes.
//! - If a file is invalid, unreadable or missing, its previous version stays in use, and a problem is reported until it
//!   is fixed.
//! - A file that a server can write to is rejected, because an agent may have written it.
//! - A change is recorded before it takes effect.
//! - A read that hangs does not block anything else: the previous version stays in use, a problem is reported, and
//!   later changes are still read.
//! - A session keeps the settings and the server entry that it started with, but always uses the current policy.

mod blocking;
mod change;
mod exposed;
mod file_watch;
mod read;
mod task;

use crate::health::Health;
use crate::sandbox_probe::SandboxProbe;
pub use exposed::WritablePaths;
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
    requests: mpsc::Sender<oneshot::Sender<()>>,
}

/// Parameters of the reload task.
pub struct ReloaderParts {
    /// Directories of the configuration files.
    pub home: Home,
    /// Audit log, in which changes are recorded.
    pub audit: Audit,
    /// Receives problems with the files.
    pub health: Health,
    /// Current grants, needed to determine whether a server can write to a file.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// Sandbox test, which is updated when the sandbox settings change.
    pub sandbox_probe: SandboxProbe,
    /// Incremented whenever something shown to the user changes.
    pub changes: watch::Sender<u64>,
    /// Cancelled when the daemon shuts down.
    pub ending: CancellationToken,
}

/// Settings, servers and policy as read at startup.
#[derive(Debug)]
pub struct InitialState(Current);

impl InitialState {
    /// Reads all configuration files.
    ///
    /// # Errors
    /// Returns [`SnapshotError`] with the file and the position of the error if a file is invalid.
    pub fn read(home: &Home) -> Result<Self, SnapshotError> {
        Current::read(home).map(Self)
    }

    /// Refuses files that a server can write to, because of either a standing grant or the server's entry.
    ///
    /// # Errors
    /// Returns [`SnapshotError::Exposed`], which contains the file and the server.
    pub fn check_not_writable(&self, home: &Home, grants: &GrantTable) -> Result<(), SnapshotError> {
        self.0.check_not_writable(home, grants)
    }

    /// Returns the settings as read at startup.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config.1
    }

    /// Returns the servers as read at startup.
    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.0.servers.1
    }

    /// Returns the policy as read at startup.
    #[must_use]
    pub fn snapshot(&self) -> &PolicySnapshot {
        &self.0.snapshot
    }

    /// Starts the task that reloads the files when they change.
    #[must_use]
    pub fn start_reloading(self, parts: ReloaderParts) -> Reloader {
        task::start(self.0, parts)
    }
}

impl Reloader {
    /// Returns a receiver that holds the current policy and is notified of changes.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<PolicySnapshot>> {
        self.snapshots.clone()
    }

    /// Returns the settings and servers for a new session.
    #[must_use]
    pub fn settings(&self) -> Arc<SessionSettings> {
        self.settings.borrow().clone()
    }

    /// Returns a receiver that holds the current settings and servers and is notified of changes.
    #[must_use]
    pub fn watch_settings(&self) -> watch::Receiver<Arc<SessionSettings>> {
        self.settings.clone()
    }

    /// Reads the files again and waits until their changes have been applied.
    pub async fn reload(&self) {
        let (reply, done) = oneshot::channel();
        // Sending fails only if the daemon is shutting down.
        if self.requests.send(reply).await.is_ok() {
            let _ = done.await;
        }
    }
}
