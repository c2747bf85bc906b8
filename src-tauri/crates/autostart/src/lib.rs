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
//! println!("{:?}", autostart.left_behind(&[]).await);
//! # Ok(())
//! # }
//! ```

mod alone;
mod last_looks;
mod recorder;
mod session_record;
mod view;
mod watching;

pub use alone::LoneWatch;
use last_looks::LastLook;
pub use last_looks::LastLooks;
pub use recorder::DecideError;
pub use session_record::SessionFacts;
pub use watching::{SandboxWatch, WatchError};

use ironcurtain_audit::Audit;
use ironcurtain_config::home::Home;
use ironcurtain_config::{AutostartSettings, GitConfigSettings};
use ironcurtain_containment::{Profile, Surroundings};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_protocol::{LeftChoice, LeftState, SessionRecordView};
use ironcurtain_sandbox::autostart::{AutostartMode, AutostartRules, GitConfig, Watcher};
use recorder::{Recorder, RecorderMessage, Undecided};
use session_record::{FileCounts, SessionRecord};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;
use watching::Watching;

/// Maximum number of sessions returned in a list.
const MAX_SESSIONS: usize = 100;

/// Handle to the watcher and the recorder. Clones share both.
#[derive(Debug, Clone)]
pub struct Autostart {
    watching: Result<Watching, WatchError>,
    found: mpsc::UnboundedSender<RecorderMessage>,
    undecided: watch::Receiver<Undecided>,
    last_looks: LastLooks,
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
    pub before: u64,
}

impl Autostart {
    /// Spawns the watcher and the recorder, and checks the folders that a killed process left unchecked.
    pub fn start(parts: AutostartParts<'_>) -> Self {
        let AutostartParts { home, audit, changes, sandboxes } = parts;
        let (found, inbox) = mpsc::unbounded_channel();
        let (counts, undecided) = watch::channel(Undecided::new());
        let (sessions, state) = (home.sessions(), home.sandboxes());
        let watching = Watching::start(&state, found.clone());
        let watching = watching.map_err(|problem| WatchError::NoWatcher(problem.to_string()));
        let last_looks = LastLooks::new(sandboxes);
        let all = Self { watching, found, undecided, last_looks, sessions: sessions.clone() };
        all.clone().finish_predecessors_checks(state.clone());
        tokio::spawn(Recorder { sessions, state, audit, undecided: counts, changes }.run(inbox));
        all
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
        let WatchedServer { session, server, before } = watched;
        let last = self.last_looks.of(session, format!("session {session}, server {server}"));
        self.watching.as_ref().map_err(Clone::clone)?.begin(name_of(session, before), rules, last).await
    }

    /// Creates a session's record when the session starts.
    pub fn began(&self, session: &str, facts: SessionFacts) {
        self.tell(RecorderMessage::Began { session: session.to_owned(), facts });
    }

    /// Records the end of a session.
    pub fn ended(&self, session: &str) {
        self.tell(RecorderMessage::Ended { session: session.to_owned() });
    }

    /// Returns the number of undecided files of a session.
    pub fn undecided(&self, session: &str) -> usize {
        self.undecided.borrow().get(session).copied().unwrap_or_default().undecided
    }

    /// Returns the final checks in progress.
    pub fn last_looks(&self) -> &LastLooks {
        &self.last_looks
    }

    /// Returns a session's record for display.
    ///
    /// # Errors
    /// Returns a [`DecideError`] if the session has no record or the record cannot be read.
    pub async fn session(&self, session: &str) -> Result<SessionRecordView, DecideError> {
        checked(session)?;
        let failed = |problem: String| DecideError::Record { session: session.to_owned(), problem };
        let (dir, id) = (self.sessions.join(session), session.to_owned());
        let looking = self.last_looks.is_of(session);
        let read = move || {
            SessionRecord::read(&dir).map(|found| found.map(|record| view::session(&id, record, looking)))
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|e| failed(e.to_string()))?;
        let found = read.map_err(|e| failed(e.to_string()))?;
        found.ok_or_else(|| DecideError::NoSession(session.to_owned()))
    }

    /// Returns closed sessions with undecided files, newest first. `live` lists the ids of open sessions.
    pub async fn left_behind(&self, live: &[String]) -> Vec<SessionRecordView> {
        let mut found = self.records(|id, count| count.undecided > 0 && !live.contains(id)).await;
        found.retain(|one| one.files.iter().any(|file| file.state == LeftState::Left));
        found.truncate(MAX_SESSIONS);
        found
    }

    /// Returns sessions with quarantined files, newest first. Each session lists only its quarantined files and, for
    /// each path, only the newest file, because decisions apply to that file.
    pub async fn in_quarantine(&self) -> Vec<SessionRecordView> {
        let mut found = self.records(|_, count| count.in_quarantine > 0).await;
        for one in &mut found {
            one.files.retain(|file| file.moved_to.is_some());
            view::keep_newest(&mut one.files);
        }
        found.retain(|one| !one.files.is_empty());
        found.truncate(MAX_SESSIONS);
        found
    }

