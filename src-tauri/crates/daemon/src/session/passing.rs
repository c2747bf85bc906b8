//! Requests that are no tool calls, passed on as they are; and what is rejected before it is judged.
//!
//! - INVARIANT: what a client says to a server of prompts and resources is on record before the server hears it; if it
//!   cannot be put there, the request does not happen.

use super::in_flight::Ticket;
use super::modern::RefusedRequest;
use super::refusal::denied;
use super::{Session, resource};
use crate::consent::{PAUSED, visible};
use crate::server::MemoryShare;
use crate::wire::Id;
use ironcurtain_audit::{AuditError, DecidedBy, Entry, Event, PolicyDecision, redacted};
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Requests that are passed to the server without being judged: they name no resource of the person's.
const PASSED: [&str; 7] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "tasks/get",
    "tasks/list",
];

/// The same, on record because the client chooses words that the server hears, or what it does.
const PASSED_ON_RECORD: [&str; 4] = ["prompts/get", "completion/complete", "tasks/result", "tasks/cancel"];

/// The rule that passes a request without judging it.
const PASSED_RULE: &str = "structural-passed";

/// Why a request is turned away before it is judged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rejection {
    /// It is not understood, or not taken.
    Malformed,
    /// It names a resource that is, or could be, a file.
    Resource,
    /// The agent is paused.
    Paused,
}

impl Rejection {
    /// The name of the rule, on record.
    fn rule(self) -> &'static str {
        match self {
            Self::Malformed => "structural-malformed",
            Self::Resource => "structural-resource",
            Self::Paused => PAUSED,
        }
    }

    fn ground(self) -> DecidedBy {
        match self {
            Self::Malformed => DecidedBy::Malformed,
            Self::Resource => DecidedBy::Resource,
            Self::Paused => DecidedBy::Paused,
        }
    }
}

/// The number of characters of a name or an address that are repeated in a sentence.
const LONGEST_NAME: usize = 200;

/// The number of dropped messages that a session puts on record, so that a client cannot fill the disk with them.
const MOST_ODDITIES: u64 = 100;

/// Returns `true` if a request passes as it is.
pub(super) fn passes(method: &str) -> bool {
    PASSED.contains(&method)
}

/// Returns `true` if a request passes as it is when it is on record.
pub(super) fn passes_on_record(method: &str) -> bool {
    PASSED_ON_RECORD.contains(&method)
}

/// Passes a request about a resource on, unless that is or could be a file.
pub(super) async fn pass_resource(
    session: &Arc<Session>,
    ticket: Ticket,
    request: (&str, Option<&RawValue>),
    budget: MemoryShare,
) {
    let Err(refusal) = resource::checked(request.1) else {
        return pass_on_record(session, ticket, request, budget).await;
    };
    let (code, problem) = refusal.answer();
    session.reject(&ticket, request, Rejection::Resource, (code, &problem)).await;
}

/// Passes a request on when it is on record.
pub(super) async fn pass_on_record(
    session: &Arc<Session>,
    ticket: Ticket,
    (method, params): (&str, Option<&RawValue>),
    budget: MemoryShare,
) {
    match session.record_passing(&ticket, method, params).await {
        Ok(()) => pass(session, ticket, method, params, budget),
        Err(problem) => session.fail(&ticket, ErrorCode::INTERNAL_ERROR, &denied(problem)),
    }
}

/// Passes a request on and its answer back.
pub(super) fn pass(
    session: &Arc<Session>,
    ticket: Ticket,
    method: &str,
    params: Option<&RawValue>,
    budget: MemoryShare,
) {
    session.server.keep(method, params);
    let params = params.map(ToOwned::to_owned);
    if let Some(connection) = session.server.connection_now() {
        return session.pass_to(&connection, ticket, method, params, budget);
    }
    // Waiting for the server to start must not keep other messages from being read.
    let (waiting, method) = (session.clone(), method.to_owned());
    session.track(&ticket.clone(), async move {
        match waiting.server.connection().await {
            Err(problem) => waiting.fail(&ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()),
            Ok(connection) => waiting.pass_to(&connection, ticket, &method, params, budget),
        }
    });
}

