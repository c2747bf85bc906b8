//! Task that owns the session records, records findings and applies the user's decisions.
//!
//! - INVARIANT: a finding is written to the audit log and then to the session record before the journal is deleted.
//!   After a crash between these steps, the finding is reported twice rather than lost.

use super::last_looks::LastLook;
use super::session_record::{FileCounts, SessionFacts, SessionRecord};
use ironcurtain_audit::{Audit, Entry, Event, FileChange, FileDecision, FileFinding};
use ironcurtain_protocol::LeftChoice;
use ironcurtain_sandbox::autostart::{
    ChangeKind, Finding, FinishedJournal, PutBackError, delete, exchange, put_back, quarantine,
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
    NoSession(String),
    /// The session has no undecided file with this path.
    #[error("session `{session}` has no undecided file `{path}`")]
    NoFile {
        /// Id of the session.
        session: String,
        /// Path of the file.
        path: String,
    },
    /// Moving the file to quarantine failed.
    #[error("failed to move `{path}` to quarantine: {problem}")]
    NotMoved {
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
    NotOver(String),
    /// Restoring or deleting the quarantined file failed.
    #[error("`{path}` remains in quarantine: {problem}")]
    NotPutBack {
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
    NotOnRecord(String),
}

/// Message to the recorder.
pub(super) enum RecorderMessage {
    /// A session started.
    Began { session: String, facts: SessionFacts },
    /// A session ended.
    Ended { session: String },
    /// Findings in a sandbox.
    Findings { name: String, findings: Vec<Finding> },
    /// A final check is complete and all its findings were sent, so its journal can be deleted.
    Finished { last: Option<LastLook>, done: Option<FinishedJournal> },
    /// The user decided about a file.
    Decide {
        session: String,
        path: String,
        choice: LeftChoice,
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
        // If a finding could not be recorded, the journals are kept, so that the finding is reported again at the next
        // start.
        let mut is_recorded = true;
        while let Some(found) = inbox.recv().await {
            match found {
                RecorderMessage::Began { session, facts } => {
                    let dir = self.sessions.join(&session);
                    let written = blocking(move || SessionRecord::begin(&dir, facts)?.write(&dir)).await;
                    said(&session, written);
                }
                RecorderMessage::Ended { session } => {
                    let ended_ms = Some(ironcurtain_audit::clock::now_ms());
                    let ended = self.change(&session, move |record| {
                        record.ended_ms = ended_ms;
                        Ok(())
                    });
                    let ended = ended.await;
                    said(&session, ended.map_err(io::Error::other));
                }
                RecorderMessage::Findings { name, findings } => {
                    is_recorded &= self.found(&name, findings).await
                }
                RecorderMessage::Finished { last, done } => {
                    if is_recorded {
                        done.into_iter().for_each(FinishedJournal::forget);
                    }
                    drop(last);
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
    async fn found(&self, name: &str, findings: Vec<Finding>) -> bool {
        if findings.is_empty() {
            return true;
        }
        let session = super::session_of(name);
        let time_ms = ironcurtain_audit::clock::now_ms();
        let (facts, news) = self.news(session, findings, time_ms).await;
        let mut is_recorded = true;
        for finding in &news {
            let mut entry = entry(finding, facts.as_ref());
            entry.session = Some(session.to_owned());
            tracing::warn!("{}", entry.summary);
            if let Err(problem) = self.audit.record(entry).await {
                tracing::error!(%problem, "failed to record a file that a session left behind");
                is_recorded = false;
            }
        }
        let added = self.change(session, move |record| {
            for finding in news {
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
    async fn news(
        &self,
        session: &str,
        findings: Vec<Finding>,
        time_ms: u64,
    ) -> (Option<SessionFacts>, Vec<Finding>) {
        let dir = self.sessions.join(session);
        match blocking(move || SessionRecord::read(&dir)).await {
            Ok(Some(mut record)) => {
                let news =
                    findings.into_iter().filter(|finding| record.add(finding.clone(), time_ms)).collect();
                (Some(record.facts), news)
            }
            Ok(None) => (None, findings),
            Err(problem) => {
                tracing::error!(%problem, session, "failed to read a session record");
                (None, findings)
            }
        }
    }

    async fn decide(&self, session: &str, path: String, choice: LeftChoice) -> Result<(), DecideError> {
        let (state, id, wanted) = (self.state.clone(), session.to_owned(), path.clone());
        let decided = self.change(session, move |record| {
            let found = match choice {
                LeftChoice::Keep | LeftChoice::Quarantine => record.undecided(&wanted),
                LeftChoice::PutBack | LeftChoice::Exchange | LeftChoice::Delete => {
                    record.in_quarantine(&wanted)
                }
            };
            let file = found.ok_or_else(|| nothing(choice, id, wanted.clone()))?;
            let decided = done(choice, &state, &wanted, file.kept_in().unwrap_or_default())?;
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
        self.audit.record(entry).await.map(drop).map_err(|e| DecideError::NotOnRecord(e.to_string()))
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
            let mut record = record.ok_or(DecideError::NoSession(id))?;
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

/// Carries out the user's decision about a file. `kept` is the file's path in quarantine.
fn done(choice: LeftChoice, state: &Path, path: &str, kept: &str) -> Result<FileDecision, DecideError> {
    let stays = |problem: PutBackError| DecideError::NotPutBack {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    Ok(match choice {
        LeftChoice::Keep => FileDecision::Kept,
        LeftChoice::Quarantine => {
            let refused =
                |e: io::Error| DecideError::NotMoved { path: path.to_owned(), problem: e.to_string() };
            FileDecision::Quarantined { moved_to: quarantine(state, path).map_err(refused)? }
        }
        LeftChoice::PutBack => {
            put_back(state, path, kept).map_err(stays)?;
            FileDecision::Returned
        }
        LeftChoice::Exchange => {
            let moved = exchange(state, path, kept).map_err(stays)?;
            moved.map_or(FileDecision::Returned, |moved_to| FileDecision::Exchanged { moved_to })
        }
        LeftChoice::Delete => {
            delete(state, path, kept).map_err(stays)?;
            FileDecision::Deleted
        }
    })
}

fn nothing(choice: LeftChoice, session: String, path: String) -> DecideError {
    match choice {
        LeftChoice::Keep | LeftChoice::Quarantine => DecideError::NoFile { session, path },
        LeftChoice::PutBack | LeftChoice::Exchange | LeftChoice::Delete => {
            DecideError::NotInQuarantine { session, path }
        }
    }
}

/// Creates the audit entry for a finding. File contents are stored only in the session record.
fn entry(finding: &Finding, facts: Option<&SessionFacts>) -> Entry {
    let whose = facts.map_or_else(
        || "a server of an unknown session".to_owned(),
        |facts| format!("the server {}", facts.server),
    );
    let (event, path, summary) = match finding {
        Finding::Quarantined { path, moved_to, when } => {
            let summary = format!(
                "{whose} left `{path}`, which runs {when}, without approval: it was moved to `{moved_to}`"
            );
            (Event::FileQuarantined, Some(path), summary)
        }
        Finding::Restored { path, keys } => {
            let keys = keys.join("`, `");
            let summary = format!(
                "{whose} changed `{keys}` in `{path}`, which makes git run programs: the change was reverted"
            );
            (Event::FilePutBack, Some(path), summary)
        }
        Finding::Left { path, when, .. } => {
            (Event::FileLeft, Some(path), format!("{whose} left `{path}`, which runs {when}"))
        }
        Finding::Unfinished { reason } => {
            let summary = format!("the check of what {whose} could write to is incomplete: {reason}");
            (Event::LookUnfinished, None, summary)
        }
    };
    let mut entry = Entry::new(event, summary);
    entry.paths = path.into_iter().cloned().collect();
    entry.client = facts.map(|facts| facts.client.clone());
    entry.server_name = facts.map(|facts| facts.server.clone());
    entry.sandboxed = Some(true);
    entry.finding = Some(on_record(finding));
    entry
}

fn on_record(finding: &Finding) -> FileFinding {
    match finding.clone() {
        Finding::Quarantined { path, moved_to, when } => FileFinding::Quarantined { path, moved_to, when },
        Finding::Restored { path, keys } => FileFinding::Restored { path, keys },
        Finding::Left { path, when, change, diff: _ } => {
            let change = match change {
                ChangeKind::New => FileChange::New,
                ChangeKind::Changed => FileChange::Changed,
            };
            FileFinding::Left { path, when, change, diff: None }
        }
        Finding::Unfinished { reason } => FileFinding::Unfinished { reason },
    }
}

fn said(session: &str, written: io::Result<()>) {
    if let Err(problem) = written {
        tracing::error!(%problem, session, "failed to write a session record");
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
