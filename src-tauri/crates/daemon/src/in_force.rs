//! What the person writes and everything else follows: settings, servers and the law, read anew when it changes.
//!
//! - One task owns it ([`keeper`]): what is in force changes there and nowhere else.
//! - What is not understood, cannot be read or is gone changes nothing. What was in force stays, and that is a trouble
//!   until it is mended.
//! - What lies where some server may write is not taken: an agent may have written it.
//! - A change is on record before it is in force.
//! - A look that hangs holds up nothing: what was in force stays, that is a trouble, and the next change is looked at.
//! - A session keeps the settings and the server it began with; the law it is judged by is always the newest.

mod aside;
mod change;
mod exposed;
mod keeper;
mod read;
mod watching;

use crate::config::{Config, Servers};
use crate::containment::Machine;
use crate::grants::GrantTable;
use crate::home::Home;
use crate::law::{Law, LawError};
use crate::troubles::Troubles;
use ironcurtain_audit::Audit;
use read::Current;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// A handle to what is in force.
#[derive(Debug, Clone)]
pub struct InForce {
    laws: watch::Receiver<Arc<Law>>,
    settings: watch::Receiver<Arc<Settings>>,
    looks: mpsc::Sender<oneshot::Sender<()>>,
}

/// What a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Settings.
    pub config: Config,
    /// The configured servers.
    pub servers: Servers,
}

/// What the owner of all this needs.
pub struct Means {
    /// Where the files are.
    pub home: Home,
    /// Where changes are put on record.
    pub audit: Audit,
    /// Where it tells what is wrong.
    pub troubles: Troubles,
    /// What servers may write to by what was granted.
    pub grants: watch::Receiver<Arc<GrantTable>>,
    /// What follows the settings, too.
    pub machine: Machine,
    /// Moves when something that people are shown has changed.
    pub changes: watch::Sender<u64>,
    /// Set when the trusted process ends.
    pub ending: watch::Receiver<bool>,
}

/// What is in force at the start.
#[derive(Debug)]
pub struct First(Current);

impl First {
    /// Reads all files; none of them may be wrong.
    ///
    /// # Errors
    /// [`LawError`], naming file and place.
    pub fn read(home: &Home) -> Result<Self, LawError> {
        Current::read(home).map(Self)
    }

    /// Refuses files that lie where a server may write by a standing grant, or by its entry.
    ///
    /// # Errors
    /// [`LawError::Exposed`], naming the file and the server.
    pub fn check_places(&self, home: &Home, grants: &GrantTable) -> Result<(), LawError> {
        self.0.check_places(home, grants)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config.1
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> &Law {
        &self.0.law
    }

    /// From now on the files are followed.
    #[must_use]
    pub fn follow(self, means: Means) -> InForce {
        keeper::start(self.0, means)
    }
}

impl InForce {
    /// For following what calls are judged by.
    #[must_use]
    pub fn laws(&self) -> watch::Receiver<Arc<Law>> {
        self.laws.clone()
    }

    /// What a session that begins now begins with.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.borrow().clone()
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
