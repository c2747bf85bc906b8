//! Watches for autostart files, records the findings and applies the user's decisions.
//!
//! - Each sandbox with write access has a [`SandboxWatch`], from before its first root becomes writable until all its
//!   processes have exited.
//! - Findings survive a crash of the trusted process. They are stored in the session record, in the audit log and, for
//!   unchecked files, in the watcher's journal.
//! - Only the user's own programs can keep or move a file. Agents cannot request either.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use ironcurtain_audit::Audit;
//! use ironcurtain_autostart::{Autostart, AutostartParts};
//! use ironcurtain_config::home::Home;
//!
//! let home = Home::from_env()?;
//! let audit = Audit::open(&home.audit(), |_| ())?;
//! let (changes, sandboxes) = (Default::default(), Default::default());
//! let autostart = Autostart::start(AutostartParts { home: &home, audit, changes, sandboxes: &sandboxes });
//! println!("{:?}", autostart.sessions_with_undecided(&[]).await);
//! # Ok(())
//! # }
//! ```

mod final_checks;
mod recorder;
mod session_record;
mod sessionless_watch;
mod view;
mod watcher_thread;

use final_checks::FinalCheck;
pub use final_checks::FinalChecks;
pub use recorder::DecideError;
pub use session_record::SessionFacts;
pub use sessionless_watch::SessionlessWatch;
pub use watcher_thread::{SandboxWatch, WatchError};

use ironcurtain_audit::Audit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{AutostartSettings, GitConfigSettings};
use ironcurtain_containment::{Profile, SandboxContext};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_protocol::{AutostartFileChoice, AutostartFileState, SessionRecordView};
use ironcurtain_sandbox::autostart::{AutostartMode, AutostartRules, GitConfig, Watcher};
use recorder::{Recorder, RecorderMessage, Undecided};
use session_record::{FileCounts, SessionRecord};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use watcher_thread::WatcherHandle;

/// Maximum number of sessions returned in a list.
const MAX_SESSIONS: usize = 100;

/// Handle to the watcher and the recorder. Clones share both.
#[derive(Debug, Clone)]
pub struct Autostart {
    watcher: Result<WatcherHandle, WatchError>,
    recorder: mpsc::UnboundedSender<RecorderMessage>,
    undecided: watch::Receiver<Undecided>,
    final_checks: FinalChecks,
    sessions: PathBuf,
}

/// Arguments for [`Autostart::start`].
pub struct AutostartParts<'a> {
    /// Directories of the trusted process.
    pub home: &'a Home,
    /// Audit log in which findings and decisions are recorded.
    pub audit: Audit,
    /// Counter that is incremented whenever a session record changes.
    pub changes: watch::Sender<u64>,
    /// Tracker of running sandboxes. Shutdown waits for the tracker, and therefore for all final checks.
    pub sandboxes: &'a TaskTracker,
}

/// Server process whose sandbox is watched.
#[derive(Debug, Clone, Copy)]
pub struct WatchedServer<'a> {
    /// Id of the session.
    pub session: &'a str,
    /// Name of the server.
    pub server: &'a str,
    /// Number of processes that the session has previously started for this server.
    pub earlier_processes: u64,
}

impl Autostart {
    /// Spawns the watcher and the recorder and checks the folders that a killed process left unchecked.
    pub fn start(parts: AutostartParts<'_>) -> Self {
        let AutostartParts { home, audit, changes, sandboxes } = parts;
        let (recorder, inbox) = mpsc::unbounded_channel();
        let (counts, undecided) = watch::channel(Undecided::new());
        let (sessions, state) = (home.sessions(), home.sandboxes());
        let watcher = WatcherHandle::start(&state, recorder.clone());
        let watcher = watcher.map_err(|problem| WatchError::NotRunning(problem.to_string()));
        let final_checks = FinalChecks::new(sandboxes);
        let autostart = Self { watcher, recorder, undecided, final_checks, sessions: sessions.clone() };
        autostart.clone().finish_earlier_checks(state.clone());
        tokio::spawn(Recorder { sessions, state, audit, undecided: counts, changes }.run(inbox));
        autostart
    }

    /// Starts watching a server's sandbox.
    ///
    /// # Errors
    /// Returns a [`WatchError`] if the sandbox cannot be watched. The caller must then not start the server.
    pub async fn watch(
        &self,
        watched: WatchedServer<'_>,
        rules: AutostartRules,
    ) -> Result<SandboxWatch, WatchError> {
        let WatchedServer { session, server, earlier_processes } = watched;
        let check = self.final_checks.register(session, format!("session {session}, server {server}"));
        self.watcher
            .as_ref()
            .map_err(Clone::clone)?
            .begin(watcher_name(session, earlier_processes), rules, check)
            .await
    }