impl Session {
    /// Puts on record that a request is passed on as it is.
    pub(super) async fn record_passing(
        &self,
        ticket: &Ticket,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), AuditError> {
        let params = read(params);
        let mut entry = self.about_request(&ticket.id, method, "passed on");
        let reason = format!("{} is passed on as it is", named(method, &params));
        entry.policy_decision = Some(PolicyDecision::allow(DecidedBy::PassedOn, PASSED_RULE, &reason));
        entry.arguments = Some(redacted(&params));
        self.services.audit.record(entry).await.map(drop)
    }

    /// Turns a request away: on record, and in an answer.
    pub(super) async fn reject(
        &self,
        ticket: &Ticket,
        request: (&str, Option<&RawValue>),
        kind: Rejection,
        (code, problem): (ErrorCode, &str),
    ) {
        self.turned_away(&ticket.id, request, kind, problem).await;
        self.fail(ticket, code, problem);
    }

    /// Puts on record that a request was refused before it came here.
    pub(super) async fn refused_at_the_edge(&self, refused: &RefusedRequest) {
        let request = (refused.method.as_str(), refused.params.as_deref());
        self.turned_away(&refused.id, request, Rejection::Malformed, &refused.why).await;
    }

    async fn turned_away(
        &self,
        id: &Id,
        (method, params): (&str, Option<&RawValue>),
        kind: Rejection,
        problem: &str,
    ) {
        let params = read(params);
        let mut entry = self.about_request(id, method, "turned away");
        let reason = format!("{}: {problem}", named(method, &params));
        entry.policy_decision = Some(PolicyDecision::deny(kind.ground(), kind.rule(), &reason));
        entry.arguments = Some(redacted(&params));
        self.denied(entry).await;
    }

    /// Puts on record that a message was dropped that is no request, as long as there were few.
    pub(super) async fn dropped(&self, problem: &str) {
        let before = self.counts.oddities.fetch_add(1, Ordering::Relaxed);
        if before >= MOST_ODDITIES {
            return;
        }
        let mut entry = self.entry(Event::Decision, "a message was dropped");
        let more = if before + 1 == MOST_ODDITIES { "; more like it are not put on record" } else { "" };
        let reason = format!("{problem}{more}");
        entry.policy_decision =
            Some(PolicyDecision::deny(DecidedBy::Malformed, Rejection::Malformed.rule(), &reason));
        self.denied(entry).await;
    }

    async fn denied(&self, entry: Entry) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "what was turned away is not on record");
        }
        self.services.changed();
    }

    fn about_request(&self, id: &Id, method: &str, summary: &str) -> Entry {
        let mut entry = self.entry(Event::Decision, summary);
        entry.request_id = Some(id.as_json().to_owned());
        entry.method = Some(method.to_owned());
        entry
    }
}

/// The parameters, where they are understood.
fn read(params: Option<&RawValue>) -> Map<String, Value> {
    params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
}

/// The method, and what it is asked of.
fn named(method: &str, params: &Map<String, Value>) -> String {
    let shown = |text: &str| visible::head(&visible::line(text), LONGEST_NAME);
    match ["uri", "name"].iter().find_map(|field| params.get(*field)?.as_str()) {
        Some(name) => format!("`{}` of `{}`", shown(method), shown(name)),
        None => format!("`{}`", shown(method)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_is_named_with_what_it_is_asked_of() {
        let named = |method: &str, params: Value| named(method, params.as_object().unwrap());
        assert_eq!(named("resources/read", json!({ "uri": "memo://a" })), "`resources/read` of `memo://a`");
        assert_eq!(named("prompts/get", json!({ "name": "x\ny" })), "`prompts/get` of `x\\u{a}y`");
        assert_eq!(named("completion/complete", json!({ "uri": 1 })), "`completion/complete`");
    }
}
