//! Task that owns the session records, records findings and applies the user's decisions.
//!
//! - INVARIANT: a finding is written to the audit log and then to the session record before the journal is deleted.
//!   After a crash between these steps, the finding is reported twice rather than lost.

use super::final_checks::FinalCheck;
use super::session_record::{FileCounts, SessionFacts, SessionRecord};
use ironcurtain_audit::{Audit, Entry, Event, FileChange, FileDecision, FileFinding};
use ironcurtain_protocol::AutostartFileChoice;
use ironcurtain_sandbox::autostart::{
    ChangeKind, Finding, FinishedJournal, RestoreError, delete, exchange, quarantine, restore,
};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot, watch};

/// Failure to apply a decision about a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    /// No session has this id.
    #[error("unknown session `{0}`")]
    UnknownSession(String),
    /// The session has no undecided file with this path.
    #[error("session `{session}` has no undecided file `{path}`")]
    NoUndecidedFile {
        /// Id of the session.
        session: String,
        /// Path of the file.
        path: String,
    },
    /// Moving the file to quarantine failed.
    #[error("failed to move `{path}` to quarantine: {problem}")]
    QuarantineFailed {
        /// Path of the file.
        path: String,
        /// Operating system error.
        problem: String,
    },
    /// The file is not in quarantine.
    #[error("session `{session}` has no file `{path}` in quarantine")]
    NotInQuarantine {
        /// Id of the session.
        session: String,
        /// Path of the file.
        path: String,
    },
    /// The session is open, so its server could change the restored file again.
    #[error(
        "session `{0}` is still open, so its server could change the file again; close the session first"
    )]
    SessionOpen(String),
    /// Restoring or deleting the quarantined file failed.
    #[error("`{path}` remains in quarantine: {problem}")]
    RestoreFailed {
        /// Path of the file.
        path: String,
        /// Description of the error.
        problem: String,
    },
    /// The session record cannot be read or written.
    #[error("failed to access the record of session `{session}`: {problem}")]
    Record {
        /// Id of the session.
        session: String,
        /// Operating system error.
        problem: String,
    },
    /// The decision could not be written to the audit log.
    #[error("the decision took effect, but was not recorded: {0}")]
    NotRecorded(String),
}

/// Message to the recorder.
pub(super) enum RecorderMessage {
    /// A session started.
    SessionStarted { session: String, facts: SessionFacts },
    /// A session ended.
    SessionEnded { session: String },
    /// Findings in a sandbox.
    Findings { name: String, findings: Vec<Finding> },
    /// A final check is complete and all its findings were sent, so its journal can be deleted.
    CheckFinished { check: Option<FinalCheck>, done: Option<FinishedJournal> },
    /// The user decided about a file.
    Decide {
        session: String,
        path: String,
        choice: AutostartFileChoice,
        done: oneshot::Sender<Result<(), DecideError>>,
    },
}

/// Number of undecided and quarantined files, by session.
pub(super) type Undecided = BTreeMap<String, FileCounts>;

/// State of the recorder task.
pub(super) struct Recorder {
    /// Directory of the session records.
    pub(super) sessions: PathBuf,
    /// State directory of the sandboxes, which contains the quarantine.
    pub(super) state: PathBuf,
    pub(super) audit: Audit,
    pub(super) undecided: watch::Sender<Undecided>,
    /// Counter that is incremented whenever displayed information changes.
    pub(super) changes: watch::Sender<u64>,
}

impl Recorder {
    pub(super) async fn run(self, mut inbox: mpsc::UnboundedReceiver<RecorderMessage>) {
        self.count_all().await;
        // If a finding could not be recorded, the journals are kept so that the finding is reported again at the next
        // start.
        let mut is_recorded = true;
        while let Some(found) = inbox.recv().await {
            match found {
                RecorderMessage::SessionStarted { session, facts } => {
                    let dir = self.sessions.join(&session);
                    let written =
                        blocking(move || SessionRecord::create_or_reopen(&dir, facts)?.write(&dir)).await;
                    log_write_error(&session, written);
                }
                RecorderMessage::SessionEnded { session } => {
                    let ended_ms = Some(ironcurtain_audit::clock::now_ms());
                    let ended = self.change(&session, move |record| {
                        record.ended_ms = ended_ms;
                        Ok(())
                    });
                    let ended = ended.await;
                    log_write_error(&session, ended.map_err(io::Error::other));
                }
                RecorderMessage::Findings { name, findings } => {
                    is_recorded &= self.record_findings(&name, findings).await
                }
                RecorderMessage::CheckFinished { check, done } => {
                    if is_recorded {
                        done.into_iter().for_each(FinishedJournal::delete);
                    }
                    drop(check);
                }
                RecorderMessage::Decide { session, path, choice, done } => {
                    let decided = self.decide(&session, path, choice).await;
                    // An error means that the caller has stopped waiting. The list still shows the result.
                    let _ = done.send(decided);
                }
            }
            self.changes.send_modify(|n| *n += 1);
        }
    }

