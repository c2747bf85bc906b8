//! A host that nothing allows, put to the person.
//!
//! - A yes for longer than once is a grant before the connection goes on, so that it can be listed and taken back.
//! - Few questions of one server are open at once; the others wait.
//! - A no holds for a moment: programs try again by themselves, and a person must not have to say it five times.

use super::caller::Caller;
use super::reach::ReachableHosts;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_consent::{
    DenialScope, DeniedKey, ExchangeError, HostQuestion, Inquiry, Lifetime, QuestionKey,
};
use ironcurtain_egress::{AskHost, BoxFuture, HostAnswer, HostDecision, HostPort, HostRules};
use ironcurtain_grants::Granted;
use serde_json::Map;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The number of questions of one server that may be open at once.
const MOST_OPEN: usize = 4;

/// The time for which a no holds.
const NO_HOLDS: Duration = Duration::from_secs(30);

/// Asks the person on behalf of one server.
pub(super) struct HostAsker(Arc<Asking>);

struct Asking {
    caller: Arc<Caller>,
    reach: Arc<ReachableHosts>,
    places: Semaphore,
    refused: Mutex<HashMap<HostPort, (Instant, String)>>,
}

impl HostAsker {
    pub(super) fn new(caller: Arc<Caller>, reach: Arc<ReachableHosts>) -> Self {
        let (places, refused) = (Semaphore::new(MOST_OPEN), Mutex::default());
        Self(Arc::new(Asking { caller, reach, places, refused }))
    }
}

impl AskHost for HostAsker {
    fn ask(&self, target: HostPort) -> BoxFuture<'static, HostAnswer> {
        let asking = self.0.clone();
        Box::pin(async move { asking.ask(&target).await })
    }
}

impl Asking {
    /// The answer. Without one it is no, and the program that wanted to go there is told why.
    async fn ask(&self, target: &HostPort) -> HostAnswer {
        if let Some(why) = self.said_no(target) {
            return HostAnswer::No { why };
        }
        // Closing it is nobody's business.
        let _place = self.places.acquire().await;
        if self.is_allowed(target) {
            return HostAnswer::Granted;
        }
        self.put(target).await.unwrap_or_else(|problem| {
            let why = problem.to_string();
            if matches!(problem, ExchangeError::NotApproved(_)) {
                self.note_no(target, &why);
            }
            HostAnswer::No { why }
        })
    }

    /// Puts the question, and grants what is allowed for longer than once.
    async fn put(&self, target: &HostPort) -> Result<HostAnswer, ExchangeError> {
        let caller = &self.caller;
        let principal = &caller.principal;
        let exchange = caller.services.exchange(principal);
        let question = HostQuestion {
            id: exchange.name()?,
            principal,
            target,
            deadline: caller.services.config.question_deadline(),
        }
        .build();
        let mut entry = caller.entry(Event::Question, "a question was put to the person", target);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let inquiry = Inquiry {
            entry,
            identity: QuestionKey::of(&question, &[]),
            call: DeniedKey::of(principal, &target.to_string(), &Map::new()),
            scope: DenialScope::of_host(target),
            question,
        };
        match exchange.ask(inquiry, self.no_question_left(target)).await? {
            None => Ok(HostAnswer::Granted),
            Some(approval) if approval.lifetime == Lifetime::Once => Ok(HostAnswer::Once),
            Some(approval) => {
                exchange.grant(&approval, vec![Granted::Host(target.clone())]).await?;
                caller.publish_rules(&self.reach);
                Ok(HostAnswer::Granted)
            }
        }
    }

    /// Completes when the target is allowed by something else.
    async fn no_question_left(&self, target: &HostPort) {
        let mut rules = self.reach.rules();
        if rules.wait_for(|rules| allow(rules, target)).await.is_err() {
            std::future::pending().await
        }
    }

    fn is_allowed(&self, target: &HostPort) -> bool {
        allow(&self.reach.rules().borrow(), target)
    }

    /// The no that still holds.
    fn said_no(&self, target: &HostPort) -> Option<String> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, (at, _)| at.elapsed() < NO_HOLDS);
        refused.get(target).map(|(_, why)| why.clone())
    }

    fn note_no(&self, target: &HostPort, why: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(target.clone(), (Instant::now(), why.to_owned()));
    }
}

fn allow(rules: &HostRules, target: &HostPort) -> bool {
    matches!(rules.judge(target), HostDecision::Allow { .. })
}
