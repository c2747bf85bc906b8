//! Commands that close a session, decide about the files it left behind, and show the pending question.

use super::AppState;
use super::command_error::CommandError;
use super::grants::trusted;
use ironcurtain_protocol::{AutostartFileChoice, Reply, Request};

pub(super) async fn end_session(state: &AppState, session: String) -> Result<(), CommandError> {
    let reply = state.backend.request(Request::EndSession { session }).await;
    if let Reply::Done = reply { Ok(()) } else { Err(CommandError::of(reply)) }
}

pub(super) async fn restart_server(state: &AppState, session: String) -> Result<(), CommandError> {
    let trusted = trusted(state)?;
    let daemon = trusted.daemon.clone();
    let restarted = trusted.runtime.spawn(async move { daemon.restart_server(&session).await });
    restarted.await.map_err(CommandError::refused)?.map_err(CommandError::refused)
}

pub(super) async fn decide_file(
    state: &AppState,
    session: String,
    path: String,
    choice: AutostartFileChoice,
) -> Result<(), CommandError> {
    let reply = state.backend.request(Request::DecideAutostartFile { session, path, choice }).await;
    if let Reply::Session(_) = reply { Ok(()) } else { Err(CommandError::of(reply)) }
}

pub(super) async fn show_question(state: &AppState) -> Result<(), CommandError> {
    state.desktop.raise();
    Ok(())
}
