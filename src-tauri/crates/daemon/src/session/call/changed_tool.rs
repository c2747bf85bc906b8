//! Asks the user about a changed tool when the agent calls it.
//!
//! - A decision applies to the definition that the question showed. If the tool has changed again since then, it stays
//!   suspended.
//! - A call that was written for the old definition is never sent once the user has accepted the new definition.

use super::asking::{Escalated, ask};
use super::{Call, proceed};
use crate::session::Session;
use crate::session::authorize::Judged;
use crate::session::pin_error::PinError;
use crate::session::refusal::CallRefusal;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_consent::definition::DefinitionChange;
use ironcurtain_consent::{
    ChangedToolQuestion, DenialScope, DeniedKey, ExchangeError, Inquiry, NotApproved, QuestionKey, Reach,
};
use ironcurtain_grants::{PinDecision, ToolPin};
use ironcurtain_policy::Verdict;
use ironcurtain_services::DECISION_POLL_INTERVAL;
use ironcurtain_visible as visible;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A tool's changed definition.
struct ChangedDefinition {
    listed: String,
    change: DefinitionChange,
    diff: String,
}

/// Asks the user about the call's tool. `refusal` is sent to the client if the tool stays suspended.
pub(super) async fn ask_about_tool(session: Arc<Session>, call: Call, refusal: CallRefusal) {
    session.counts.asked.fetch_add(1, Ordering::Relaxed);
    session.services.metrics.count_decision("escalate");
    match ask_and_store(&session, &call).await {
        Ok(None) => session.refuse_suspended(&call, &refusal),
        Ok(Some(PinDecision::Keep)) => judge_again(session, call).await,
        Ok(Some(PinDecision::Update)) => {
            let tool = visible::line(&call.tool.tool);
            session.refuse(&call, &CallRefusal::ToolUpdated { tool });
        }
        Ok(Some(PinDecision::Remove)) => match session.check_pin(&call.tool.tool).await {
            Ok(()) => session.refuse(&call, &CallRefusal::KeptChanging),
            Err(refusal) => session.refuse_suspended(&call, &refusal),
        },
        Err(CallRefusal::NotApproved(
            NotApproved::Denied
            | NotApproved::StillDenied { .. }
            | NotApproved::TimedOut { .. }
            | NotApproved::TooMany { .. }
            | NotApproved::Closed,
        )) => session.refuse_suspended(&call, &refusal),
        Err(removed @ CallRefusal::ToolRemoved { .. }) => session.refuse_suspended(&call, &removed),
        Err(other) => session.refuse(&call, &other),
    }
}

/// Judges a call whose tool keeps its old definition.
async fn judge_again(session: Arc<Session>, call: Call) {
    let Judged { verdict, inspected, basis } = session.judge(&call.tool, &[]).await;
    match verdict {
        Verdict::Allow(permit) => {
            let authorization = session.authorize(permit, inspected, &basis, Vec::new());
            proceed(session, call, authorization, None).await;
        }
        Verdict::Escalate(escalation) => {
            ask(session, call, Escalated { escalation, inspected, snapshot: basis.snapshot }).await;
        }
        Verdict::Deny(denial) => session.deny(&call, &inspected, denial, &basis.snapshot).await,
    }
}

