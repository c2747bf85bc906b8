//! Forwards requests that need no judging because they contain no free text, and rejects invalid requests.
//!
//! - Rebuilds each request from a cursor or task id that the server has issued, or from one of the eight log levels.
//! - INVARIANT: a request is recorded before the server receives it. If recording fails, the request is not sent.

use super::Session;
use super::in_flight::Ticket;
use super::issued_values::Purpose;
use super::params::{self, ParamsError};
use super::refusal::denied;
use ironcurtain_audit::{AuditError, DecidedBy, Entry, Event, PolicyDecision, redacted};
use ironcurtain_consent::PAUSED;
use ironcurtain_mcp::client::RefusedRequest;
use ironcurtain_mcp::request::{LOG_LEVELS, RequestBody, ServerRequest};
use ironcurtain_mcp::server::{ClientAnswer, ClientRequest, MemoryShare};
use ironcurtain_mcp::wire::Id;
use ironcurtain_policy::{ResourceAddress, file_address};
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Methods that list tools, resources, prompts or tasks.
const LISTS: [&str; 5] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list"];

/// Methods that concern one of the server's tasks.
const TASKS: [&str; 3] = ["tasks/get", "tasks/result", "tasks/cancel"];

/// Method that sets the server's log level.
const SET_LEVEL: &str = "logging/setLevel";

/// Method that cancels a subscription.
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// Rule name in the audit log for requests that are forwarded without judging.
const PASSED_RULE: &str = "structural-passed";

/// Reason why a request is rejected without judging.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rejection {
    /// The request is invalid or not supported.
    Malformed,
    /// The resource in the request is, or could be, a local file.
    Resource,
    /// The agent is paused.
    Paused,
}

impl Rejection {
    /// Returns the rule name that the audit log records.
    fn rule(self) -> &'static str {
        match self {
            Self::Malformed => "structural-malformed",
            Self::Resource => "structural-resource",
            Self::Paused => PAUSED,
        }
    }

    fn decided_by(self) -> DecidedBy {
        match self {
            Self::Malformed => DecidedBy::Malformed,
            Self::Resource => DecidedBy::Resource,
            Self::Paused => DecidedBy::Paused,
        }
    }
}

/// Maximum length of a name or URI in an error message, in characters.
const MAX_NAME_LEN: usize = 200;

/// Maximum number of dropped messages that are recorded per session so that a client cannot fill the audit log.
const MAX_DROPPED_RECORDED: u64 = 100;

/// Returns `true` if requests with this method are forwarded without judging.
pub(super) fn is_passed_through(method: &str) -> bool {
    LISTS.contains(&method) || TASKS.contains(&method) || [SET_LEVEL, UNSUBSCRIBE].contains(&method)
}

/// Returns `true` if requests with this method are forwarded even while the agent is paused. Such requests only list
/// items, read a task's state or set the log level.
pub(super) fn is_allowed_when_paused(method: &str) -> bool {
    LISTS.contains(&method) || [SET_LEVEL, "tasks/get"].contains(&method)
}

/// Records a request, then forwards it.
pub(super) async fn record_and_forward(
    session: &Arc<Session>,
    ticket: Ticket,
    request: (&str, Option<&RawValue>),
    budget: MemoryShare,
) {
    let (built, dropped) = match session.rebuild(request) {
        Ok(built) => built,
        Err(problem) => return session.reject_params(&ticket, request, &problem).await,
    };
    match session.record_passing(&ticket, &built, dropped).await {
        Ok(()) => forward(session, ticket, built, budget),
        Err(problem) => session.fail(&ticket, ErrorCode::INTERNAL_ERROR, &denied(problem)),
    }
}

/// Forwards a request to the server, and the response to the client.
fn forward(session: &Arc<Session>, ticket: Ticket, request: ServerRequest, budget: MemoryShare) {
    session.server.store_for_replay(&request);
    if let Some(connection) = session.server.connection_now() {
        return session.forward_to_server(&connection, ticket, request, budget);
    }
    // Waits for the server in a task so that other messages can be read in the meantime.
    let session_for_task = session.clone();
    session.spawn_tracked(&ticket.clone(), async move {
        match session_for_task.server.connection().await {
            Err(problem) => session_for_task.fail(&ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()),
            Ok(connection) => session_for_task.forward_to_server(&connection, ticket, request, budget),
        }
    });
}

