//! Starts and ends lockdown, pauses and session-long denials, and denies pending questions.
//!
//! - Starting any of these takes effect before it is recorded. Ending any of them is recorded first. The audit log
//!   names the program that requested it.
//! - Every unsandboxed program of this user can send these requests. This gives a program no additional power: it could
//!   also kill the daemon, and ending a denial only makes the daemon ask again. If another program ends a lockdown,
//!   pause or denial, the user is notified.

use super::{Requester, failed};
use crate::daemon_state::DaemonState;
use crate::identity;
use ironcurtain_audit::{AuditError, Entry, Event};
use ironcurtain_consent::Question;
use ironcurtain_protocol::{ErrorCode, QuestionSelection, Reply};

/// Starts lockdown. Also closes all sessions and runs if `end_servers` is `true`.
pub(super) async fn begin_lockdown(state: &DaemonState, end_servers: bool, requester: Requester) -> Reply {
    let broker = &state.services.broker;
    let began = broker.stops().begin_lockdown();
    broker.expired_questions().clear();
    if end_servers {
        state.sessions().iter().for_each(|session| session.end());
        state.runs().iter().for_each(|run| run.end());
    }
    let ended = if end_servers { ", and every session was ended" } else { "" };
    let recorded = match &began {
        Ok(false) if !end_servers => Ok(()),
        Ok(_) | Err(_) => {
            let summary = format!("lockdown began{ended}, {}", requested_by(requester));
            record(state, Entry::new(Event::Lockdown, summary)).await
        }
    };
    match (began, recorded) {
        (Ok(_), Ok(())) => Reply::Done,
        (Ok(_), Err(problem)) => failed(ErrorCode::Storage, format!("lockdown is on, but {problem}")),
        (Err(problem), _) => failed(
            ErrorCode::Storage,
            format!(
                "lockdown is on, but will not survive a restart: failed to write `{}`: {problem}",
                state.services.home.lockdown().display()
            ),
        ),
    }
}

/// Ends lockdown. Does nothing if it is not active.
pub(super) async fn end_lockdown(state: &DaemonState, requester: Requester) -> Reply {
    let broker = &state.services.broker;
    if !broker.stops().now().lockdown {
        return Reply::Done;
    }
    let entry = Entry::new(Event::Lockdown, format!("lockdown is ending, {}", requested_by(requester)));
    if let Err(problem) = record(state, entry).await {
        return failed(ErrorCode::Storage, format!("lockdown is still on, because {problem}"));
    }
    if let Err(problem) = broker.stops().end_lockdown() {
        let file = state.services.home.lockdown();
        let text = format!("lockdown is still on: failed to remove `{}`: {problem}", file.display());
        return failed(ErrorCode::Storage, text);
    }
    notify_user(state, requester, "Lockdown ended");
    Reply::Done
}

/// Denies pending questions. Each question's result is recorded separately.
pub(super) async fn deny(
    state: &DaemonState,
    which: &QuestionSelection,
    note: Option<String>,
    requester: Requester,
) -> Reply {
    let is_selected = |question: &Question| match which {
        QuestionSelection::All => true,
        QuestionSelection::These(ids) => ids.contains(&question.id),
    };
    let note = note.map(|note| note.trim().to_owned()).filter(|note| !note.is_empty());
    let denied = state.services.broker.deny(is_selected, note.as_deref());
    if denied.is_empty() {
        return match which {
            QuestionSelection::All => Reply::Denied(denied),
            QuestionSelection::These(_) => {
                failed(ErrorCode::NotFound, "none of these questions is pending".to_owned())
            }
        };
    }
    let summary =
        format!("questions were denied together, {}: {}", requested_by(requester), denied.join(", "));
    match record(state, Entry::new(Event::Answer, summary)).await {
        Ok(()) => Reply::Denied(denied),
        Err(problem) => failed(ErrorCode::Storage, format!("they are denied, but {problem}")),
    }
}

/// Pauses a session or run. Does nothing if it is already paused.
pub(super) async fn pause(state: &DaemonState, id: &str, requester: Requester) -> Reply {
    let Some(principal) = state.principal(id) else { return no_session(id) };
    if !state.services.broker.pause(id) {
        return Reply::Done;
    }
    let entry = principal.entry(Event::Pause, format!("the session was paused, {}", requested_by(requester)));
    match record(state, entry).await {
        Ok(()) => Reply::Done,
        Err(problem) => failed(ErrorCode::Storage, format!("the session is paused, but {problem}")),
    }
}

/// Resumes a session or run. Does nothing if it is not paused.
pub(super) async fn resume(state: &DaemonState, id: &str, requester: Requester) -> Reply {
    let Some(principal) = state.principal(id) else { return no_session(id) };
    if !state.services.broker.stops().is_paused(id) {
        return Reply::Done;
    }
    let entry =
        principal.entry(Event::Pause, format!("the session was resumed, {}", requested_by(requester)));
    if let Err(problem) = record(state, entry).await {
        return failed(ErrorCode::Storage, format!("the session is still paused, because {problem}"));
    }
    state.services.broker.stops().resume(id);
    notify_user(state, requester, &format!("{} was resumed", principal.client.view.name));
    Reply::Done
}

/// Removes an expired question, or revokes a session-long denial.
pub(super) async fn forget(state: &DaemonState, id: &str, requester: Requester) -> Reply {
    let broker = &state.services.broker;
    if broker.expired_questions().forget(id) {
        state.services.changed();
        return Reply::Done;
    }
    let Some(denial) = broker.stops().now().denials.iter().find(|denial| denial.id == id).cloned() else {
        let text = format!("no unanswered question or denial `{id}`");
        return failed(ErrorCode::NotFound, text);
    };
    let summary = format!("a denial for the rest of the session was revoked, {}", requested_by(requester));
    let mut entry = Entry::new(Event::Pause, summary);
    (entry.session, entry.client) = (Some(denial.session), Some(denial.client));
    (entry.server_name, entry.question_id) = (Some(denial.server), Some(denial.id));
    if let Err(problem) = record(state, entry).await {
        return failed(ErrorCode::Storage, format!("it is still denied, because {problem}"));
    }
    // Another request may have revoked the denial first.
    drop(broker.stops().revoke_denial(id));
    Reply::Done
}

fn no_session(id: &str) -> Reply {
    failed(ErrorCode::NotFound, format!("no active session `{id}`"))
}

pub(super) async fn record(state: &DaemonState, entry: Entry) -> Result<(), AuditError> {
    let recorded = state.services.audit.record(entry).await.map(drop);
    state.services.changed();
    recorded
}

/// Notifies the user if another program ended a lockdown, pause or denial.
fn notify_user(state: &DaemonState, requester: Requester, summary: &str) {
    if matches!(requester, Requester::Peer(_)) {
        state.services.broker.notify(&format!("{summary}, {}.", requested_by(requester)));
    }
}

/// Describes the sender of a request, for the audit log.
pub(super) fn requested_by(requester: Requester) -> String {
    match requester {
        Requester::Own => "by the user, in IronCurtain itself".to_owned(),
        Requester::Peer(pid) => {
            let program = std::fs::read_link(format!("/proc/{pid}/exe"));
            let program = program.map_or_else(|_| "a program".to_owned(), |exe| exe.display().to_string());
            format!("by `{program}`, started by {}", identity::identify_client(pid, None).view.name)
        }
    }
}