    /// Creates a session's record when the session starts.
    pub fn session_started(&self, session: &str, facts: SessionFacts) {
        self.send_to_recorder(RecorderMessage::SessionStarted { session: session.to_owned(), facts });
    }

    /// Records the end of a session.
    pub fn session_ended(&self, session: &str) {
        self.send_to_recorder(RecorderMessage::SessionEnded { session: session.to_owned() });
    }

    /// Returns the number of undecided files of a session.
    pub fn undecided(&self, session: &str) -> usize {
        self.undecided.borrow().get(session).copied().unwrap_or_default().undecided
    }

    /// Returns the final checks in progress.
    pub fn final_checks(&self) -> &FinalChecks {
        &self.final_checks
    }

    /// Returns a session's record for display.
    ///
    /// # Errors
    /// Returns a [`DecideError`] if the session has no record or the record cannot be read.
    pub async fn session(&self, session: &str) -> Result<SessionRecordView, DecideError> {
        validate_id(session)?;
        let failed = |problem: String| DecideError::Record { session: session.to_owned(), problem };
        let (dir, id) = (self.sessions.join(session), session.to_owned());
        let is_checking = self.final_checks.is_checking(session);
        let read = move || {
            SessionRecord::read(&dir)
                .map(|found| found.map(|record| view::session_view(&id, record, is_checking)))
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|e| failed(e.to_string()))?;
        let found = read.map_err(|e| failed(e.to_string()))?;
        found.ok_or_else(|| DecideError::UnknownSession(session.to_owned()))
    }

    /// Returns closed sessions with undecided files, newest first. `live` lists the ids of open sessions.
    pub async fn sessions_with_undecided(&self, live: &[String]) -> Vec<SessionRecordView> {
        let mut found = self.records(|id, count| count.undecided > 0 && !live.contains(id)).await;
        found.retain(|one| one.files.iter().any(|file| file.state == AutostartFileState::Undecided));
        found.truncate(MAX_SESSIONS);
        found
    }

    /// Returns sessions with quarantined files, newest first. Each session lists only its quarantined files and, for
    /// each path, only the newest file, because decisions apply to that file.
    pub async fn sessions_in_quarantine(&self) -> Vec<SessionRecordView> {
        let mut found = self.records(|_, count| count.in_quarantine > 0).await;
        for one in &mut found {
            one.files.retain(|file| file.moved_to.is_some());
            view::keep_newest(&mut one.files);
        }
        found.retain(|one| !one.files.is_empty());
        found.truncate(MAX_SESSIONS);
        found
    }

    /// Returns the records of the sessions for which `is_selected` returns `true`, newest first.
    async fn records(&self, is_selected: impl Fn(&String, &FileCounts) -> bool) -> Vec<SessionRecordView> {
        let counts = self.undecided.borrow().clone();
        let mut found = Vec::new();
        for (id, _) in counts.iter().filter(|(id, count)| is_selected(id, count)) {
            // An unreadable record is skipped here, and reported when it is requested by id.
            found.extend(self.session(id).await.ok());
        }
        found.sort_by_key(|session| std::cmp::Reverse(session.started_ms));
        found
    }

    /// Keeps, quarantines, restores or deletes a session's file. Restoring requires that the session is closed.
    ///
    /// # Errors
    /// Returns a [`DecideError`] if the decision cannot be applied or recorded.
    pub async fn decide(
        &self,
        session: &str,
        path: String,
        choice: AutostartFileChoice,
        is_live: bool,
    ) -> Result<(), DecideError> {
        validate_id(session)?;
        let restores = matches!(choice, AutostartFileChoice::PutBack | AutostartFileChoice::Exchange);
        if restores && (is_live || self.final_checks.is_checking(session)) {
            return Err(DecideError::SessionOpen(session.to_owned()));
        }
        let (done, decided) = oneshot::channel();
        self.send_to_recorder(RecorderMessage::Decide { session: session.to_owned(), path, choice, done });
        decided
            .await
            .map_err(|e| DecideError::Record { session: session.to_owned(), problem: e.to_string() })?
    }

    fn send_to_recorder(&self, message: RecorderMessage) {
        // The recorder runs as long as the trusted process does.
        let _ = self.recorder.send(message);
    }

    /// Runs the final checks that the previous process left incomplete, in the background.
    fn finish_earlier_checks(self, state: PathBuf) {
        let checks: Vec<FinalCheck> = self
            .interrupted_sessions(&state)
            .iter()
            .map(|session| self.register_interrupted(session))
            .collect();
        tokio::task::spawn_blocking(move || {
            match Watcher::new(&state) {
                Ok(mut watcher) => {
                    for (name, findings, done) in watcher.finish_interrupted() {
                        self.send_to_recorder(RecorderMessage::Findings { name, findings });
                        self.send_to_recorder(RecorderMessage::CheckFinished { check: None, done });
                    }
                }
                Err(problem) => {
                    tracing::error!(%problem, "failed to complete the autostart checks from before IronCurtain was killed")
                }
            }
            checks.into_iter().for_each(|check| {
                self.send_to_recorder(RecorderMessage::CheckFinished { check: Some(check), done: None })
            });
        });
    }

