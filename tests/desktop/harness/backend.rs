//! A fake daemon with data for every page of the window.

mod fake_data;
mod picture_data;

use fake_data::{activity, grants, questions, records, sessions};
use ironcurtain_consent::ReopenError;
use ironcurtain_desktop::{Backend, BoxFuture, Trusted};
use ironcurtain_protocol::{
    ActivityView, AuditCheckView, AutostartFileChoice, AutostartFileState, ErrorCode, GrantView,
    PromptLocation, Protection, QuestionsView, Reply, Request, SessionRecordView, SessionView, StatusView,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

pub(crate) struct Made {
    /// Real daemon that reads the settings of agents, if any.
    trusted: Option<Trusted>,
    state: Arc<Mutex<State>>,
    changes: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

struct State {
    sessions: Vec<SessionView>,
    grants: Vec<GrantView>,
    records: Vec<SessionRecordView>,
    questions: QuestionsView,
    activity: Vec<ActivityView>,
    lockdown: bool,
}

impl Made {
    pub(crate) fn new() -> Self {
        let now = now();
        let state = State {
            sessions: sessions(now),
            grants: grants(now),
            records: records(now),
            questions: questions(now),
            activity: activity(now),
            lockdown: false,
        };
        Self::with(state, None)
    }

    /// Creates the backend with the data for the documentation's picture.
    pub(crate) fn for_picture(trusted: Trusted) -> Self {
        let now = now();
        let state = State {
            sessions: picture_data::sessions(now),
            grants: grants(now),
            records: vec![],
            questions: picture_data::questions(),
            activity: picture_data::activity(now),
            lockdown: false,
        };
        Self::with(state, Some(trusted))
    }

    fn with(state: State, trusted: Option<Trusted>) -> Self {
        Self {
            trusted,
            state: Arc::new(Mutex::new(state)),
            changes: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it was held")
    }

    /// Applies a change, and notifies the test and the window.
    fn done(&self, event: &str, act: impl FnOnce(&mut State)) -> Reply {
        println!("{event}");
        act(&mut self.state());
        self.changes.send_modify(|n| *n += 1);
        Reply::Done
    }

    fn paused(&self, session: &str, on: bool) -> Reply {
        let event = if on { "paused" } else { "resumed" };
        self.done(&format!("{event} {session}"), |state| {
            state.sessions.iter_mut().filter(|one| one.id == session).for_each(|one| one.paused = on);
        })
    }

    fn status(&self) -> StatusView {
        let (sessions, lockdown) = {
            let state = self.state();
            (state.sessions.len(), state.lockdown)
        };
        StatusView {
            protection: if lockdown { Protection::Lockdown } else { Protection::Protecting },
            pid: std::process::id(),
            version: "0.1.0".into(),
            started_ms: now() - 3_600_000,
            sessions,
            runs: 0,
            in_runs: 0,
            questions: 0,
            prompt_location: PromptLocation::App,
            lockdown,
            troubles: vec![],
            managed_trouble: None,
            servers: vec!["filesystem".into(), "git".into()],
            policy: "0".repeat(64),
            secrets_file: None,
            attached_desktop: None,
            other_home: None,
        }
    }

    fn reply(&self, request: Request) -> Reply {
        match request {
            Request::Status => Reply::Status(self.status()),
            Request::Sessions => Reply::Sessions(self.state().sessions.clone()),
            Request::AutostartFiles => {
                let records = self.state().records.clone();
                Reply::AutostartFiles(records.into_iter().filter(|one| one.ended_ms.is_some()).collect())
            }
            Request::Quarantine => {
                let mut records = self.state().records.clone();
                records.iter_mut().for_each(|one| one.files.retain(|file| file.moved_to.is_some()));
                records.retain(|one| !one.files.is_empty());
                Reply::Quarantine(records)
            }
            Request::Session { session } => {
                let found = self.state().records.iter().find(|one| one.id == session).cloned();
                found.map_or_else(|| not_found(&session), Reply::Session)
            }
            Request::DecideAutostartFile { path, choice: AutostartFileChoice::Quarantine, .. }
                if path.ends_with("Makefile") =>
            {
                println!("refused-to-move {path}");
                Reply::Failed { code: ErrorCode::Storage, message: "the disk is full".into() }
            }
            Request::DecideAutostartFile { session, path, choice } => {
                println!("{choice:?} {path}");
                let mut state = self.state();
                let record = state.records.iter_mut().find(|one| one.id == session);
                let record = record.expect("a session that is listed");
                let file = record.files.iter_mut().find(|file| file.path == path).expect("a listed file");
                match choice {
                    AutostartFileChoice::Keep => file.state = AutostartFileState::Kept,
                    AutostartFileChoice::Quarantine => {
                        file.state = AutostartFileState::Quarantined;
                        file.moved_to =
                            Some("/home/ada/.local/state/ironcurtain/sandboxes/quarantine/1".into());
                    }
                    AutostartFileChoice::PutBack => {
                        (file.state, file.moved_to) = (AutostartFileState::Returned, None)
                    }
                    AutostartFileChoice::Exchange => file.state = AutostartFileState::Exchanged,
                    AutostartFileChoice::Delete => {
                        (file.state, file.moved_to) = (AutostartFileState::Deleted, None)
                    }
                }
                self.changes.send_modify(|n| *n += 1);
                Reply::Session(record.clone())
            }
            Request::Questions => Reply::Questions(self.state().questions.clone()),
            Request::Forget { question } => self.done(&format!("forgot {question}"), |state| {
                state.questions.missed.retain(|one| one.id != question);
                state.questions.denied.retain(|one| one.id != question);
            }),
            Request::Deny { .. } => self.done("denied", |_| {}),
            Request::Pause { session } => self.paused(&session, true),
            Request::Resume { session } => self.paused(&session, false),
            Request::Lockdown { on, end_servers } => {
                self.done(&format!("lockdown {on} {end_servers}"), |state| state.lockdown = on)
            }
            Request::FinalChecks => Reply::FinalChecks(vec![]),
            Request::Grants => Reply::Grants(self.state().grants.clone()),
            Request::Revoke { grant } if grant == "g4" => {
                println!("refused-to-take-back {grant}");
                let message = "the server could not be restarted, so it may still see the folder".into();
                Reply::Failed { code: ErrorCode::Storage, message }
            }
            Request::Revoke { grant } => {
                println!("took-back {grant}");
                self.state().grants.retain(|one| one.id != grant);
                self.changes.send_modify(|n| *n += 1);
                Reply::Revoked { grant, restarted: vec![], unstored: None }
            }
            Request::EndSession { session } => {
                println!("ended {session}");
                self.state().sessions.retain(|one| one.id != session);
                self.changes.send_modify(|n| *n += 1);
                Reply::Done
            }
            Request::RequestAccess { path, .. } => self.done(&format!("raised {path}"), |_| {}),
            Request::Activity { .. } => Reply::Activity(self.state().activity.clone()),
            Request::VerifyAudit => Reply::Audit(AuditCheckView {
                intact: true,
                entries: 1_482,
                problem: None,
                verified_by: String::new(),
            }),
            Request::Metrics => Reply::Metrics(String::new()),
            Request::UnlockSecrets { .. } => self.done("unlocked", |_| {}),
            Request::SecretNames => Reply::SecretNames(Vec::new()),
            Request::StoreSecret { .. } => self.done("stored", |_| {}),
            Request::RemoveSecret { .. } => self.done("removed", |_| {}),
            Request::Pair { .. } => Reply::PairingCode { code: "881002".into(), asks_attached: false },
            Request::StoreLogin { .. } => self.done("stored", |_| {}),
            Request::EndLogin { .. } => Reply::LoginEnded(None),
            Request::LockSecrets => self.done("locked", |_| {}),
            Request::Undo { session, .. } => self.done(&format!("undone {session}"), |_| {}),
            Request::Shutdown => {
                println!("shutdown");
                self.ended.send_replace(true);
                Reply::Done
            }
        }
    }
}

impl Backend for Made {
    fn request(&self, request: Request) -> BoxFuture<Reply> {
        let reply = self.reply(request);
        Box::pin(async move { reply })
    }

    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, ReopenError>> {
        self.done(&format!("asked-again {question}"), |state| {
            state.questions.missed.retain(|one| one.id != question);
        });
        Box::pin(async { Ok(true) })
    }

    fn trusted(&self) -> Option<Trusted> {
        self.trusted.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn ended(&self) -> BoxFuture<()> {
        let mut ended = self.ended.subscribe();
        Box::pin(async move { drop(ended.wait_for(|ended| *ended).await) })
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(since.as_millis()).expect("a clock before the year 584,000,000")
}

fn not_found(session: &str) -> Reply {
    let message = format!("there is no record of a session `{session}`");
    Reply::Failed { code: ErrorCode::NotFound, message }
}