    /// Counts the files in all session records.
    async fn count_all(&self) {
        let sessions = self.sessions.clone();
        let counted = blocking(move || {
            let entries = std::fs::read_dir(&sessions)?.filter_map(Result::ok);
            let named =
                entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
            let counts = named.filter_map(|(session, dir)| {
                let count = SessionRecord::read(&dir).ok()??.count();
                (count != FileCounts::default()).then_some((session, count))
            });
            Ok(counts.collect::<Undecided>())
        });
        match counted.await {
            Ok(counts) => drop(self.undecided.send_replace(counts)),
            Err(problem) => tracing::error!(%problem, "failed to read the session records"),
        }
    }

    /// Records findings. Returns `true` if all of them were written to the audit log.
    async fn record_findings(&self, name: &str, findings: Vec<Finding>) -> bool {
        if findings.is_empty() {
            return true;
        }
        let session = super::session_id(name);
        let time_ms = ironcurtain_audit::clock::now_ms();
        let (facts, new_findings) = self.new_findings(session, findings, time_ms).await;
        let mut is_recorded = true;
        for finding in &new_findings {
            let mut entry = audit_entry(finding, facts.as_ref());
            entry.session = Some(session.to_owned());
            tracing::warn!("{}", entry.summary);
            if let Err(problem) = self.audit.record(entry).await {
                tracing::error!(%problem, "failed to record a file that a session left behind");
                is_recorded = false;
            }
        }
        let added = self.change(session, move |record| {
            for finding in new_findings {
                record.add(finding, time_ms);
            }
            Ok(())
        });
        if let Err(problem) = added.await {
            tracing::error!(%problem, "failed to add findings to a session record");
        }
        is_recorded
    }

    /// Returns a session's facts and the findings that are not yet in its record. Returns all findings if there is no
    /// record.
    async fn new_findings(
        &self,
        session: &str,
        findings: Vec<Finding>,
        time_ms: u64,
    ) -> (Option<SessionFacts>, Vec<Finding>) {
        let dir = self.sessions.join(session);
        match blocking(move || SessionRecord::read(&dir)).await {
            Ok(Some(mut record)) => {
                let new_findings =
                    findings.into_iter().filter(|finding| record.add(finding.clone(), time_ms)).collect();
                (Some(record.facts), new_findings)
            }
            Ok(None) => (None, findings),
            Err(problem) => {
                tracing::error!(%problem, session, "failed to read a session record");
                (None, findings)
            }
        }
    }

    async fn decide(
        &self,
        session: &str,
        path: String,
        choice: AutostartFileChoice,
    ) -> Result<(), DecideError> {
        let (state, id, wanted) = (self.state.clone(), session.to_owned(), path.clone());
        let decided = self.change(session, move |record| {
            let found = match choice {
                AutostartFileChoice::Keep | AutostartFileChoice::Quarantine => record.undecided(&wanted),
                AutostartFileChoice::PutBack
                | AutostartFileChoice::Exchange
                | AutostartFileChoice::Delete => record.in_quarantine(&wanted),
            };
            let file = found.ok_or_else(|| not_found(choice, id, wanted.clone()))?;
            let decided = apply_choice(choice, &state, &wanted, file.quarantine_path().unwrap_or_default())?;
            file.decided = Some(decided.clone());
            Ok((record.facts.clone(), decided))
        });
        let (facts, decided) = decided.await?;
        let summary = match &decided {
            FileDecision::Kept => format!("you kept `{path}`, which the server {} left", facts.server),
            FileDecision::Quarantined { moved_to } => {
                format!("you moved `{path}`, which the server {} left, to `{moved_to}`", facts.server)
            }
            FileDecision::Returned => {
                format!("you restored `{path}`, which the server {} left, from quarantine", facts.server)
            }
            FileDecision::Exchanged { moved_to } => {
                let server = &facts.server;
                format!(
                    "you restored `{path}`, which the server {server} left, from quarantine; the file it replaced was moved to `{moved_to}`"
                )
            }
            FileDecision::Deleted => {
                format!("you deleted `{path}`, which the server {} left, from quarantine", facts.server)
            }
        };
        let mut entry = Entry::new(Event::FileDecided, summary);
        entry.paths = vec![path];
        entry.session = Some(session.to_owned());
        entry.client = Some(facts.client);
        entry.server_name = Some(facts.server);
        entry.file_decision = Some(decided);
        self.audit.record(entry).await.map(drop).map_err(|e| DecideError::NotRecorded(e.to_string()))
    }

