//! Asks the user about hosts that no rule allows.
//!
//! - If the user approves more than the waiting connections, the approval is stored as a grant first, so that it can be
//!   revoked.
//! - Limits the number of pending questions per server. Further questions wait.
//! - Asks about a service on this computer by its port, and only if a program is listening on the port.
//! - Remembers a denial briefly, because programs retry automatically and would trigger the same question again.

use super::caller::Caller;
use super::reach::ReachableHosts;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_consent::{
    DenialScope, DeniedKey, ExchangeError, HostQuestion, Inquiry, Lifetime, QuestionKey,
};
use ironcurtain_egress::{AskHost, BoxFuture, HostAnswer, HostDecision, HostPort, HostRules};
use ironcurtain_grants::Granted;
use ironcurtain_sandbox::is_host_port_listening;
use serde_json::Map;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Maximum number of pending questions per server.
const MAX_OPEN: usize = 4;

/// Duration for which a denial is remembered.
const DENIAL_DURATION: Duration = Duration::from_secs(30);

/// Asks the user about hosts for one server.
pub(super) struct HostAsker(Arc<HostAskerState>);

struct HostAskerState {
    caller: Arc<Caller>,
    reach: Arc<ReachableHosts>,
    question_slots: Semaphore,
    refused: Mutex<HashMap<HostPort, (Instant, String)>>,
}

impl HostAsker {
    pub(super) fn new(caller: Arc<Caller>, reach: Arc<ReachableHosts>) -> Self {
        let (question_slots, refused) = (Semaphore::new(MAX_OPEN), Mutex::default());
        Self(Arc::new(HostAskerState { caller, reach, question_slots, refused }))
    }
}

impl AskHost for HostAsker {
    fn ask(&self, target: HostPort) -> BoxFuture<'static, HostAnswer> {
        let asking = self.0.clone();
        Box::pin(async move { asking.ask(&target).await })
    }
}

impl HostAskerState {
    /// Returns the user's answer, or a denial with a reason if the user does not answer.
    async fn ask(&self, target: &HostPort) -> HostAnswer {
        if let Some(why) = self.recent_denial(target) {
            return HostAnswer::Denied { why };
        }
        // The semaphore is never closed.
        let _place = self.question_slots.acquire().await;
        if self.is_allowed(target) {
            return HostAnswer::Granted;
        }
        let port = target.port;
        let listens = move || is_host_port_listening(port);
        if target.host.is_local() && !tokio::task::spawn_blocking(listens).await.unwrap_or(false) {
            return HostAnswer::Denied { why: format!("no program on this computer listens on port {port}") };
        }
        self.ask_user(target).await.unwrap_or_else(|problem| {
            let why = problem.to_string();
            if matches!(problem, ExchangeError::NotApproved(_)) {
                self.remember_denial(target, &why);
            }
            HostAnswer::Denied { why }
        })
    }

    /// Asks the user. If the user allows more than the waiting connections, creates a grant.
    async fn ask_user(&self, target: &HostPort) -> Result<HostAnswer, ExchangeError> {
        let caller = &self.caller;
        let principal = &caller.principal;
        let exchange = caller.services.exchange(principal);
        let question = HostQuestion {
            id: exchange.new_question_id()?,
            principal,
            target,
            deadline: caller.services.config.question_deadline(),
        }
        .build();
        let mut entry = caller.entry(Event::Question, "the user was asked", target);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let inquiry = Inquiry {
            entry,
            identity: QuestionKey::of(&question, &[]),
            call: DeniedKey::of(principal, &target.to_string(), &Map::new()),
            scope: DenialScope::of_host(target),
            question,
        };
        match exchange.ask(inquiry, self.question_obsolete(target)).await? {
            None => Ok(HostAnswer::Granted),
            Some(approval) if approval.lifetime == Lifetime::Once => Ok(HostAnswer::Once),
            Some(approval) => {
                exchange.grant(&approval, vec![Granted::Host(target.clone())]).await?;
                caller.publish_rules(&self.reach);
                Ok(HostAnswer::Granted)
            }
        }
    }

    /// Completes when a rule or grant allows the target.
    async fn question_obsolete(&self, target: &HostPort) {
        let mut rules = self.reach.rules();
        if rules.wait_for(|rules| allow(rules, target)).await.is_err() {
            std::future::pending().await
        }
    }

    fn is_allowed(&self, target: &HostPort) -> bool {
        allow(&self.reach.rules().borrow(), target)
    }

    /// Returns the reason for the denial if the target was denied recently.
    fn recent_denial(&self, target: &HostPort) -> Option<String> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, (at, _)| at.elapsed() < DENIAL_DURATION);
        refused.get(target).map(|(_, why)| why.clone())
    }

    fn remember_denial(&self, target: &HostPort, why: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(target.clone(), (Instant::now(), why.to_owned()));
    }
}

fn allow(rules: &HostRules, target: &HostPort) -> bool {
    matches!(rules.judge(target), HostDecision::Allow { .. })
}
