//! A server that wants the client's model to answer something (`sampling/createMessage`): the person sees all of it first.
//!
//! - INVARIANT: the client gets such a request when it is on record that it may, and never otherwise.
//! - One at a time: a server that asks on and on waits for the person.

use super::Session;
use super::refusal::denied;
use crate::config::Sampling;
use crate::consent::{
    DenialScope, DeniedKey, ExchangeError, Inquiry, NotApproved, QuestionKey, SAMPLING_RULE, SamplingQuestion,
};
use crate::server::SamplingRequest;
use crate::wire::request_parts;
use ironcurtain_audit::{AuditError, DecidedBy, Entry, Event, PolicyDecision, redacted};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// The request's method.
pub(super) const METHOD: &str = "sampling/createMessage";

/// The code for a request that the person did not want answered.
const REJECTED: i32 = -1;

/// Why the client does not get a request.
#[derive(Debug, thiserror::Error)]
enum SamplingError {
    /// It is not understood.
    #[error("`params` cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// There are none.
    #[error("`params` is missing")]
    NoParams,
    /// The person's setting says so.
    #[error("`sampling` is `deny` in the entry of this server")]
    Setting,
    /// Nobody said yes.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// It cannot be put on record.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Takes the requests of a session's server until the session ends.
pub(super) async fn serve(session: Arc<Session>, mut requests: mpsc::UnboundedReceiver<SamplingRequest>) {
    loop {
        let request = tokio::select! {
            () = session.end.cancelled() => return,
            request = requests.recv() => request,
        };
        let Some(SamplingRequest { id, params, held, connection }) = request else { return };
        let allowed = tokio::select! {
            () = session.end.cancelled() => return,
            allowed = session.may_sample(params.as_deref().map(|params| params.get())) => allowed,
        };
        match allowed {
            Ok(()) => {
                connection.asks_client(id.clone());
                session.to_client.send(request_parts(&id, METHOD, params).holding(held));
            }
            Err(problem) => connection.refuse(&id, REJECTED, &denied(problem)),
        }
    }
}

impl Session {
    /// Returns `true` if a server is told that the client's model can be asked.
    pub(super) fn offers_sampling(&self) -> bool {
        match self.config.sampling {
            Sampling::Allow => true,
            Sampling::Ask => self.services.broker.reaches_person(),
            Sampling::Deny => false,
        }
    }

    /// Asks the person, where the setting says so; the yes is on record.
    async fn may_sample(&self, params: Option<&str>) -> Result<(), SamplingError> {
        let params: Map<String, Value> = serde_json::from_str(params.ok_or(SamplingError::NoParams)?)?;
        let (by, reason) = match self.config.sampling {
            // What is paused is refused where it would be asked about.
            Sampling::Allow if !self.is_paused() => {
                (DecidedBy::PassedOn, "`sampling` is `allow` in the entry of the server")
            }
            Sampling::Allow | Sampling::Ask => {
                self.ask_about(&params).await?;
                (DecidedBy::Answer, "the user allowed it")
            }
            Sampling::Deny => {
                let mut entry = self.about_sampling(Event::Decision, &params);
                let decision = PolicyDecision::deny(
                    DecidedBy::Malformed,
                    SAMPLING_RULE,
                    &SamplingError::Setting.to_string(),
                );
                entry.policy_decision = Some(decision);
                self.services.audit.record(entry).await?;
                return Err(SamplingError::Setting);
            }
        };
        let mut entry = self.about_sampling(Event::Decision, &params);
        entry.policy_decision = Some(PolicyDecision::allow(by, SAMPLING_RULE, reason));
        self.services.audit.record(entry).await?;
        self.services.changed();
        Ok(())
    }

    async fn ask_about(&self, params: &Map<String, Value>) -> Result<(), SamplingError> {
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        let exchange = self.services.exchange(&self.principal);
        let question = SamplingQuestion {
            id: exchange.name()?,
            principal: &self.principal,
            params,
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let mut entry = self.about_sampling(Event::Question, params);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let inquiry = Inquiry {
            identity: QuestionKey::alone(&question),
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

    fn about_sampling(&self, event: Event, params: &Map<String, Value>) -> Entry {
        let mut entry = self.entry(event, "the server wants the client's model to answer something");
        entry.method = Some(METHOD.to_owned());
        entry.arguments = Some(redacted(params));
        entry
    }
}
