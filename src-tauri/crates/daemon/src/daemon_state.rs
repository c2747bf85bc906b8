//! The running daemon's state, shared by connections, control requests and the handle.

use crate::descriptors;
use crate::reload::Reloader;
use crate::run::Run;
use crate::services::Services;
use crate::session::Session;
use ironcurtain_consent::Principal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The running daemon's state.
pub(crate) struct DaemonState {
    pub(crate) services: Services,
    pub(crate) reloader: Reloader,
    pub(crate) started_ms: u64,
    sessions: Mutex<Vec<Arc<Session>>>,
    runs: Mutex<Vec<Arc<Run>>>,
    /// Number of reserved places, including those of sessions that are still being opened.
    places: Arc<AtomicUsize>,
}

/// Place reserved for one session or run. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reason why no further session or run can start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlace {
    /// This many sessions are open, which is the limit in the user's settings.
    #[error(
        "{0} sessions are open, which is all that `maxSessions` in `config.json` allows; end one, or write a larger number there"
    )]
    Setting(usize),
    /// This many sessions are open, which is the limit that the number of file descriptors imposes.
    #[error(
        "{0} sessions are open, and the limit for open files does not permit another; raise the hard limit (`ulimit -Hn`, `LimitNOFILE=`) and restart IronCurtain"
    )]
    Descriptors(usize),
}

impl DaemonState {
    /// Creates the state of a daemon that has no sessions or runs.
    pub(crate) fn new(services: Services, reloader: Reloader) -> Self {
        Self {
            services,
            reloader,
            started_ms: ironcurtain_audit::clock::now_ms(),
            sessions: Mutex::default(),
            runs: Mutex::default(),
            places: Arc::default(),
        }
    }

    /// Reserves a place for a session or run. `most` is the maximum number of sessions in the user's settings.
    pub(crate) fn place(&self, most: usize) -> Result<Place, NoPlace> {
        let before = self.places.fetch_add(1, Ordering::Relaxed);
        let place = Place(self.places.clone());
        if before >= most {
            return Err(NoPlace::Setting(before));
        }
        if before >= descriptors::sessions() {
            return Err(NoPlace::Descriptors(before));
        }
        Ok(place)
    }

    /// Returns the active sessions.
    pub(crate) fn live(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the active runs.
    pub(crate) fn runs(&self) -> Vec<Arc<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the principal of an active session or run, or `None` if no active one has this id.
    pub(crate) fn principal(&self, id: &str) -> Option<Arc<Principal>> {
        let sessions = self.live().into_iter().map(|session| (session.id.clone(), session.principal.clone()));
        let runs = self.runs().into_iter().map(|run| (run.id.clone(), run.principal.clone()));
        sessions.chain(runs).find(|(found, _)| found == id).map(|(_, principal)| principal)
    }

    /// Adds a run, or terminates it if shutdown was requested before it could be added.
    pub(crate) fn run_began(&self, run: Arc<Run>) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run.clone());
        if self.services.shutdown.is_under_way() {
            run.end();
        }
    }

    /// Removes a run that has ended.
    pub(crate) fn run_ended(&self, id: &str) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).retain(|run| run.id != id);
        self.services.changed();
    }

    /// Adds a session, or closes it if shutdown was requested before it could be added.
    pub(crate) fn began(&self, session: Arc<Session>) {
        self.services.metrics.session_began();
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
        if self.services.shutdown.is_under_way() {
            session.end();
        }
    }

    /// Removes a session that has closed.
    pub(crate) fn ended(&self, id: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).retain(|session| session.id != id);
        self.services.changed();
    }
}
