//! Decides on hosts that a run connects to, and asks the user if necessary.
//!
//! - The connection waits for the answer. The proxy then checks the published rules again.
//! - If the user approves more than the waiting connections, the approval is stored as a grant first, so that it is
//!   listed and can be revoked.
//! - A denial applies for the rest of the run.
//! - Questions about hosts appear where the run's questions about files appear. If questions about files are denied
//!   automatically, so are questions about hosts.

use super::caller::Caller;
use super::reach::ReachableHosts;
use super::run_targets::{RunTargets, TargetVerdict};
use crate::run_notes::{RunNotes, claimed_reason};
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_consent::{
    ConnectionQuestion, DenialScope, DeniedKey, ExchangeError, Inquiry, Lifetime, NotApproved, QuestionKey,
    SessionDenial,
};
use ironcurtain_egress::{AskHost, BoxFuture, HostAnswer, HostDecision, HostPort};
use ironcurtain_grants::Granted;
use ironcurtain_judging::denied_by;
use ironcurtain_policy::{Denial, HostConnection};
use ironcurtain_protocol::RunAsk;
use serde_json::Map;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of pending questions per run. Further questions wait.
const MAX_OPEN: usize = 8;

/// Maximum number of times that one connection is judged. It is judged again after each change to the rules or grants.
const MAX_ROUNDS: usize = 20;

/// Reason for denying without asking.
const DENY_OPTION_REASON: &str = "the run was started with `--deny`";

/// Reason a host request failed.
#[derive(Debug, thiserror::Error)]
pub enum HostRequestError {
    /// The text is not a host with a port, or it names an address or the user's own network.
    #[error("`{0}` cannot be requested: name a public host, or `localhost` with a port")]
    Unusable(String),
    /// A rule denies the host.
    #[error("denied without a question: {0}")]
    Denied(String),
    /// The run has connected to too many hosts, or the rules changed too often.
    #[error("the run uses too many hosts")]
    TooMany,
    /// The user did not approve the host.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

/// Asks the user about hosts for one run.
pub(super) struct RunAsker(pub(super) Arc<RunAsking>);

/// One run's state for questions about hosts.
pub(super) struct RunAsking {
    caller: Arc<Caller>,
    targets: Arc<RunTargets>,
    reach: Arc<ReachableHosts>,
    notes: Arc<RunNotes>,
    question_slots: Semaphore,
}

impl AskHost for RunAsker {
    fn ask(&self, target: HostPort) -> BoxFuture<'static, HostAnswer> {
        let asking = self.0.clone();
        Box::pin(async move { asking.decide(&target).await })
    }
}

impl RunAsking {
    pub(super) fn new(
        caller: Arc<Caller>,
        targets: Arc<RunTargets>,
        reach: Arc<ReachableHosts>,
        notes: Arc<RunNotes>,
    ) -> Self {
        Self { caller, targets, reach, notes, question_slots: Semaphore::new(MAX_OPEN) }
    }

    /// Judges a connection by the current rules and grants.
    pub(super) fn judge(&self, target: &HostPort) -> TargetVerdict {
        self.targets.judge(&self.caller.services, &self.caller.principal, target)
    }

    async fn decide(&self, target: &HostPort) -> HostAnswer {
        let no = |why: &str| HostAnswer::Denied { why: why.to_owned() };
        if !self.targets.remember(target) {
            return no("the run has connected to too many different hosts");
        }
        for _ in 0..MAX_ROUNDS {
            match self.judge(target) {
                TargetVerdict::Deny(denial) => {
                    self.note_denied(target, Some(denial.reason.to_string()));
                    return no(&denial.reason);
                }
                TargetVerdict::Allow(_) | TargetVerdict::Granted => {
                    self.publish();
                    if self.is_allowed(target) {
                        return HostAnswer::Granted;
                    }
                }
                TargetVerdict::Ask(_) => match self.question(target, None).await {
                    Ok(Some(Lifetime::Once)) => {
                        self.publish();
                        return HostAnswer::Once;
                    }
                    Ok(Some(_) | None) => {}
                    Err(problem) => {
                        if !matches!(problem, ExchangeError::NotApproved(_)) {
                            tracing::error!(%problem, "failed to ask about a host");
                        }
                        self.note_unapproved(target, &problem);
                        return no(&problem.to_string());
                    }
                },
            }
        }
        no("the rules changed too often")
    }

