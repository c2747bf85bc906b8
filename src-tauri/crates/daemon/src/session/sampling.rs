//! Handles a server's requests to use the client's model (`sampling/createMessage`). The user can review the complete
//! request first.
//!
//! - INVARIANT: the permission is recorded before the client receives the request.
//! - Handles one request at a time, so a server that sends many requests has to wait.

use super::Session;
use super::refusal::denied;
use ironcurtain_audit::{AuditError, DecidedBy, Entry, Event, PolicyDecision, redacted};
use ironcurtain_config::Sampling;
use ironcurtain_consent::{
    DenialScope, DeniedKey, ExchangeError, Inquiry, NotApproved, QuestionKey, SAMPLING_RULE, SamplingQuestion,
};
use ironcurtain_mcp::server::{ClientRequest, SamplingRequest};
use ironcurtain_mcp::wire::request_parts;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// MCP method for sampling.
pub(super) const METHOD: &str = "sampling/createMessage";

/// JSON-RPC error code for a request that the user rejected.
const USER_REJECTED: i32 = -1;

/// Reason why a sampling request is not sent to the client.
#[derive(Debug, thiserror::Error)]
enum SamplingError {
    /// The parameters are invalid.
    #[error("failed to parse `params`: {0}")]
    InvalidParams(#[from] serde_json::Error),
    /// The parameters are missing.
    #[error("`params` is missing")]
    MissingParams,
    /// The server's entry denies sampling.
    #[error("`sampling` is `deny` in the entry of this server")]
    DeniedByEntry,
    /// The user did not approve the request, or could not be asked.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The permission could not be recorded.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Handles sampling requests until the session closes.
pub(super) async fn serve(session: Arc<Session>, mut requests: mpsc::UnboundedReceiver<SamplingRequest>) {
    loop {
        let request = tokio::select! {
            () = session.end.cancelled() => return,
            request = requests.recv() => request,
        };
        let Some(SamplingRequest { id, params, share: held, connection }) = request else { return };
        let allowed = tokio::select! {
            () = session.end.cancelled() => return,
            allowed = session.approved_params(params.as_deref()) => allowed,
        };
        match allowed {
            Ok(params) => {
                connection.add_client_request(id.clone(), ClientRequest::Sampling);
                session.to_client.send(request_parts(&id, METHOD, Some(params)).holding(held));
            }
            Err(problem) => connection.refuse(&id, USER_REJECTED, &denied(problem)),
        }
    }
}

impl Session {
    /// Returns `true` if the server is offered the `sampling` capability.
    pub(super) fn offers_sampling(&self) -> bool {
        match self.config.sampling {
            Sampling::Allow => true,
            Sampling::Ask => self.services.broker.can_ask(),
            Sampling::Deny => false,
        }
    }

    /// Returns the parameters to send to the client, limited to the parts that the question shows.
    async fn approved_params(&self, params: Option<&RawValue>) -> Result<Box<RawValue>, SamplingError> {
        let params = serde_json::from_str(params.ok_or(SamplingError::MissingParams)?.get())?;
        let params = only_shown_fields(params);
        self.check_permission(&params).await?;
        Ok(to_raw_value(&params)?)
    }

    /// Asks for approval if the server's entry requires it, and records the permission.
    async fn check_permission(&self, params: &Map<String, Value>) -> Result<(), SamplingError> {
        let (by, reason) = match self.config.sampling {
            // If the agent is paused, falls through to the question, which is refused during a pause.
            Sampling::Allow if !self.is_paused() => {
                (DecidedBy::PassedOn, "`sampling` is `allow` in the entry of the server")
            }
            Sampling::Allow | Sampling::Ask => {
                self.ask_user(params).await?;
                (DecidedBy::Answer, "the user allowed it")
            }
            Sampling::Deny => {
                let mut entry = self.sampling_entry(Event::Decision, params);
                let decision = PolicyDecision::deny(
                    DecidedBy::Malformed,
                    SAMPLING_RULE,
                    &SamplingError::DeniedByEntry.to_string(),
                );
                entry.policy_decision = Some(decision);
                self.services.audit.record(entry).await?;
                return Err(SamplingError::DeniedByEntry);
            }
        };
        let mut entry = self.sampling_entry(Event::Decision, params);
        entry.policy_decision = Some(PolicyDecision::allow(by, SAMPLING_RULE, reason));
        self.services.audit.record(entry).await?;
        self.services.changed();
        Ok(())
    }

    async fn ask_user(&self, params: &Map<String, Value>) -> Result<(), SamplingError> {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        let exchange = self.services.exchange(&self.principal);
        let question = SamplingQuestion {
            id: exchange.new_question_id()?,
            principal: &self.principal,
            params,
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let mut entry = self.sampling_entry(Event::Question, params);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let inquiry = Inquiry {
            identity: QuestionKey::unique(&question),
            call: DeniedKey::of(&self.principal, METHOD, params),
            scope: DenialScope::of_request(METHOD),
            question,
            entry,
        };
        match exchange.ask(inquiry, std::future::pending()).await? {
            Some(_) => Ok(()),
            None => Err(ExchangeError::from(NotApproved::Closed).into()),
        }
    }

    fn sampling_entry(&self, event: Event, params: &Map<String, Value>) -> Entry {
        let mut entry = self.entry(event, "the server requests an answer from the client's model");
        entry.method = Some(METHOD.to_owned());
        entry.arguments = Some(redacted(params));
        entry
    }
}

/// Fields of a request that the question shows, and that are therefore forwarded.
const SHOWN_FIELDS: [&str; 10] = [
    "messages",
    "modelPreferences",
    "systemPrompt",
    "includeContext",
    "temperature",
    "maxTokens",
    "stopSequences",
    "metadata",
    "tools",
    "toolChoice",
];

/// Types of content blocks that the question cannot show.
const HIDDEN_BLOCK_TYPES: [&str; 2] = ["image", "audio"];

/// Removes the parts that the question does not show: `_meta`, annotations, images, audio and unknown fields.
fn only_shown_fields(params: Map<String, Value>) -> Map<String, Value> {
    let mut shown: Map<String, Value> =
        params.into_iter().filter(|(name, _)| SHOWN_FIELDS.contains(&name.as_str())).collect();
    for message in shown.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(message) = message.as_object_mut() else { continue };
        message.retain(|name, _| ["role", "content"].contains(&name.as_str()));
        match message.get_mut("content") {
            Some(Value::Array(blocks)) => blocks.iter_mut().for_each(show_block),
            Some(block) => show_block(block),
            None => {}
        }
    }
    shown
}

fn show_block(block: &mut Value) {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    if HIDDEN_BLOCK_TYPES.contains(&kind) {
        *block = json!({ "type": "text", "text": format!("({kind} left out by IronCurtain)") });
    } else if kind == "text"
        && let Some(block) = block.as_object_mut()
    {
        block.retain(|name, _| ["type", "text"].contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_gets_only_what_the_question_shows() {
        let text = json!({ "type": "text", "text": "hi", "annotations": { "x": "hidden" }, "_meta": { "x": "hidden" } });
        let picture = json!({ "type": "image", "data": "aGlkZGVu", "mimeType": "image/png" });
        let params = json!({
            "messages": [
                { "role": "user", "content": text, "_meta": { "x": "hidden" } },
                { "role": "user", "content": [text, picture] },
            ],
            "maxTokens": 10, "_meta": { "x": "hidden" }, "unknown": "hidden",
        });
        let text = json!({ "type": "text", "text": "hi" });
        let left_out = json!({ "type": "text", "text": "(image left out by IronCurtain)" });
        let expected = json!({
            "messages": [{ "role": "user", "content": text }, { "role": "user", "content": [text, left_out] }],
            "maxTokens": 10,
        });
        assert_eq!(Value::Object(only_shown_fields(params.as_object().unwrap().clone())), expected);
    }
}
