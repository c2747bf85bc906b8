//! The state of the running trusted process, which its socket, its control requests and its handle share.

use crate::reload::Reloader;
use crate::services::Services;
use crate::session::Session;
use std::sync::{Arc, Mutex, PoisonError};

/// The state of the running trusted process.
pub(crate) struct DaemonState {
    pub(crate) services: Services,
    pub(crate) reloader: Reloader,
    pub(crate) started_ms: u64,
    sessions: Mutex<Vec<Arc<Session>>>,
}

impl DaemonState {
    /// The state before the first session.
    pub(crate) fn new(services: Services, reloader: Reloader) -> Self {
        Self { services, reloader, started_ms: crate::clock::now_ms(), sessions: Mutex::default() }
    }

    /// The sessions that are live.
    pub(crate) fn live(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A session is live from now on; it is ended at once where it came too late to be ended with the others.
    pub(crate) fn began(&self, session: Arc<Session>) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
        if self.services.shutdown.requested.is_cancelled() {
            session.end();
        }
    }

    /// A session is live no longer.
    pub(crate) fn ended(&self, id: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).retain(|session| session.id != id);
        self.services.changed();
    }
}