    /// Asks about a host before a program connects to it. Returns once the host is reachable.
    pub(super) async fn request(&self, target: &HostPort, why: &str) -> Result<(), HostRequestError> {
        let is_full = !self.targets.remember(target);
        for _ in 0..MAX_ROUNDS {
            match self.judge(target) {
                TargetVerdict::Allow(_) | TargetVerdict::Granted => {
                    self.publish();
                    return Ok(());
                }
                TargetVerdict::Deny(denial) => {
                    self.record_denial(target, &denial).await;
                    return Err(HostRequestError::Denied(denial.reason.to_string()));
                }
                TargetVerdict::Ask(_) if is_full => break,
                TargetVerdict::Ask(_) => {
                    if self.notes.ask() == RunAsk::Deny {
                        self.record_denial(target, &Denial::invalid(DENY_OPTION_REASON)).await;
                    }
                    self.question(target, Some(why)).await?;
                }
            }
        }
        self.record_denial(target, &Denial::invalid("the run uses too many hosts")).await;
        Err(HostRequestError::TooMany)
    }

    /// Records a denied request. Denied connections are recorded by the proxy.
    async fn record_denial(&self, target: &HostPort, denial: &Denial) {
        let mut entry = self.caller.entry(Event::Decision, "denied", target);
        entry.tool_name = Some(HostConnection::NAME.to_owned());
        entry.policy_decision =
            Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
        if let Err(problem) = self.caller.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record a denied request for a host");
        }
    }

    /// Asks the user once, and creates a grant if the user allows more than the waiting connections. Returns `None` if
    /// the connection must be judged again. If no connection is waiting, `requested` is the agent's reason for the
    /// request.
    pub(super) async fn question(
        &self,
        target: &HostPort,
        requested: Option<&str>,
    ) -> Result<Option<Lifetime>, ExchangeError> {
        // The semaphore is never closed.
        let _place = self.question_slots.acquire().await;
        let TargetVerdict::Ask(escalation) = self.judge(target) else {
            return Ok(None);
        };
        if self.notes.ask() == RunAsk::Deny {
            return Err(NotApproved::Unavailable(DENY_OPTION_REASON.to_owned()).into());
        }
        let Caller { services, principal, .. } = &*self.caller;
        services.metrics.count_decision("escalate");
        let exchange = services.exchange(principal);
        let mut question = ConnectionQuestion {
            id: exchange.new_question_id()?,
            principal,
            target,
            by: &escalation.by,
            deadline: services.config.question_deadline(),
        }
        .build();
        question
            .offers
            .iter_mut()
            .for_each(|offer| offer.lifetimes.retain(|lifetime| self.notes.may_offer(lifetime)));
        if let Some(why) = requested {
            // Without a waiting connection, a one-time approval would have no effect.
            question
                .offers
                .iter_mut()
                .for_each(|offer| offer.lifetimes.retain(|lifetime| *lifetime != Lifetime::Once));
            question.with.push(claimed_reason(why));
        }
        question.offers.retain(|offer| !offer.lifetimes.is_empty());
        if question.offers.is_empty() {
            return Err(ExchangeError::NoOffer);
        }
        let mut entry = self.caller.entry(Event::Question, "the user was asked", target);
        entry.tool_name = Some(HostConnection::NAME.to_owned());
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let scope = DenialScope::of_host(target);
        let denial = SessionDenial::of(&question, scope.clone(), None);
        let inquiry = Inquiry {
            entry,
            identity: QuestionKey::of(&question, &[]),
            call: DeniedKey::of(principal, &target.to_string(), &Map::new()),
            scope,
            question,
        };
        let open = self.notes.note_pending(&target.to_string(), &services.broker);
        let answer = exchange.ask(inquiry, self.question_obsolete(target)).await;
        drop(open);
        if matches!(&answer, Err(ExchangeError::NotApproved(why)) if why.is_answer()) {
            services.broker.stops().deny(denial);
        }
        let Some(approval) = answer? else { return Ok(None) };
        if approval.lifetime != Lifetime::Once {
            exchange.grant(&approval, vec![Granted::Host(target.clone())]).await?;
        }
        Ok(Some(approval.lifetime))
    }

    /// Completes when a rule or grant decides on the host without a question.
    async fn question_obsolete(&self, target: &HostPort) {
        let Caller { services, .. } = &*self.caller;
        let (mut table, mut snapshots) = (services.grants.watch(), services.snapshots.clone());
        while matches!(self.judge(target), TargetVerdict::Ask(_)) {
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Reports a denied host to the process that started the run.
    pub(super) fn note_denied(&self, target: &HostPort, why: Option<String>) {
        self.notes.denied(&target.to_string(), why);
    }

    /// Reports a host that the user did not approve. Includes the reason, unless the user denied the host or started
    /// the run with `--deny`.
    pub(super) fn note_unapproved(&self, target: &HostPort, problem: &ExchangeError) {
        let is_chosen = self.notes.ask() == RunAsk::Deny
            || matches!(problem, ExchangeError::NotApproved(NotApproved::Denied));
        self.note_denied(target, (!is_chosen).then(|| problem.to_string()));
    }

    fn is_allowed(&self, target: &HostPort) -> bool {
        matches!(self.reach.rules().borrow().judge(target), HostDecision::Allow { .. })
    }

    fn publish(&self) {
        self.caller.publish_rules(&self.reach);
    }
}
