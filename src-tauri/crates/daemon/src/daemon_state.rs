//! The running daemon's state, shared by connections, control requests and the [`Daemon`](crate::Daemon) handle.

use crate::descriptors;
use crate::run::{DenyAllQuestions, Run};
use crate::session::Session;
use ironcurtain_consent::Principal;
use ironcurtain_protocol::RunAsk;
use ironcurtain_services::{Gauges, Reloader, Services};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{RwLock, RwLockReadGuard};

/// Maximum number of sessions that one run's programs can have open. Each session has a server outside the run.
const MAX_IN_RUN: usize = 64;

/// Maximum time between the start of a run's program and the run's addition to the list of active runs.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);

/// The running daemon's state.
pub(crate) struct DaemonState {
    pub(crate) services: Services,
    pub(crate) reloader: Reloader,
    pub(crate) started_ms: u64,
    sessions: Mutex<Vec<Arc<Session>>>,
    runs: Mutex<Vec<Arc<Run>>>,
    /// Read-locked while a run is being opened.
    opening_runs: RwLock<()>,
    slots: Arc<Mutex<Slots>>,
}

/// Reserved slots, including those of sessions that are still being opened.
#[derive(Debug, Default)]
struct Slots {
    all: usize,
    /// Number of sessions that a run's programs opened, by run id.
    in_runs: HashMap<String, usize>,
}

/// Slot reserved for one session or run. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    slots: Arc<Mutex<Slots>>,
    run: Option<String>,
}

impl SessionSlot {
    fn reserve(
        slots: &Arc<Mutex<Slots>>,
        (max, max_by_descriptors): (usize, usize),
        run: Option<&str>,
    ) -> Result<Self, SlotError> {
        let mut reserved = slots.lock().unwrap_or_else(PoisonError::into_inner);
        let count = reserved.all;
        if count >= max {
            return Err(SlotError::MaxSessions(count));
        }
        if count >= max_by_descriptors {
            return Err(SlotError::Descriptors(count));
        }
        if let Some(run) = run {
            let in_run = reserved.in_runs.entry(run.to_owned()).or_default();
            if *in_run >= MAX_IN_RUN {
                return Err(SlotError::Run(*in_run));
            }
            *in_run += 1;
        }
        reserved.all += 1;
        Ok(Self { slots: slots.clone(), run: run.map(str::to_owned) })
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.all -= 1;
        if let Some(run) = &self.run
            && let Some(count) = slots.in_runs.get_mut(run)
        {
            *count -= 1;
            if *count == 0 {
                slots.in_runs.remove(run);
            }
        }
    }
}

/// Reason why no more sessions or runs can start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlotError {
    /// The number of open sessions has reached the limit in the user's settings.
    #[error(
        "{0} sessions are open, the maximum that `maxSessions` in `config.json` allows; end one, or increase `maxSessions`"
    )]
    MaxSessions(usize),
    /// The number of open sessions has reached the maximum that the file descriptor limit permits.
    #[error(
        "{0} sessions are open, and the limit for open files does not permit another; raise the hard limit (`ulimit -Hn`, `LimitNOFILE=`) and restart IronCurtain"
    )]
    Descriptors(usize),
    /// The run has the maximum number of sessions.
    #[error("this run has {0} sessions, the maximum; close one")]
    Run(usize),
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
            opening_runs: RwLock::default(),
            slots: Arc::default(),
        }
    }

    /// Returns `true` if no session or run is open or being opened.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).all == 0
    }

    /// Reserves a slot for a session or run. `max` is the user's limit for sessions. `run` is the run whose program
    /// opens the session, if any.
    pub(crate) fn reserve_slot(&self, max: usize, run: Option<&str>) -> Result<SessionSlot, SlotError> {
        SessionSlot::reserve(&self.slots, (max, descriptors::max_sessions()), run)
    }

    /// Returns the active sessions.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the metrics in the Prometheus text format.
    pub(crate) fn metrics(&self) -> Result<String, fmt::Error> {
        let services = &self.services;
        services.metrics.text(Gauges {
            sessions: self.sessions().len() + self.runs().len(),
            questions: *services.broker.open().borrow(),
            entries: services.audit.status().0.entries,
            memory: services.memory.used(),
        })
    }

    /// Returns the active runs.
    pub(crate) fn runs(&self) -> Vec<Arc<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Marks a run as being opened until the guard is dropped.
    pub(crate) async fn opening_run(&self) -> RwLockReadGuard<'_, ()> {
        self.opening_runs.read().await
    }

    /// Returns the active runs, including those whose program has just been started.
    pub(crate) async fn opened_runs(&self) -> Vec<Arc<Run>> {
        // If opening a run takes longer, the run is waiting for the process that requested it and has not started its
        // program.
        let _ = tokio::time::timeout(OPENING_TIMEOUT, self.opening_runs.write()).await;
        self.runs()
    }

    /// Returns the principal of the active session or run with this id, or `None` if there is none.
    pub(crate) fn principal(&self, id: &str) -> Option<Arc<Principal>> {
        let sessions =
            self.sessions().into_iter().map(|session| (session.id.clone(), session.principal.clone()));
        let runs = self.runs().into_iter().map(|run| (run.id.clone(), run.principal.clone()));
        sessions.chain(runs).find(|(found, _)| found == id).map(|(_, principal)| principal)
    }

    /// Adds a run. Terminates the run if shutdown was requested in the meantime.
    pub(crate) fn add_run(&self, run: Arc<Run>) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run.clone());
        if self.services.shutdown.is_requested() {
            run.end();
        }
    }

    /// Removes a run that has ended.
    pub(crate) fn remove_run(&self, id: &str) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).retain(|run| run.id != id);
        self.services.changed();
    }

    /// Adds a session. Closes it if shutdown was requested or its run is ending.
    pub(crate) fn add_session(&self, session: Arc<Session>) {
        self.services.metrics.count_session();
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
        let runs = self.runs();
        let run = session.run.as_ref().map(|id| runs.iter().find(|run| run.id == *id && !run.is_ending()));
        if let Some(Some(run)) = run
            && run.ask() == RunAsk::Deny
        {
            self.services.broker.set_session_front_end(&session.id, Arc::new(DenyAllQuestions));
        }
        if self.services.shutdown.is_requested() || matches!(run, Some(None)) {
            session.end();
        }
        // The organization's settings may have changed while the session was opened.
        if let Some(managed) = &self.services.snapshot().managed {
            session.end_if_refused(&managed.managed);
        }
    }

    /// Removes a session that has closed.
    pub(crate) fn remove_session(&self, id: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).retain(|session| session.id != id);
        self.services.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_cannot_take_the_places_of_others() {
        let slots = Arc::default();
        let take = |run| SessionSlot::reserve(&slots, (MAX_IN_RUN + 2, usize::MAX), run);
        let mut of_run: Vec<_> = (0..MAX_IN_RUN).map(|_| take(Some("r")).unwrap()).collect();
        let refused = take(Some("r")).unwrap_err().to_string();
        assert_eq!(refused, "this run has 64 sessions, the maximum; close one");
        let others = [take(Some("other")).unwrap(), take(None).unwrap()];
        assert!(matches!(take(None), Err(SlotError::MaxSessions(_))));
        of_run.pop();
        of_run.push(take(Some("r")).unwrap());
        drop((of_run, others));
        let slots = slots.lock().unwrap();
        assert_eq!((slots.all, slots.in_runs.len()), (0, 0));
    }
}
