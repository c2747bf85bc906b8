//! Records calls in the audit log and answers refused calls.

use super::Call;
use crate::session::Session;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{CallResult, DecidedBy, Entry, Event, PolicyDecision, redacted};
use ironcurtain_config::PolicySnapshot;
use ironcurtain_consent::{CHANGED_TOOL_RULE, PAUSED, Stop};
use ironcurtain_judging::{InspectedCall, denied_by};
use ironcurtain_mcp::wire::{error_line, result_line};
use ironcurtain_policy::Denial;
use rmcp::model::ErrorCode;
use std::path::Path;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Session {
    /// Records and answers a call that the policy denies.
    pub(super) async fn deny(
        &self,
        call: &Call,
        inspected: &InspectedCall,
        denial: Denial,
        snapshot: &PolicySnapshot,
    ) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.count_decision("deny");
        let mut entry = self.call_entry(call, inspected, Event::Decision, "denied");
        entry.policy_decision =
            Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
        entry.policy_hash = Some(snapshot.hash.clone());
        self.record(entry).await;
        self.record_violation(call, inspected).await;
        self.refuse(call, &CallRefusal::Denied(denial));
        self.services.changed();
    }

    /// Records a call that is denied without asking the user, because no approval could make it succeed.
    pub(super) async fn deny_without_asking(
        &self,
        call: &Call,
        inspected: &InspectedCall,
        ((by, rule), refusal): ((DecidedBy, &str), CallRefusal),
        snapshot: &PolicySnapshot,
    ) -> CallRefusal {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        let mut entry = self.call_entry(call, inspected, Event::Decision, "denied");
        entry.policy_decision = Some(PolicyDecision::deny(by, rule, &refusal.to_string()));
        entry.policy_hash = Some(snapshot.hash.clone());
        self.record(entry).await;
        self.services.changed();
        refusal
    }

    /// Sends the reason for a refusal to the client: as a result with `isError` for a tool call, or as a JSON-RPC error
    /// for any other request.
    pub(super) fn refuse(&self, call: &Call, refusal: &CallRefusal) {
        if matches!(refusal, CallRefusal::NotApproved(_)) {
            self.counts.denied.fetch_add(1, Ordering::Relaxed);
        }
        let id = &call.ticket.id;
        let line = match call.tool.request {
            None => result_line(id, &refusal.result()),
            Some(_) => error_line(Some(id), ErrorCode::INVALID_REQUEST.0, &refusal.text()),
        };
        self.finish(&call.ticket, line);
    }

    /// Records that an allowed call was not sent to the server.
    pub(super) fn record_not_forwarded(&self, decision: u64, why: &str) {
        let mut entry = Entry::outcome_of(decision, CallResult::Refused, 0);
        entry.summary = format!("not forwarded: {why}");
        self.record_end(entry);
    }

    /// Queues the audit entry for the result of a call.
    pub(super) fn record_end(&self, entry: Entry) {
        if let Err(problem) = self.services.audit.note(entry) {
            tracing::error!(%problem, "failed to record the end of a call");
        }
    }

    /// Denies a call while the agent is paused. The call is not judged.
    pub(super) async fn deny_paused(&self, call: &Call) {
        let refusal = CallRefusal::NotApproved(Stop::Paused.into());
        self.deny_unjudged(call, (DecidedBy::Paused, PAUSED), &refusal).await;
    }

    /// Denies a call to a tool whose definition changed. The call is not judged.
    pub(super) async fn deny_changed(&self, call: &Call, refusal: &CallRefusal) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        self.deny_unjudged(call, (DecidedBy::ToolChanged, CHANGED_TOOL_RULE), refusal).await;
    }

    async fn deny_unjudged(&self, call: &Call, (by, rule): (DecidedBy, &str), refusal: &CallRefusal) {
        self.services.metrics.count_decision("deny");
        let mut entry = self.entry(Event::Decision, "denied");
        entry.request_id = Some(call.ticket.id.as_json().to_owned());
        entry.tool_name = Some(call.tool.tool.clone());
        entry.arguments = Some(redacted(&call.tool.arguments));
        entry.policy_decision = Some(PolicyDecision::deny(by, rule, &refusal.to_string()));
        self.record(entry).await;
        self.refuse(call, refusal);
        self.services.changed();
    }

    /// Records and counts a refused call that names a path outside the server's roots.
    pub(super) async fn record_violation(&self, call: &Call, inspected: &InspectedCall) {
        let roots: Vec<String> =
            self.server.intended_view().roots.into_iter().map(|root| root.path).collect();
        let outside = |path: &String| !roots.iter().any(|root| Path::new(path).starts_with(root));
        let Some(path) = inspected.paths.texts().into_iter().find(outside) else { return };
        self.services.metrics.count_violation();
        let mut entry =
            self.entry(Event::BoundaryViolation, format!("`{path}` is outside the server's roots"));
        entry.request_id = Some(call.ticket.id.as_json().to_owned());
        entry.tool_name = Some(call.tool.tool.clone());
        (entry.path, entry.roots) = (Some(path), roots);
        self.record(entry).await;
    }

    pub(super) fn call_entry(
        &self,
        call: &Call,
        inspected: &InspectedCall,
        event: Event,
        summary: impl Into<String>,
    ) -> Entry {
        let mut entry = self.entry(event, summary);
        entry.request_id = Some(call.ticket.id.as_json().to_owned());
        entry.method = Some(call.tool.method().to_owned()).filter(|_| call.tool.request.is_some());
        entry.tool_name = Some(call.tool.tool.clone());
        entry.paths = inspected.paths.texts();
        entry.arguments = Some(redacted(&inspected.arguments));
        entry
    }

    /// Records an event that has already happened. If recording fails, the error is only logged.
    pub(in crate::session) async fn record(&self, entry: Entry) {
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record an event");
        }
    }
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
