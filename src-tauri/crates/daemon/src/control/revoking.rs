//! Revokes a grant: denies its use immediately, then waits until the access is proven to be removed and the revocation
//! is stored.
//!
//! - INVARIANT: the grant is removed from the published table before anything is awaited, so it allows no further call
//!   or connection.

use super::failed;
use crate::daemon_state::DaemonState;
use crate::run::Run;
use crate::session::Session;
use crate::view::time_of_day;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::{
    EndReason, GrantState, PendingTermination, RevokedGrant, StandingGrant, Stored, StoredTermination,
};
use ironcurtain_protocol::{ErrorCode, Reply};
use ironcurtain_services::DeclinedWorkspace;
use std::sync::Arc;

/// Active sessions, each with its server's restart count before the revocation.
type Sessions = Vec<(u64, Arc<Session>)>;

/// Revokes the grant with this id and reports the result.
pub(super) async fn revoke(state: &Arc<DaemonState>, id: &str) -> Reply {
    let with_restarts = |session: Arc<Session>| (session.server().applied().restarts, session);
    let sessions: Sessions = state.sessions().into_iter().map(with_restarts).collect();
    if let Some(revoked) = state.services.grants.revoke(id) {
        return finish_standing(&sessions, &state.opened_runs().await, revoked).await;
    }
    for (before, session) in &sessions {
        if let Some(grant) = session.revoke_one_time(id).await {
            let restarted = session.server().applied().restarts > *before;
            return finish_one_time(
                state,
                grant,
                restarted.then(|| session.id.clone()).into_iter().collect(),
            )
            .await;
        }
    }
    match state.services.workspaces.revoke(id) {
        Ok(Some(denial)) => return record_revoked_denial(state, denial).await,
        Ok(None) => {}
        Err(problem) => return failed(ErrorCode::Storage, format!("failed to revoke the denial: {problem}")),
    }
    match state.services.grants.state_of(id).await {
        Ok(GrantState::Terminating(ending)) => failed(ErrorCode::Storage, describe_ending(&ending)),
        Ok(GrantState::Terminated(ended)) => failed(ErrorCode::NotFound, describe_ended(id, ended)),
        Ok(GrantState::Unknown) => failed(ErrorCode::NotFound, format!("no grant `{id}`")),
        Err(problem) => failed(
            ErrorCode::Storage,
            format!("no grant `{id}` is active; failed to check whether it existed: {problem}"),
        ),
    }
}

/// Records that the user revoked a denial so that the workspace may be proposed again.
async fn record_revoked_denial(state: &DaemonState, denial: DeclinedWorkspace) -> Reply {
    let mut entry = Entry::new(
        Event::Revoked,
        "a denial of a workspace was revoked; the workspace may be proposed again",
    );
    (entry.grant_id, entry.client, entry.server_name) =
        (Some(denial.id.clone()), Some(denial.client_name), Some(denial.server));
    entry.paths = vec![denial.folder];
    let recorded = state.services.audit.record(entry).await;
    state.services.changed();
    match recorded {
        Ok(_) => Reply::Revoked { grant: denial.id, restarted: Vec::new(), unstored: None },
        Err(problem) => failed(ErrorCode::Storage, format!("the denial is revoked, but {problem}")),
    }
}

/// Waits until every session and run has lost the grant's access and the revocation is stored.
async fn finish_standing(sessions: &Sessions, runs: &[Arc<Run>], revoked: RevokedGrant) -> Reply {
    let (grant, version) = (revoked.grant.clone(), revoked.version);
    let removal = async {
        let mut restarted = Vec::new();
        for (before, session) in sessions.iter().filter(|(_, s)| s.may_use(&grant.subject)) {
            // A session that closes in the meantime has lost all access, so its error is ignored.
            if session.server().wait_until_enforced(version).await.is_ok_and(|restarts| restarts > *before) {
                restarted.push(session.id.clone());
            }
        }
        for run in runs.iter().filter(|run| run.may_use(&grant.subject)) {
            run.wait_for_revocation(version).await;
        }
        restarted
    };
    let (restarted, stored) = tokio::join!(removal, revoked.stored());
    let grant = grant.id;
    match stored {
        Stored::Complete => Reply::Revoked { grant, restarted, unstored: None },
        Stored::InJournal(problem) => {
            let unstored = format!("storing it failed and is retried: {problem}");
            Reply::Revoked { grant, restarted, unstored: Some(unstored) }
        }
        Stored::NotStored(problem) => failed(
            ErrorCode::Storage,
            format!(
                "the grant `{grant}` is denied from now on, but that could not be stored: {problem}; it is tried again, and \
                 until it succeeds a restart would bring the grant back"
            ),
        ),
    }
}

/// Records that a one-time grant was revoked, and reports the result.
async fn finish_one_time(state: &DaemonState, grant: StandingGrant, restarted: Vec<String>) -> Reply {
    let recorded = state.services.audit.record(grant.entry(Event::Revoked, "a grant was revoked")).await;
    state.services.changed();
    match recorded {
        Ok(_) => Reply::Revoked { grant: grant.id, restarted, unstored: None },
        Err(problem) => failed(ErrorCode::Storage, format!("the grant is revoked, but {problem}")),
    }
}

fn describe_ending(ending: &PendingTermination) -> String {
    let PendingTermination { id, why, at_ms, trouble, .. } = ending;
    let trouble = trouble.as_ref().map_or_else(String::new, |trouble| format!(", because {trouble}"));
    format!(
        "the grant `{id}` {} at {} and is denied, but the revocation is not stored yet{trouble}",
        describe_reason(*why),
        time_of_day(*at_ms)
    )
}

fn describe_ended(id: &str, ended: StoredTermination) -> String {
    format!(
        "the grant `{id}` {} at {}; this is already stored",
        describe_reason(ended.why),
        time_of_day(ended.at_ms)
    )
}

fn describe_reason(why: EndReason) -> &'static str {
    match why {
        EndReason::Revoked => "was revoked",
        EndReason::Expired => "expired",
        EndReason::NotStored => "could not be stored",
    }
}
