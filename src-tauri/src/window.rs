//! The settings window: made when asked for, gone when closed, and the commands its page may call.
//!
//! - The page can show, take away, and keep what is there. No command allows anything, answers a question or adds a grant.

use crate::backend::Backend;
use crate::consent::{Desktop, Waiting};
use ironcurtain_protocol::{
    ActivityView, AuditCheckView, ErrorCode, GrantView, LeftChoice, Reply, Request, SessionRecordView,
    SessionView, StatusView,
};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use tauri::{AppHandle, Emitter, Manager, State, WebviewUrl, WebviewWindowBuilder};

/// Label of the window; the capability in `tauri.conf.json` names it.
const LABEL: &str = "main";
/// Event that says: ask again.
const CHANGED: &str = "changed";
/// Most entries of the audit log the page asks for.
const ACTIVITY: usize = 500;

/// What the commands work with.
pub(crate) struct Desk {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) desktop: Desktop,
    pub(crate) home: PathBuf,
}

/// All the page draws, but the log.
#[derive(Debug, Serialize)]
pub(crate) struct Snapshot {
    status: StatusView,
    sessions: Vec<SessionView>,
    /// The records of live sessions, and of ended ones that left files which wait for the person's word.
    records: Vec<SessionRecordView>,
    grants: Vec<GrantView>,
    waiting: Vec<Waiting>,
    home: PathBuf,
}

/// Why a command failed. The page matches `code` and shows `message`.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    code: ErrorCode,
    message: String,
}

/// What taking back led to.
#[derive(Debug, Serialize)]
pub(crate) struct TakenBack {
    restarted: Vec<String>,
}

/// Opens the window, or brings the open one to the front.
pub(crate) fn open(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(LABEL) {
        // A window that cannot come to the front is still there.
        let _ = window.unminimize();
        let _ = window.set_focus();
        return;
    }
    let built = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App("index.html".into()))
        .title("IronCurtain")
        .inner_size(1000.0, 700.0)
        .min_inner_size(640.0, 480.0)
        .build();
    if let Err(error) = built {
        tracing::error!(%error, "the window could not be opened");
    }
}

/// Tells the page that something changed, if it is open.
pub(crate) fn tell(app: &AppHandle) {
    if let Err(error) = app.emit_to(LABEL, CHANGED, ()) {
        tracing::warn!(%error, "the window could not be told of a change");
    }
}

/// The commands, for the app's builder.
pub(crate) fn commands() -> impl Fn(tauri::ipc::Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        snapshot,
        activity,
        take_back,
        end_session,
        check_log,
        decide_left,
        show_question
    ]
}

#[tauri::command]
async fn snapshot(desk: State<'_, Desk>) -> Result<Snapshot, Failure> {
    let reply = desk.backend.request(Request::Status).await;
    let status = if let Reply::Status(status) = reply { status } else { return Err(failure(reply)) };
    let reply = desk.backend.request(Request::Sessions).await;
    let sessions = if let Reply::Sessions(sessions) = reply { sessions } else { return Err(failure(reply)) };
    let records = records(&desk, &sessions).await?;
    let reply = desk.backend.request(Request::Grants).await;
    let grants = if let Reply::Grants(grants) = reply { grants } else { return Err(failure(reply)) };
    let waiting = desk.desktop.waiting().borrow().clone();
    Ok(Snapshot { status, sessions, records, grants, waiting, home: desk.home.clone() })
}

async fn records(desk: &Desk, live: &[SessionView]) -> Result<Vec<SessionRecordView>, Failure> {
    let reply = desk.backend.request(Request::LeftBehind).await;
    let mut records = if let Reply::LeftBehind(ended) = reply { ended } else { return Err(failure(reply)) };
    for SessionView { id, .. } in live {
        // One that has ended meanwhile, or has just begun, may have none.
        if let Reply::Session(record) = desk.backend.request(Request::Session { session: id.clone() }).await {
            records.push(record);
        }
    }
    Ok(records)
}

#[tauri::command]
async fn activity(desk: State<'_, Desk>) -> Result<Vec<ActivityView>, Failure> {
    let reply = desk.backend.request(Request::Activity { limit: ACTIVITY }).await;
    if let Reply::Activity(entries) = reply { Ok(entries) } else { Err(failure(reply)) }
}

#[tauri::command]
async fn take_back(desk: State<'_, Desk>, grant: String) -> Result<TakenBack, Failure> {
    let reply = desk.backend.request(Request::Revoke { grant: grant.clone() }).await;
    if let Reply::Revoked { grant: done, restarted } = &reply
        && *done == grant
    {
        return Ok(TakenBack { restarted: restarted.clone() });
    }
    Err(failure(reply))
}

#[tauri::command]
async fn end_session(desk: State<'_, Desk>, session: String) -> Result<(), Failure> {
    let reply = desk.backend.request(Request::EndSession { session }).await;
    if let Reply::Done = reply { Ok(()) } else { Err(failure(reply)) }
}

#[tauri::command]
async fn decide_left(
    desk: State<'_, Desk>,
    session: String,
    path: String,
    choice: LeftChoice,
) -> Result<(), Failure> {
    let reply = desk.backend.request(Request::DecideLeft { session, path, choice }).await;
    if let Reply::Session(_) = reply { Ok(()) } else { Err(failure(reply)) }
}

#[tauri::command]
async fn check_log(desk: State<'_, Desk>) -> Result<AuditCheckView, Failure> {
    let reply = desk.backend.request(Request::VerifyAudit).await;
    if let Reply::Audit(check) = reply { Ok(check) } else { Err(failure(reply)) }
}

#[tauri::command]
fn show_question(desk: State<'_, Desk>) {
    desk.desktop.raise();
}

/// A reply that is not the one that was asked for proves nothing, so it is a failure.
fn failure(reply: Reply) -> Failure {
    if let Reply::Failed { code, message } = reply {
        Failure { code, message }
    } else {
        Failure { code: ErrorCode::Malformed, message: "the answer was not understood; try again".to_owned() }
    }
}
