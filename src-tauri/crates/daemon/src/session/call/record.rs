//! The entries about a call, and the answer to one that is refused.

use super::Call;
use crate::judging::InspectedCall;
use crate::policy_snapshot::PolicySnapshot;
use crate::session::Session;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{CallResult, DecidedBy, Entry, Event, PolicyDecision, redacted};
use ironcurtain_consent::{PAUSED, Stop};
use ironcurtain_mcp::wire::{error_line, result_line};
use ironcurtain_policy::{AllowedBy, Denial, DeniedBy};
use rmcp::model::ErrorCode;
use std::path::Path;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Session {
    /// The policy says no.
    pub(super) async fn deny(
        &self,
        call: &Call,
        inspected: &InspectedCall,
        denial: Denial,
        snapshot: &PolicySnapshot,
    ) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        self.services.metrics.decided("deny");
        let mut entry = self.about(call, inspected, Event::Decision, "denied");
        entry.policy_decision =
            Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
        entry.policy_hash = Some(snapshot.hash.clone());
        self.record(entry).await;
        self.note_violation(call, inspected).await;
        self.refuse(call, &CallRefusal::Denied(denial));
        self.services.changed();
    }

    /// Puts on record that nobody is asked, since no yes could work, and on which ground.
    pub(super) async fn deny_unasked(
        &self,
        call: &Call,
        inspected: &InspectedCall,
        ((by, rule), refusal): ((DecidedBy, &str), CallRefusal),
        snapshot: &PolicySnapshot,
    ) -> CallRefusal {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        let mut entry = self.about(call, inspected, Event::Decision, "denied");
        entry.policy_decision = Some(PolicyDecision::deny(by, rule, &refusal.to_string()));
        entry.policy_hash = Some(snapshot.hash.clone());
        self.record(entry).await;
        self.services.changed();
        refusal
    }

    /// Answers why not: a tool call with a result that says it, another request with an error.
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

    /// Puts on record that a call which was allowed did not happen, and why.
    pub(super) fn not_forwarded(&self, decision: u64, why: &str) {
        let mut entry = Entry::end_of(decision, CallResult::Refused, 0);
        entry.summary = format!("not forwarded: {why}");
        self.note_end(entry);
    }

    /// Puts on record, soon, how a call ended.
    pub(super) fn note_end(&self, entry: Entry) {
        if let Err(problem) = self.services.audit.note(entry) {
            tracing::error!(%problem, "the end of a call is not on record");
        }
    }

    /// The agent is paused: the call is not looked at.
    pub(super) async fn deny_paused(&self, call: &Call) {
        self.services.metrics.decided("deny");
        let refusal = CallRefusal::NotApproved(Stop::Paused.into());
        let mut entry = self.entry(Event::Decision, "denied");
        entry.request_id = Some(call.ticket.id.as_json().to_owned());
        entry.tool_name = Some(call.tool.tool.clone());
        entry.arguments = Some(redacted(&call.tool.arguments));
        entry.policy_decision =
            Some(PolicyDecision::deny(DecidedBy::Paused, PAUSED, &Stop::Paused.to_string()));
        self.record(entry).await;
        self.refuse(call, &refusal);
        self.services.changed();
    }

    /// Puts on record that a refused call names a path outside of what the server is told of, and counts it.
    pub(super) async fn note_violation(&self, call: &Call, inspected: &InspectedCall) {
        let roots: Vec<String> = self.server.shown().roots.into_iter().map(|root| root.path).collect();
        let outside = |path: &String| !roots.iter().any(|root| Path::new(path).starts_with(root));
        let Some(path) = inspected.paths.texts().into_iter().find(outside) else { return };
        self.services.metrics.violation();
        let mut entry = self
            .entry(Event::BoundaryViolation, format!("`{path}` lies outside of what the server is told of"));
        entry.request_id = Some(call.ticket.id.as_json().to_owned());
        entry.tool_name = Some(call.tool.tool.clone());
        (entry.path, entry.roots) = (Some(path), roots);
        self.record(entry).await;
    }

    pub(super) fn about(
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

    /// For what has happened already and cannot be undone by a failing log.
    pub(super) async fn record(&self, entry: Entry) {
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "an event is not on record");
        }
    }
}

pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The judge's ground for allowing, as it is on record.
pub(super) fn allowed_by(by: AllowedBy) -> DecidedBy {
    match by {
        AllowedBy::Rule => DecidedBy::Rule,
        AllowedBy::Answer => DecidedBy::Answer,
        AllowedBy::SessionFolder => DecidedBy::SessionFolder,
        AllowedBy::Grant => DecidedBy::Grant,
        AllowedBy::Introspection => DecidedBy::Introspection,
        AllowedBy::Confined => DecidedBy::PassedOn,
    }
}

fn denied_by(by: DeniedBy) -> DecidedBy {
    match by {
        DeniedBy::Rule => DecidedBy::Rule,
        DeniedBy::NoRule => DecidedBy::NoRule,
        DeniedBy::ProtectedPath => DecidedBy::ProtectedPath,
        DeniedBy::InvalidArgument => DecidedBy::InvalidArgument,
        DeniedBy::UnknownTool => DecidedBy::UnknownTool,
    }
}