/// Asks the user and stores the decision. Returns `None` if the tool stays suspended.
async fn ask_and_store(session: &Session, call: &Call) -> Result<Option<PinDecision>, CallRefusal> {
    let tool = call.tool.tool.as_str();
    let Some(ChangedDefinition { listed, change, diff }) = session.changed_definition(tool).await? else {
        return existing_decision(session, tool).await;
    };
    let exchange = session.services.exchange(&session.principal);
    let question = ChangedToolQuestion {
        id: exchange.new_question_id()?,
        principal: &session.principal,
        tool,
        change: &change,
        diff,
        deadline: session.services.config.question_deadline(),
    }
    .build();
    let mut entry = session.entry(Event::Question, "the user was asked about a tool that its server changed");
    entry.request_id = Some(call.ticket.id.as_json().to_owned());
    entry.tool_name = Some(tool.to_owned());
    entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
    let definition = Map::from_iter([("definition".to_owned(), Value::String(listed.clone()))]);
    let inquiry = Inquiry {
        identity: QuestionKey::of(&question, std::slice::from_ref(&listed)),
        call: DeniedKey::of(&session.principal, tool, &definition),
        scope: DenialScope::of_request(tool),
        question,
        entry,
    };
    let answer = {
        let asking = session.notify_asking(&call.ticket.id);
        let answer = tokio::select! {
            answer = exchange.ask(inquiry, session.wait_for_decision_elsewhere(tool, &listed)) => answer,
            never = session.send_progress(call.began, call.tool.progress_token()) => match never {},
        };
        asking.notify_settled().await;
        answer?
    };
    let Some(approval) = answer else { return existing_decision(session, tool).await };
    let (decision, what) = match approval.offer.reach {
        Reach::NewDefinition => (PinDecision::Update, "accepted the new definition of"),
        Reach::OldDefinition => (PinDecision::Keep, "kept the old definition of"),
        Reach::NoDefinition => (PinDecision::Remove, "removed"),
        Reach::Paths
        | Reach::Folders
        | Reach::ProjectToRead
        | Reach::ProjectToChange
        | Reach::OpenFolderToChange
        | Reach::Host
        | Reach::Tool
        | Reach::AnyUse
        | Reach::ReadingTools
        | Reach::AllTools
        | Reach::Request => return Err(ExchangeError::NoOffer.into()),
    };
    let summary = format!("the user {what} the tool `{}` of {}", visible::line(tool), session.config.name);
    let mut entry = session.entry(Event::Server, summary);
    entry.tool_name = Some(tool.to_owned());
    session.services.audit.record(entry).await?;
    let ((pins, key), name) = (session.pins(), tool.to_owned());
    let decide = move || pins.decide(&key.server, (&name, &listed), decision);
    let is_current =
        tokio::task::spawn_blocking(decide).await.map_err(PinError::from)?.map_err(PinError::from)?;
    session.services.changed();
    if is_current && decision != PinDecision::Keep {
        session.invalidate_pins();
    }
    if is_current { Ok(Some(decision)) } else { existing_decision(session, tool).await }
}

/// Returns [`PinDecision::Keep`] if the user has decided elsewhere and the definition that the client knows is in
/// effect. Returns `None` if the tool is still suspended.
async fn existing_decision(session: &Session, tool: &str) -> Result<Option<PinDecision>, CallRefusal> {
    session.reread_pins();
    match session.check_pin(tool).await {
        Ok(()) => Ok(Some(PinDecision::Keep)),
        Err(CallRefusal::ToolChanged { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

impl Session {
    /// Returns a suspended tool's changed definition, or `None` if the tool is not suspended.
    async fn changed_definition(&self, tool: &str) -> Result<Option<ChangedDefinition>, PinError> {
        let ((pins, key), tool) = (self.pins(), tool.to_owned());
        let compare = move || {
            let all = pins.for_client(&key)?;
            let names: Vec<&str> = all.iter().map(|pin| pin.tool.as_str()).collect();
            let suspended = all.iter().find(|pin| pin.tool == tool && pin.is_suspended());
            Ok(suspended.map(|pin| {
                let change = DefinitionChange::between(&pin.definition, pin.listed(), &tool, &names);
                ChangedDefinition { listed: pin.listed().to_owned(), diff: change.diff(), change }
            }))
        };
        tokio::task::spawn_blocking(compare).await?
    }

    /// Completes when the user has decided on this definition elsewhere, or when the tool has changed again.
    async fn wait_for_decision_elsewhere(&self, tool: &str, listed: &str) {
        loop {
            tokio::time::sleep(DECISION_POLL_INTERVAL).await;
            let ((pins, key), shown) = (self.pins(), (tool.to_owned(), listed.to_owned()));
            let is_shown =
                move |pin: &ToolPin| pin.is_suspended() && pin.tool == shown.0 && pin.listed() == shown.1;
            let is_open = move || pins.for_client(&key).is_ok_and(|all| all.iter().any(is_shown));
            if !tokio::task::spawn_blocking(is_open).await.unwrap_or(false) {
                return;
            }
        }
    }

    fn refuse_suspended(&self, call: &Call, refusal: &CallRefusal) {
        self.counts.denied.fetch_add(1, Ordering::Relaxed);
        self.refuse(call, refusal);
        self.services.changed();
    }
}
