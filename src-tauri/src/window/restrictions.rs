//! Commands that pause a session, turn on lockdown, and remove denials.
//!
//! - INVARIANT: no command allows a call. A reopened question is answered only in its dialog. After a restriction
//!   ends, the user is asked as before.

use super::AppState;
use super::command_error::CommandError;
use ironcurtain_protocol::{Reply, Request};

pub(super) async fn pause_session(state: &AppState, session: String, on: bool) -> Result<(), CommandError> {
    done(state, if on { Request::Pause { session } } else { Request::Resume { session } }).await
}

pub(super) async fn lock_down(state: &AppState, on: bool, end_sessions: bool) -> Result<(), CommandError> {
    done(state, Request::Lockdown { on, end_servers: on && end_sessions }).await
}

/// Removes a denial, an expired question, or an approval given after its question had expired.
pub(super) async fn forget_question(state: &AppState, question: String) -> Result<(), CommandError> {
    done(state, Request::Forget { question }).await
}

/// Reopens an expired question in its dialog. Returns `true` if the user allowed the call. The same call is then
/// allowed once.
pub(super) async fn ask_again(state: &AppState, question: String) -> Result<bool, CommandError> {
    state.backend.ask_again(question).await.map_err(CommandError::refused)
}

async fn done(state: &AppState, request: Request) -> Result<(), CommandError> {
    let reply = state.backend.request(request).await;
    if let Reply::Done = reply { Ok(()) } else { Err(CommandError::of(reply)) }
}