    /// Returns the records of the sessions for which `is_meant` returns `true`, newest first.
    async fn records(&self, is_meant: impl Fn(&String, &FileCounts) -> bool) -> Vec<SessionRecordView> {
        let counts = self.undecided.borrow().clone();
        let mut found = Vec::new();
        for (id, _) in counts.iter().filter(|(id, count)| is_meant(id, count)) {
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
        choice: LeftChoice,
        is_live: bool,
    ) -> Result<(), DecideError> {
        checked(session)?;
        let puts_back = matches!(choice, LeftChoice::PutBack | LeftChoice::Exchange);
        if puts_back && (is_live || self.last_looks.is_of(session)) {
            return Err(DecideError::NotOver(session.to_owned()));
        }
        let (done, decided) = oneshot::channel();
        self.tell(RecorderMessage::Decide { session: session.to_owned(), path, choice, done });
        decided
            .await
            .map_err(|e| DecideError::Record { session: session.to_owned(), problem: e.to_string() })?
    }

    fn tell(&self, found: RecorderMessage) {
        // The recorder runs as long as the trusted process does.
        let _ = self.found.send(found);
    }

    /// Runs the final checks that the previous process left incomplete, in the background.
    fn finish_predecessors_checks(self, state: PathBuf) {
        let looks: Vec<LastLook> =
            self.predecessors_sessions(&state).iter().map(|session| self.final_check_of(session)).collect();
        tokio::task::spawn_blocking(move || {
            match Watcher::new(&state) {
                Ok(mut watcher) => {
                    for (name, findings, done) in watcher.sweep() {
                        self.tell(RecorderMessage::Findings { name, findings });
                        self.tell(RecorderMessage::Finished { last: None, done });
                    }
                }
                Err(problem) => {
                    tracing::error!(%problem, "failed to complete the autostart checks from before IronCurtain was killed")
                }
            }
            looks
                .into_iter()
                .for_each(|last| self.tell(RecorderMessage::Finished { last: Some(last), done: None }));
        });
    }

    /// Returns the sessions for which the previous process left a sandbox journal.
    fn predecessors_sessions(&self, state: &Path) -> BTreeSet<String> {
        let journals = std::fs::read_dir(state.join("autostart")).into_iter().flatten().flatten();
        let names = journals.filter_map(|journal| journal.file_name().into_string().ok());
        let sessions = names.filter_map(|name| Some(name.split(['-', '.', '~']).next()?.to_owned()));
        sessions.filter(|session| checked(session).is_ok() && self.sessions.join(session).is_dir()).collect()
    }

    fn final_check_of(&self, session: &str) -> LastLook {
        let words = format!("session {session}, which was open when IronCurtain was killed");
        let mut look = self.last_looks.of(session, words);
        look.begins();
        look
    }
}

/// Returns the autostart rules for a sandbox with this profile.
pub fn rules(profile: &Profile, around: &Surroundings) -> AutostartRules {
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
        home: Some(around.home.as_str().to_owned()),
        denied: around.unwritable(profile),
    }
}

/// Returns `true` if the user's programs run the content of this file.
pub fn runs_later(path: &CanonicalPath, home: &CanonicalPath) -> bool {
    ironcurtain_sandbox::autostart::runs_later(path.as_str(), Some(home.as_str())).is_some()
}

/// Returns the watcher's name for a server process's sandbox. The name is unique within the trusted process.
fn name_of(session: &str, before: u64) -> String {
    format!("{session}.{before}")
}

fn session_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(session, _)| session)
}

/// Returns an error unless the id is a safe folder name.
fn checked(session: &str) -> Result<(), DecideError> {
    let is_plain =
        !session.is_empty() && session.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if is_plain && Path::new(session).file_name().is_some() {
        Ok(())
    } else {
        Err(DecideError::NoSession(ironcurtain_visible::line(session)))
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
            let all = Autostart::start(AutostartParts { home: &home, audit, changes, sandboxes: &sandboxes });
            let named = "session abc2, which was open when IronCurtain was killed";
            assert_eq!(all.last_looks().words(), [named]);
            sandboxes.close();
            let heard = tokio::spawn(async move { sandboxes.wait().await });
            tokio::task::yield_now().await;
            assert!(!heard.is_finished());
            release.send(()).unwrap();
            taken.await.unwrap().unwrap();
            heard.await.unwrap();
            assert_eq!(all.last_looks().words(), [""; 0]);
        });
    }

    #[test]
    fn a_sandbox_is_named_by_its_session_and_a_path_is_not_an_id() {
        assert_eq!(session_of(&name_of("abc2", 3)), "abc2");
        assert_eq!(checked("abc2"), Ok(()));
        for bad in ["", "..", "a/b", "A", "a.0", "\u{202e}a"] {
            assert!(matches!(checked(bad), Err(DecideError::NoSession(_))), "{bad:?}");
        }
    }
}
