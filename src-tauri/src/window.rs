//! The settings window: made when asked for, gone when closed, and the commands its page may call.
//!
//! - The page can show, take away, and keep what is there. No command allows anything, answers a question or adds a grant.

use crate::backend::Backend;
use crate::consent::{DialogConsent, PendingQuestion};
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

/// State that the page's commands work with.
pub(crate) struct AppState {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) desktop: DialogConsent,
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
    waiting: Vec<PendingQuestion>,
    home: PathBuf,
}

/// Why a command failed. The page matches `code` and shows `message`.
#[derive(Debug, Serialize)]
pub(crate) struct CommandError {
    code: ErrorCode,
    message: String,
}

/// The result of taking a grant back.
#[derive(Debug, Serialize)]
pub(crate) struct Revocation {
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
pub(crate) fn notify_changed(app: &AppHandle) {
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
async fn snapshot(state: State<'_, AppState>) -> Result<Snapshot, CommandError> {
    let reply = state.backend.request(Request::Status).await;
    let status = if let Reply::Status(status) = reply { status } else { return Err(command_error(reply)) };
    let reply = state.backend.request(Request::Sessions).await;
    let sessions =
        if let Reply::Sessions(sessions) = reply { sessions } else { return Err(command_error(reply)) };
    let records = records(&state, &sessions).await?;
    let reply = state.backend.request(Request::Grants).await;
    let grants = if let Reply::Grants(grants) = reply { grants } else { return Err(command_error(reply)) };
    let waiting = state.desktop.waiting().borrow().clone();
    Ok(Snapshot { status, sessions, records, grants, waiting, home: state.home.clone() })
}

async fn records(state: &AppState, live: &[SessionView]) -> Result<Vec<SessionRecordView>, CommandError> {
    let reply = state.backend.request(Request::LeftBehind).await;
    let mut records =
        if let Reply::LeftBehind(ended) = reply { ended } else { return Err(command_error(reply)) };
    for SessionView { id, .. } in live {
        // One that has ended meanwhile, or has just begun, may have none.
        if let Reply::Session(record) = state.backend.request(Request::Session { session: id.clone() }).await
        {
            records.push(record);
        }
    }
    Ok(records)
}

#[tauri::command]
async fn activity(state: State<'_, AppState>) -> Result<Vec<ActivityView>, CommandError> {
    let reply = state.backend.request(Request::Activity { limit: ACTIVITY }).await;
    if let Reply::Activity(entries) = reply { Ok(entries) } else { Err(command_error(reply)) }
}

#[tauri::command]
async fn take_back(state: State<'_, AppState>, grant: String) -> Result<Revocation, CommandError> {
    let reply = state.backend.request(Request::Revoke { grant: grant.clone() }).await;
    if let Reply::Revoked { grant: done, restarted, .. } = &reply
        && *done == grant
    {
        return Ok(Revocation { restarted: restarted.clone() });
    }
    Err(command_error(reply))
}

#[tauri::command]
async fn end_session(state: State<'_, AppState>, session: String) -> Result<(), CommandError> {
    let reply = state.backend.request(Request::EndSession { session }).await;
    if let Reply::Done = reply { Ok(()) } else { Err(command_error(reply)) }
}

#[tauri::command]
async fn decide_left(
    state: State<'_, AppState>,
    session: String,
    path: String,
    choice: LeftChoice,
) -> Result<(), CommandError> {
    let reply = state.backend.request(Request::DecideLeft { session, path, choice }).await;
    if let Reply::Session(_) = reply { Ok(()) } else { Err(command_error(reply)) }
}

#[tauri::command]
async fn check_log(state: State<'_, AppState>) -> Result<AuditCheckView, CommandError> {
    let reply = state.backend.request(Request::VerifyAudit).await;
    if let Reply::Audit(check) = reply { Ok(check) } else { Err(command_error(reply)) }
}

#[tauri::command]
fn show_question(state: State<'_, AppState>) {
    state.desktop.raise();
}

/// A reply that is not the one that was asked for proves nothing, so it is a failure.
fn command_error(reply: Reply) -> CommandError {
    if let Reply::Failed { code, message } = reply {
        CommandError { code, message }
    } else {
        CommandError {
            code: ErrorCode::Malformed,
            message: "the answer was not understood; try again".to_owned(),
        }
    }
}