impl Session {
    /// Rebuilds the request from validated values. Also returns a sentence that lists the dropped parts, or `None` if
    /// nothing was dropped.
    fn rebuild(
        &self,
        (method, params): (&str, Option<&RawValue>),
    ) -> Result<(ServerRequest, Option<String>), ParamsError> {
        let issued = |purpose, value: &str, field| match self.issued.was_issued(purpose, value) {
            true => Ok(()),
            false => Err(ParamsError::NotIssued { field }),
        };
        let known = |all: &[&'static str]| all.iter().copied().find(|known| *known == method);
        let (value, meta);
        let body = if let Some(method) = known(&LISTS) {
            let fields;
            (fields, meta) = params::params(params, &["cursor"])?;
            value = params::optional::<String>(&fields, ("cursor", "params.cursor"))?;
            if let Some(cursor) = &value {
                issued(Purpose::Page(method), cursor, "params.cursor")?;
            }
            RequestBody::List { method, cursor: value.as_deref() }
        } else if let Some(method) = known(&TASKS) {
            let fields;
            (fields, meta) = params::params(params, &["taskId"])?;
            let task: String = params::required(&fields, ("taskId", "params.taskId"))?;
            issued(Purpose::Task, &task, "params.taskId")?;
            value = Some(task);
            RequestBody::Task { method, task: value.as_deref().unwrap_or_default() }
        } else if method == UNSUBSCRIBE {
            let fields;
            (fields, meta) = params::params(params, &["uri"])?;
            value = Some(self.subscribed_uri(params::required(&fields, ("uri", "params.uri"))?)?);
            RequestBody::Unsubscribe(value.as_deref().unwrap_or_default())
        } else {
            let fields;
            (fields, meta) = params::params(params, &["level"])?;
            let level: String = params::required(&fields, ("level", "params.level"))?;
            let level = LOG_LEVELS.into_iter().find(|known| *known == level);
            RequestBody::SetLogLevel(level.ok_or_else(|| ParamsError::Level(LOG_LEVELS.join(", ")))?)
        };
        let request = ServerRequest::new(body, &meta).map_err(ParamsError::Serialize)?;
        Ok((request, meta.dropped()))
    }

    /// Returns the URI under which the server knows the client's subscription to a resource.
    fn subscribed_uri(&self, uri: String) -> Result<String, ParamsError> {
        let is_subscribed = |uri: &String| self.server.is_subscribed(uri);
        let uri = match ResourceAddress::parse(&uri)? {
            ResourceAddress::Other => Some(uri.clone()).filter(is_subscribed),
            ResourceAddress::File(path) => {
                let found = self.resolver.resolve(&path).ok().and_then(|found| file_address(&found.path));
                // A symlink may have changed since the subscription, so the unresolved URI is tried too.
                found.into_iter().chain([uri.clone()]).find(is_subscribed)
            }
        }
        .ok_or_else(|| ParamsError::NotSubscribed(params::for_display(&uri)))?;
        Ok(uri)
    }

    /// Records a request that is forwarded without judging.
    async fn record_passing(
        &self,
        ticket: &Ticket,
        request: &ServerRequest,
        dropped: Option<String>,
    ) -> Result<(), AuditError> {
        let params = parse_params(request.params());
        let summary = dropped.unwrap_or_else(|| "passed on".to_owned());
        let mut entry = self.request_entry(&ticket.id, request.method(), &summary);
        let reason = format!("{} is passed on", describe_request(request.method(), &params));
        entry.policy_decision = Some(PolicyDecision::allow(DecidedBy::PassedOn, PASSED_RULE, &reason));
        entry.arguments = Some(redacted(&params)).filter(|_| !params.is_empty());
        self.services.audit.record(entry).await.map(drop)
    }

    /// Records the client's response to a request from the server.
    pub(super) async fn record_client_answer(
        &self,
        id: &Id,
        request: &ClientRequest,
        answer: &ClientAnswer,
    ) -> Result<(), AuditError> {
        let method = request.name();
        let summary = answer.dropped().unwrap_or_else(|| "passed on".to_owned());
        let mut entry = self.request_entry(id, method, &summary);
        let reason = format!("the client's response to `{method}` is passed on");
        entry.policy_decision = Some(PolicyDecision::allow(DecidedBy::PassedOn, PASSED_RULE, &reason));
        entry.arguments = Some(redacted(&answer.content));
        self.services.audit.record(entry).await.map(drop)
    }

    /// Records a request with invalid parameters and answers it with an error.
    pub(super) async fn reject_params(
        &self,
        ticket: &Ticket,
        request: (&str, Option<&RawValue>),
        problem: &ParamsError,
    ) {
        let is_address = matches!(problem, ParamsError::Address(_));
        let (kind, text) = match is_address {
            true => (Rejection::Resource, denied(problem)),
            false => (Rejection::Malformed, problem.to_string()),
        };
        self.reject(ticket, request, kind, (problem.code(), &text)).await;
    }

    /// Records a rejected request and answers it with an error.
    pub(super) async fn reject(
        &self,
        ticket: &Ticket,
        request: (&str, Option<&RawValue>),
        kind: Rejection,
        (code, problem): (ErrorCode, &str),
    ) {
        self.record_rejection(&ticket.id, request, kind, problem).await;
        self.fail(ticket, code, problem);
    }

    /// Records a request that the protocol layer rejected.
    pub(super) async fn record_refused(&self, refused: &RefusedRequest) {
        let request = (refused.method.as_str(), refused.params.as_deref());
        self.record_rejection(&refused.id, request, Rejection::Malformed, &refused.why).await;
    }

    async fn record_rejection(
        &self,
        id: &Id,
        (method, params): (&str, Option<&RawValue>),
        kind: Rejection,
        problem: &str,
    ) {
        let params = parse_params(params);
        let mut entry = self.request_entry(id, method, "the request was rejected");
        let reason = format!("{}: {problem}", describe_request(method, &params));
        entry.policy_decision = Some(PolicyDecision::deny(kind.decided_by(), kind.rule(), &reason));
        entry.arguments = Some(redacted(&params));
        self.record_denied(entry).await;
    }

    /// Records a dropped message that is not a request. Records at most [`MAX_DROPPED_RECORDED`] per session.
    pub(super) async fn dropped(&self, problem: &str) {
        let before = self.dropped_messages.fetch_add(1, Ordering::Relaxed);
        if before >= MAX_DROPPED_RECORDED {
            return;
        }
        let mut entry = self.entry(Event::Decision, "a message was dropped");
        let more = if before + 1 == MAX_DROPPED_RECORDED { "; further ones are not recorded" } else { "" };
        let reason = format!("{problem}{more}");
        entry.policy_decision =
            Some(PolicyDecision::deny(DecidedBy::Malformed, Rejection::Malformed.rule(), &reason));
        self.record_denied(entry).await;
    }

    async fn record_denied(&self, entry: Entry) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a rejected request");
        }
        self.services.changed();
    }

    fn request_entry(&self, id: &Id, method: &str, summary: &str) -> Entry {
        let mut entry = self.entry(Event::Decision, summary);
        entry.request_id = Some(id.as_json().to_owned());
        entry.method = Some(method.to_owned());
        entry
    }
}

/// Parses parameters. Returns an empty map if they are invalid.
fn parse_params(params: Option<&RawValue>) -> Map<String, Value> {
    params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default()
}

/// Describes a request by its method and target, for the audit log.
fn describe_request(method: &str, params: &Map<String, Value>) -> String {
    let shown = |text: &str| visible::head(&visible::line(text), MAX_NAME_LEN);
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
    fn a_request_is_named_with_its_target() {
        let named = |method: &str, params: Value| describe_request(method, params.as_object().unwrap());
        assert_eq!(named("resources/read", json!({ "uri": "memo://a" })), "`resources/read` of `memo://a`");
        assert_eq!(named("prompts/get", json!({ "name": "x\ny" })), "`prompts/get` of `x\\u{a}y`");
        assert_eq!(named("completion/complete", json!({ "uri": 1 })), "`completion/complete`");
    }
}