    /// Returns the sessions for which the previous process left a sandbox journal.
    fn interrupted_sessions(&self, state: &Path) -> BTreeSet<String> {
        let journals = std::fs::read_dir(state.join("autostart")).into_iter().flatten().flatten();
        let names = journals.filter_map(|journal| journal.file_name().into_string().ok());
        let sessions = names.filter_map(|name| Some(name.split(['-', '.', '~']).next()?.to_owned()));
        sessions
            .filter(|session| validate_id(session).is_ok() && self.sessions.join(session).is_dir())
            .collect()
    }

    fn register_interrupted(&self, session: &str) -> FinalCheck {
        let description = format!("session {session}, which was open when IronCurtain was killed");
        let mut check = self.final_checks.register(session, description);
        check.mark_started();
        check
    }
}

/// Returns the autostart rules for a sandbox with this profile.
pub fn autostart_rules(profile: &Profile, context: &SandboxContext) -> AutostartRules {
    AutostartRules {
        mode: match profile.autostart {
            AutostartSettings::Listed => AutostartMode::Listed,
            AutostartSettings::Strict => AutostartMode::Strict,
        },
        git_config: match profile.git_config {
            Some(GitConfigSettings::Guarded) => GitConfig::Guarded,
            Some(GitConfigSettings::Closed) | None => GitConfig::Closed,
        },
        allow: profile.allow_persistence.clone(),
        home: Some(context.home.as_str().to_owned()),
        denied: context.entry_read_only_paths(profile),
    }
}

/// Returns `true` if the user's programs run the content of this file.
pub fn is_autostart_file(path: &CanonicalPath, home: &CanonicalPath) -> bool {
    ironcurtain_sandbox::autostart::autostart_condition(path.as_str(), Some(home.as_str())).is_some()
}

/// Returns the watcher's name for a server process's sandbox. The name is unique within the trusted process.
fn watcher_name(session: &str, earlier_processes: u64) -> String {
    format!("{session}.{earlier_processes}")
}

fn session_id(name: &str) -> &str {
    name.split_once('.').map_or(name, |(session, _)| session)
}

/// Returns an error unless the id is a safe folder name.
fn validate_id(session: &str) -> Result<(), DecideError> {
    let is_plain =
        !session.is_empty() && session.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if is_plain && Path::new(session).file_name().is_some() {
        Ok(())
    } else {
        Err(DecideError::UnknownSession(ironcurtain_visible::line(session)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shutdown_waits_for_the_checks_of_a_killed_predecessors_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), &dir.path().join("person"));
        home.prepare().unwrap();
        let journals = home.sandboxes().join("autostart");
        for dir in [&journals, &home.sessions().join("abc2")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        // The second session has only a journal, no record.
        for name in ["abc2.0", "gone3.0"] {
            std::fs::write(journals.join(name), "").unwrap();
        }
        // The only blocking thread is busy, so the check has to wait.
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build();
        runtime.unwrap().block_on(async {
            let (release, held) = std::sync::mpsc::channel::<()>();
            let taken = tokio::task::spawn_blocking(move || held.recv());
            let sandboxes = TaskTracker::new();
            let audit = Audit::open(&home.audit(), |_| ()).unwrap();
            let changes = watch::Sender::new(0);
            let autostart =
                Autostart::start(AutostartParts { home: &home, audit, changes, sandboxes: &sandboxes });
            let named = "session abc2, which was open when IronCurtain was killed";
            assert_eq!(autostart.final_checks().descriptions(), [named]);
            sandboxes.close();
            let shutdown = tokio::spawn(async move { sandboxes.wait().await });
            tokio::task::yield_now().await;
            assert!(!shutdown.is_finished());
            release.send(()).unwrap();
            taken.await.unwrap().unwrap();
            shutdown.await.unwrap();
            assert_eq!(autostart.final_checks().descriptions(), [""; 0]);
        });
    }

    #[test]
    fn a_sandbox_is_named_by_its_session_and_a_path_is_not_an_id() {
        assert_eq!(session_id(&watcher_name("abc2", 3)), "abc2");
        assert_eq!(validate_id("abc2"), Ok(()));
        for bad in ["", "..", "a/b", "A", "a.0", "\u{202e}a"] {
            assert!(matches!(validate_id(bad), Err(DecideError::UnknownSession(_))), "{bad:?}");
        }
    }
}
