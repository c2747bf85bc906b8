//! The user's stops: lockdown, paused sessions, and session-long denials.
//!
//! - A stop can only deny. After it ends, the same calls require approval as before.
//! - A stop takes effect when it is published. Readers use the published state without waiting for a lock.
//! - A file in the state folder preserves a lockdown across restarts. If the file cannot be checked, lockdown is on.

mod scope;

pub use scope::DenialScope;

use crate::Question;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_paths::atomic_file;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum number of session-long denials per session. Beyond this limit, the session's oldest denial is removed.
const MAX_DENIALS: usize = 200;

/// Condition set by the user that denies a call without asking.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Lockdown denies every call that needs approval.
    #[error(
        "the user has locked IronCurtain down: everything that needs approval is denied until they end the lockdown"
    )]
    Lockdown,
    /// The call's session is paused.
    #[error("the user paused this agent: all its requests are denied until they resume it")]
    Paused,
    /// The user denied such calls for the rest of the session.
    #[error("the user denied this for the rest of the session{}", with_note(.note.as_deref()))]
    Denied {
        /// Id of the denial.
        id: String,
        /// The user's note for the agent, or `None`.
        note: Option<String>,
    },
}

/// Denial of certain calls until the session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionDenial {
    /// Id of the denial.
    pub id: String,
    /// Id of the session.
    pub session: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Tool and targets to which the denial applies.
    pub scope: DenialScope,
    /// Description of the scope for the user.
    pub description: String,
    /// The user's note for the agent.
    pub note: Option<String>,
    /// Time at which the user answered, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl SessionDenial {
    /// Creates the denial that the user chose when answering the question.
    #[must_use]
    pub fn of(question: &Question, scope: DenialScope, note: Option<String>) -> Self {
        Self {
            id: question.id.clone(),
            session: question.session.clone(),
            client: question.client.name.clone(),
            server: question.server.clone(),
            scope,
            description: question.denial.clone(),
            note,
            at_ms: now_ms(),
        }
    }
}

/// Snapshot of all active stops.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopState {
    /// `true` if lockdown is on.
    pub lockdown: bool,
    /// Ids of paused sessions.
    pub paused: BTreeSet<String>,
    /// Session-long denials.
    pub denials: Vec<SessionDenial>,
}

/// Shared handle to the active stops.
#[derive(Debug, Clone)]
pub struct Stops {
    state: watch::Sender<Arc<StopState>>,
    /// File whose existence preserves the lockdown across restarts.
    file: PathBuf,
}

impl Stops {
    /// Restores the lockdown that was on when IronCurtain last exited. Other stops do not survive a restart.
    #[must_use]
    pub fn open(file: PathBuf) -> Self {
        let is_absent = |problem: io::Error| problem.kind() == io::ErrorKind::NotFound;
        let lockdown = !file.symlink_metadata().is_err_and(is_absent);
        Self { state: watch::Sender::new(Arc::new(StopState { lockdown, ..StopState::default() })), file }
    }

    /// Returns the active stops.
    #[must_use]
    pub fn now(&self) -> Arc<StopState> {
        self.state.borrow().clone()
    }