    /// Applies `change` to a session's record, writes the record and updates the counts.
    async fn change<T: Send + 'static>(
        &self,
        session: &str,
        change: impl FnOnce(&mut SessionRecord) -> Result<T, DecideError> + Send + 'static,
    ) -> Result<T, DecideError> {
        let (dir, id) = (self.sessions.join(session), session.to_owned());
        let failed = {
            let session = session.to_owned();
            move |problem: io::Error| DecideError::Record { session, problem: problem.to_string() }
        };
        let work = move || -> Result<(T, FileCounts), DecideError> {
            let record = SessionRecord::read(&dir).map_err(failed.clone())?;
            let mut record = record.ok_or(DecideError::UnknownSession(id))?;
            let done = change(&mut record)?;
            record.write(&dir).map_err(failed)?;
            Ok((done, record.count()))
        };
        let problem = |e: tokio::task::JoinError| DecideError::Record {
            session: session.to_owned(),
            problem: e.to_string(),
        };
        let (done, count) = tokio::task::spawn_blocking(work).await.map_err(problem)??;
        self.undecided.send_modify(|all| {
            if count == FileCounts::default() {
                all.remove(session);
            } else {
                all.insert(session.to_owned(), count);
            }
        });
        Ok(done)
    }
}

/// Carries out the user's decision about a file. `quarantined` is the file's path in quarantine.
fn apply_choice(
    choice: AutostartFileChoice,
    state: &Path,
    path: &str,
    quarantined: &str,
) -> Result<FileDecision, DecideError> {
    let restore_failed = |problem: RestoreError| DecideError::RestoreFailed {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    Ok(match choice {
        AutostartFileChoice::Keep => FileDecision::Kept,
        AutostartFileChoice::Quarantine => {
            let refused = |e: io::Error| DecideError::QuarantineFailed {
                path: path.to_owned(),
                problem: e.to_string(),
            };
            FileDecision::Quarantined { moved_to: quarantine(state, path).map_err(refused)? }
        }
        AutostartFileChoice::PutBack => {
            restore(state, path, quarantined).map_err(restore_failed)?;
            FileDecision::Returned
        }
        AutostartFileChoice::Exchange => {
            let moved = exchange(state, path, quarantined).map_err(restore_failed)?;
            moved.map_or(FileDecision::Returned, |moved_to| FileDecision::Exchanged { moved_to })
        }
        AutostartFileChoice::Delete => {
            delete(state, path, quarantined).map_err(restore_failed)?;
            FileDecision::Deleted
        }
    })
}

fn not_found(choice: AutostartFileChoice, session: String, path: String) -> DecideError {
    match choice {
        AutostartFileChoice::Keep | AutostartFileChoice::Quarantine => {
            DecideError::NoUndecidedFile { session, path }
        }
        AutostartFileChoice::PutBack | AutostartFileChoice::Exchange | AutostartFileChoice::Delete => {
            DecideError::NotInQuarantine { session, path }
        }
    }
}

/// Creates the audit entry for a finding. File contents are stored only in the session record.
fn audit_entry(finding: &Finding, facts: Option<&SessionFacts>) -> Entry {
    let subject = facts.map_or_else(
        || "a server of an unknown session".to_owned(),
        |facts| format!("the server {}", facts.server),
    );
    let (event, path, summary) = match finding {
        Finding::Quarantined { path, moved_to, when } => {
            let summary = format!(
                "{subject} left `{path}`, which runs {when}, without approval: it was moved to `{moved_to}`"
            );
            (Event::FileQuarantined, Some(path), summary)
        }
        Finding::Restored { path, keys } => {
            let keys = keys.join("`, `");
            let summary = format!(
                "{subject} changed `{keys}` in `{path}`, which makes git run programs: the change was reverted"
            );
            (Event::GitConfigRestored, Some(path), summary)
        }
        Finding::AutostartFile { path, when, .. } => {
            (Event::AutostartFileChanged, Some(path), format!("{subject} left `{path}`, which runs {when}"))
        }
        Finding::Unfinished { reason } => {
            let summary = format!("the check of what {subject} could write to is incomplete: {reason}");
            (Event::ScanIncomplete, None, summary)
        }
    };
    let mut entry = Entry::new(event, summary);
    entry.paths = path.into_iter().cloned().collect();
    entry.client = facts.map(|facts| facts.client.clone());
    entry.server_name = facts.map(|facts| facts.server.clone());
    entry.sandboxed = Some(true);
    entry.finding = Some(audit_finding(finding));
    entry
}

fn audit_finding(finding: &Finding) -> FileFinding {
    match finding.clone() {
        Finding::Quarantined { path, moved_to, when } => FileFinding::Quarantined { path, moved_to, when },
        Finding::Restored { path, keys } => FileFinding::Restored { path, keys },
        Finding::AutostartFile { path, when, change, diff: _ } => {
            let change = match change {
                ChangeKind::New => FileChange::New,
                ChangeKind::Changed => FileChange::Changed,
            };
            FileFinding::InPlace { path, when, change, diff: None }
        }
        Finding::Unfinished { reason } => FileFinding::ScanIncomplete { reason },
    }
}

fn log_write_error(session: &str, written: io::Result<()>) {
    if let Err(problem) = written {
        tracing::error!(%problem, session, "failed to write a session record");
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
