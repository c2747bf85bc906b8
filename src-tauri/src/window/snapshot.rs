//! State shown on all pages of the window: sessions, grants and pending questions.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::preferences::{Appearance, Preferences};
use super::record::{Call, Day, calls_of, last_day, newest_calls};
use crate::consent::PendingQuestion;
use ironcurtain_daemon::{ChangedServers, VerifiedClient};
use ironcurtain_protocol::{
    GrantView, QuestionsView, Reply, Request, SessionRecordView, SessionView, StatusView,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Number of recent calls shown on the home page.
const RECENT: usize = 6;

/// State shown on all pages of the window.
#[derive(Debug, Serialize)]
pub(crate) struct Snapshot {
    status: StatusView,
    sessions: Vec<SessionView>,
    /// Records of active sessions, and of closed sessions with undecided autostart files.
    records: Vec<SessionRecordView>,
    /// Records of sessions with quarantined files, limited to those files.
    quarantine: Vec<SessionRecordView>,
    grants: Vec<GrantView>,
    /// Names of servers that now start a different program. The user must decide about each of them.
    changed_servers: Vec<String>,
    /// Servers with suspended tools. The user must decide about these tools.
    changed_tools: Vec<String>,
    waiting: Vec<PendingQuestion>,
    /// Expired questions, and denials that last until their session closes.
    questions: QuestionsView,
    clients: Vec<ClientRow>,
    recent: Vec<Call>,
    /// Decisions in the last 24 hours, or `None` if the trusted process runs in another program.
    day: Option<Day>,
    home: PathBuf,
    /// Path of the program that agent clients should start.
    shim: PathBuf,
    appearance: Appearance,
    /// `true` if no client has connected, no call is recorded, and the user has not finished or skipped the first
    /// steps.
    first_run: bool,
}

/// Client to which access can be granted.
#[derive(Debug, Serialize)]
struct ClientRow {
    key: String,
    name: String,
    servers: Vec<String>,
    live: Vec<String>,
    /// Tools that can be granted for any arguments, by server.
    tools: BTreeMap<String, Vec<String>>,
}

impl From<VerifiedClient> for ClientRow {
    fn from(VerifiedClient { key, name, servers, live, tools }: VerifiedClient) -> Self {
        Self { key, name, servers, live, tools }
    }
}

pub(super) async fn snapshot(state: &AppState) -> Result<Snapshot, CommandError> {
    let reply = state.backend.request(Request::Status).await;
    let Reply::Status(mut status) = reply else { return Err(CommandError::of(reply)) };
    let reply = state.backend.request(Request::Sessions).await;
    let Reply::Sessions(sessions) = reply else { return Err(CommandError::of(reply)) };
    let records = records(state, &sessions).await?;
    let reply = state.backend.request(Request::Quarantine).await;
    let Reply::Quarantine(quarantine) = reply else { return Err(CommandError::of(reply)) };
    let reply = state.backend.request(Request::Grants).await;
    let Reply::Grants(grants) = reply else { return Err(CommandError::of(reply)) };
    let changed = match state.backend.trusted() {
        Some(trusted) => trusted.daemon.changed_servers().await,
        None => ChangedServers::default(),
    };
    let with_tools = state.backend.trusted().map(|trusted| trusted.daemon.servers_with_changed_tools());
    let with_tools = with_tools.unwrap_or_default();
    // The page shows these separately.
    let apart = [changed.trouble, with_tools.trouble];
    status.troubles.retain(|trouble| !apart.iter().flatten().any(|apart| apart == trouble));
    let reply = state.backend.request(Request::Questions).await;
    let Reply::Questions(questions) = reply else { return Err(CommandError::of(reply)) };
    let waiting = state.desktop.waiting().borrow().clone();
    let clients = state.backend.trusted().map(|trusted| trusted.daemon.known_clients()).unwrap_or_default();
    let shim = state.backend.trusted().map(|trusted| trusted.programs.join("ironcurtain-shim"));
    let preferences = state.backend.trusted().map(|trusted| Preferences::load(&trusted.home));
    let (recent, day) = recent(state).await?;
    let is_new = clients.is_empty() && recent.is_empty();
    let first_run = is_new && preferences.is_some_and(|chosen| !chosen.welcomed);
    Ok(Snapshot {
        status,
        sessions,
        records,
        quarantine,
        grants,
        changed_servers: changed.names,
        changed_tools: with_tools.names,
        waiting,
        questions,
        clients: clients.into_iter().map(ClientRow::from).collect(),
        recent,
        day,
        home: state.home.clone(),
        shim: shim.unwrap_or_else(|| "ironcurtain-shim".into()),
        appearance: preferences.unwrap_or_default().appearance,
        first_run,
    })
}

async fn recent(state: &AppState) -> Result<(Vec<Call>, Option<Day>), CommandError> {
    if let Some(trusted) = state.backend.trusted() {
        let log = trusted.home.audit();
        let policy = trusted.daemon.policy();
        return run_blocking(move || {
            Ok::<_, io::Error>((newest_calls(&log, RECENT, &*policy)?, Some(last_day(&log)?)))
        })
        .await;
    }
    let reply = state.backend.request(Request::Activity { limit: RECENT }).await;
    let Reply::Activity(entries) = reply else { return Err(CommandError::of(reply)) };
    Ok((calls_of(entries).into_iter().take(RECENT).collect(), None))
}

async fn records(state: &AppState, live: &[SessionView]) -> Result<Vec<SessionRecordView>, CommandError> {
    let reply = state.backend.request(Request::AutostartFiles).await;
    let Reply::AutostartFiles(mut records) = reply else { return Err(CommandError::of(reply)) };
    for SessionView { id, .. } in live {
        // A session that has just started or closed may have no record.
        if let Reply::Session(record) = state.backend.request(Request::Session { session: id.clone() }).await
        {
            records.push(record);
        }
    }
    Ok(records)
}