    /// Returns a receiver that holds the active stops and is notified of changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<StopState>> {
        self.state.subscribe()
    }

    /// Returns `true` if a session is paused.
    #[must_use]
    pub fn is_paused(&self, session: &str) -> bool {
        self.state.borrow().paused.contains(session)
    }

    /// Returns the stop that applies to calls of this session and scope, or `None`.
    #[must_use]
    pub fn find(&self, session: &str, scope: &DenialScope) -> Option<Stop> {
        self.state.borrow().find(session, scope)
    }

    /// Waits until a stop applies to calls of this session and scope, and returns the stop.
    pub(super) async fn stopped(&self, session: &str, scope: &DenialScope) -> Stop {
        let mut state = self.watch();
        loop {
            if let Some(stop) = state.borrow_and_update().find(session, scope) {
                return stop;
            }
            if state.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Pauses a session. Returns `false` if it was already paused.
    pub fn pause(&self, session: &str) -> bool {
        self.change(|state| state.paused.insert(session.to_owned()))
    }

    /// Resumes a session. Returns `false` if it was not paused.
    pub fn resume(&self, session: &str) -> bool {
        self.change(|state| state.paused.remove(session))
    }

    /// Adds a session-long denial.
    pub fn deny(&self, denial: SessionDenial) {
        self.change(|state| {
            let of_session = || state.denials.iter().filter(|one| one.session == denial.session);
            if of_session().count() >= MAX_DENIALS {
                let oldest = of_session().next().map(|one| one.id.clone());
                state.denials.retain(|one| Some(&one.id) != oldest.as_ref());
            }
            state.denials.push(denial);
            true
        });
    }

    /// Revokes a session-long denial and returns it, or `None` if no denial has this id.
    #[must_use]
    pub fn revoke_denial(&self, id: &str) -> Option<SessionDenial> {
        let mut taken = None;
        self.change(|state| {
            let at = state.denials.iter().position(|one| one.id == id);
            taken = at.map(|at| state.denials.remove(at));
            taken.is_some()
        });
        taken
    }

    /// Removes the stops of a closed session.
    pub fn end_session(&self, session: &str) {
        self.change(|state| {
            let before = state.denials.len();
            state.denials.retain(|one| one.session != session);
            state.paused.remove(session) || state.denials.len() < before
        });
    }

    /// Turns lockdown on and preserves it across restarts. Returns `false` if it was already on.
    ///
    /// # Errors
    /// Returns an error if the lockdown file could not be written. Lockdown is then on, but would not survive a
    /// restart.
    pub fn begin_lockdown(&self) -> io::Result<bool> {
        let began = self.change(|state| !std::mem::replace(&mut state.lockdown, true));
        atomic_file::replace(&self.file, "lockdown is on; `ironcurtain lockdown off` ends it\n")?;
        Ok(began)
    }

    /// Turns lockdown off. Returns `false` if it was not on.
    ///
    /// # Errors
    /// Returns an error if the lockdown file could not be removed. Lockdown is still on.
    pub fn end_lockdown(&self) -> io::Result<bool> {
        match std::fs::remove_file(&self.file) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => return Err(problem),
            Ok(()) | Err(_) => {}
        }
        File::open(self.file.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(self.change(|state| std::mem::replace(&mut state.lockdown, false)))
    }

    fn change(&self, change: impl FnOnce(&mut StopState) -> bool) -> bool {
        self.state.send_if_modified(|state| change(Arc::make_mut(state)))
    }
}

impl StopState {
    fn find(&self, session: &str, scope: &DenialScope) -> Option<Stop> {
        if self.lockdown {
            return Some(Stop::Lockdown);
        }
        if self.paused.contains(session) {
            return Some(Stop::Paused);
        }
        let denial = self.denials.iter().find(|one| one.session == session && one.scope.covers(scope))?;
        Some(Stop::Denied { id: denial.id.clone(), note: denial.note.clone() })
    }
}

fn with_note(note: Option<&str>) -> String {
    note.map_or_else(String::new, |note| format!(" with this note: {note}"))
}

#[cfg(test)]
mod tests {
    use super::scope::DeniedTarget;
    use super::*;
    use ironcurtain_paths::CanonicalPath;

    fn path(text: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(text).unwrap()
    }

    fn scope(tool: &str, at: DeniedTarget) -> DenialScope {
        DenialScope { tool: Some(tool.into()), at: vec![at] }
    }

    fn folder_target(text: &str) -> DeniedTarget {
        DeniedTarget::Below(path(text))
    }

    fn denial(id: &str, session: &str, scope: DenialScope) -> SessionDenial {
        let (client, server, description) = ("c".to_owned(), "f".to_owned(), String::new());
        let (id, session) = (id.to_owned(), session.to_owned());
        SessionDenial { id, session, client, server, scope, description, note: None, at_ms: 1 }
    }

    #[test]
    fn a_session_denial_covers_its_tool_folder_and_session() {
        let dir = tempfile::tempdir().unwrap();
        let stops = Stops::open(dir.path().join("lockdown"));
        stops.deny(denial("d", "s", scope("read", folder_target("/docs"))));
        let denied = Some(Stop::Denied { id: "d".into(), note: None });
        assert_eq!(stops.find("s", &scope("read", folder_target("/docs/deep"))), denied);
        for other in [
            scope("write", folder_target("/docs")),
            scope("read", folder_target("/")),
            scope("read", DeniedTarget::Call),
        ] {
            assert_eq!(stops.find("s", &other), None, "{other:?}");
        }
        assert_eq!(stops.find("other", &scope("read", folder_target("/docs"))), None);
        // For a call with several targets, one denied target is enough.
        let both = DenialScope {
            tool: Some("read".into()),
            at: vec![folder_target("/fine"), folder_target("/docs")],
        };
        assert_eq!(stops.find("s", &both), denied);
        assert_eq!(stops.revoke_denial("d").unwrap().id, "d");
        assert_eq!((stops.find("s", &both), stops.revoke_denial("d")), (None, None));
    }

    #[test]
    fn lockdown_survives_a_restart_with_anything_in_place_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lockdown");
        let is_on = || Stops::open(file.clone()).now().lockdown;
        let stops = Stops::open(file.clone());
        assert!(!is_on() && stops.begin_lockdown().unwrap() && !stops.begin_lockdown().unwrap());
        assert!(is_on());
        assert!(stops.end_lockdown().unwrap() && !stops.end_lockdown().unwrap());
        assert!(!is_on());
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        assert!(is_on(), "a link that leads nowhere is something");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(is_on() && Stops::open(file.clone()).end_lockdown().is_err());
    }

    #[tokio::test]
    async fn a_stop_reaches_pending_questions_and_ends_with_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let stops = Stops::open(dir.path().join("lockdown"));
        let call = scope("read", folder_target("/docs"));
        let (stop, ()) = tokio::join!(stops.stopped("s", &call), async {
            assert!(stops.pause("other") && stops.pause("s") && !stops.pause("s"));
        });
        assert_eq!(stop, Stop::Paused);
        stops.deny(denial("d", "s", call.clone()));
        stops.end_session("s");
        assert_eq!((stops.find("s", &call), stops.is_paused("other")), (None, true));
        assert!(stops.resume("other") && !stops.resume("other"));
        assert_eq!(*stops.now(), StopState::default());
    }

    #[test]
    fn too_many_session_denials_drop_the_oldest() {
        let dir = tempfile::tempdir().unwrap();
        let stops = Stops::open(dir.path().join("lockdown"));
        stops.deny(denial("first", "other", scope("read", DeniedTarget::Call)));
        for n in 0..=MAX_DENIALS {
            stops.deny(denial(&n.to_string(), "s", scope("read", DeniedTarget::Text(n.to_string()))));
        }
        let state = stops.now();
        assert_eq!(state.denials.len(), MAX_DENIALS + 1);
        assert_eq!((state.denials[0].id.as_str(), state.denials[1].id.as_str()), ("first", "1"));
    }
}
