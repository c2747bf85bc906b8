//! Commands that stop, and that end a stop: pausing a session, lockdown, noes that hold for a session, questions that nobody
//! answered in time.
//!
//! - INVARIANT: none of them allows. A question that is put again is answered in its dialog alone, with all its rules; where
//!   a stop ends, the person is asked as before.

use super::AppState;
use super::command_error::CommandError;
use ironcurtain_protocol::{Reply, Request};

pub(super) async fn pause_session(state: &AppState, session: String, on: bool) -> Result<(), CommandError> {
    done(state, if on { Request::Pause { session } } else { Request::Resume { session } }).await
}

pub(super) async fn lock_down(state: &AppState, on: bool, end_sessions: bool) -> Result<(), CommandError> {
    done(state, Request::Lockdown { on, end_servers: on && end_sessions }).await
}

/// Takes back a no, forgets a question, or takes back a yes that came late.
pub(super) async fn forget_question(state: &AppState, question: String) -> Result<(), CommandError> {
    done(state, Request::Forget { question }).await
}

/// Puts a question again, in the dialog. `true` where the person said yes there, so that the same call passes once.
pub(super) async fn ask_again(state: &AppState, question: String) -> Result<bool, CommandError> {
    state.backend.ask_again(question).await.map_err(CommandError::refused)
}

async fn done(state: &AppState, request: Request) -> Result<(), CommandError> {
    let reply = state.backend.request(request).await;
    if let Reply::Done = reply { Ok(()) } else { Err(CommandError::of(reply)) }
}
