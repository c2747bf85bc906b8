//! A host that nothing allows, put to the person.
//!
//! - A yes for longer than once is a grant before the connection goes on, so that it can be listed and taken back.
//! - Few questions of one server are open at once; the others wait.
//! - A no holds for a moment: programs try again by themselves, and a person must not have to say it five times.

use super::caller::Caller;
use super::reach::ReachableHosts;
use crate::consent::{AskingHost, Lifetime, Offer, Outcome, build_host, grants_of};
use crate::grants::Granted;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_egress::{AskHost, BoxFuture, HostAnswer, HostDecision, HostPort, HostRules};
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
        Box::pin(async move { asking.ask(&target).await.unwrap_or_else(|why| HostAnswer::No { why }) })
    }
}

impl Asking {
    /// The answer; the error is why there was none, for the agent.
    async fn ask(&self, target: &HostPort) -> Result<HostAnswer, String> {
        if let Some(why) = self.said_no(target) {
            return Ok(HostAnswer::No { why });
        }
        let _place = self.places.acquire().await.map_err(|e| e.to_string())?;
        if self.is_allowed(target) {
            return Ok(HostAnswer::Granted);
        }
        let (services, client) = (&self.caller.services, self.caller.client_view());
        let id = crate::clock::random_name().map_err(|e| format!("no question could be made: {e}"))?;
        let question = build_host(AskingHost {
            id: id.clone(),
            session: &self.caller.session,
            client: &client,
            server: &self.caller.server.name,
            server_command: &self.caller.command(),
            target,
            deadline: services.config.question_deadline(),
        });
        let offers = question.offers.clone();
        let mut entry = self.caller.entry(Event::Question, "a question was put to the person", target);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        entry.question_id = Some(id.clone());
        services.audit.record(entry).await.map_err(|e| e.to_string())?;
        services.changed();
        let asked = Instant::now();
        let outcome = services.broker.ask(question, self.settled(target)).await;
        services.changed();
        self.answered(target, &id, &outcome, asked).await?;
        match outcome {
            Outcome::Allowed { lifetime: Lifetime::Once, .. } => Ok(HostAnswer::Once),
            Outcome::Allowed { offer, lifetime } => {
                let offer = offers.get(offer).ok_or("the answer names no offer")?;
                self.grant(target, offer, lifetime, &id).await?;
                Ok(HostAnswer::Granted)
            }
            Outcome::Settled => Ok(HostAnswer::Granted),
            refused
            @ (Outcome::Denied(_) | Outcome::Unavailable(_) | Outcome::Closed | Outcome::TimedOut) => {
                let why = why(&refused, services.config.question_deadline_seconds);
                self.note_no(target, &why);
                Ok(HostAnswer::No { why })
            }
        }
    }

    /// Completes when the target is allowed by something else.
    async fn settled(&self, target: &HostPort) {
        let mut rules = self.reach.rules();
        if rules.wait_for(|rules| allow(rules, target)).await.is_err() {
            std::future::pending().await
        }
    }

    fn is_allowed(&self, target: &HostPort) -> bool {
        allow(&self.reach.rules().borrow(), target)
    }

    async fn grant(
        &self,
        target: &HostPort,
        offer: &Offer,
        lifetime: Lifetime,
        question: &str,
    ) -> Result<(), String> {
        let (services, when) = (&self.caller.services, (lifetime, crate::clock::now_ms()));
        let (what, provenance) = (vec![Granted::Host(target.clone())], format!("question {question}"));
        let subject = self.caller.subject();
        let grants = grants_of(what, &subject, when, &provenance, crate::clock::random_name)
            .map_err(|e| format!("no grant could be made: {e}"))?;
        for grant in &grants {
            let summary = format!("{}, {}", offer.sentence, lifetime.words());
            let mut entry = self.caller.entry(Event::Grant, summary, target);
            entry.grant_id = Some(grant.id.clone());
            entry.question_id = Some(question.to_owned());
            services.audit.record(entry).await.map_err(|e| e.to_string())?;
        }
        services.grants.add(grants).await.map_err(|e| format!("the grant could not be kept: {e}"))?;
        self.caller.publish_rules(&self.reach);
        services.changed();
        Ok(())
    }

    async fn answered(
        &self,
        target: &HostPort,
        question: &str,
        outcome: &Outcome,
        asked: Instant,
    ) -> Result<(), String> {
        let end = outcome.on_record();
        let mut entry = self.caller.entry(Event::Answer, format!("the question ended: {end}"), target);
        entry.escalation_result = Some(end);
        entry.question_id = Some(question.to_owned());
        entry.human_ms = Some(u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.caller.services.audit.record(entry).await.map(|_| ()).map_err(|e| e.to_string())
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

/// Why it was not allowed, for the program that wanted to go there.
fn why(outcome: &Outcome, seconds: u64) -> String {
    match outcome {
        Outcome::Denied(Some(note)) => format!("the user denied it and says: {note}"),
        Outcome::Denied(None) => "the user denied it".to_owned(),
        Outcome::Unavailable(why) => why.clone(),
        Outcome::Closed => "the question was closed without an answer".to_owned(),
        Outcome::TimedOut => format!("the user did not answer within {seconds} s"),
        Outcome::Allowed { .. } | Outcome::Settled => "it changed while it was asked about".to_owned(),
    }
}
