//! The answer to the client's greeting, with what servers say of their own use.
//!
//! - It waits a moment at most, and only for servers of which nobody knows what they say: it is remembered for their program.
//! - A server is told that the client is initialized, and can ask it something, when the client has the answer.

use super::Aggregate;
use super::upstream::Phase;
use ironcurtain_mcp::wire::{Fields, Id, notification_line, result_line};
use ironcurtain_visible as visible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time that it may wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of characters of one server's words that are passed on.
const LONGEST: usize = 4000;

/// A greeting that is not answered yet.
#[derive(Debug)]
pub(super) struct Unanswered {
    id: Id,
    until: Instant,
}

impl Unanswered {
    /// One of this moment.
    pub(super) fn new(id: Id) -> Self {
        Self { id, until: Instant::now() + PATIENCE }
    }
}

impl Aggregate {
    /// A server has answered the greeting.
    pub(super) fn greeted_by(&mut self, upstream: u64, mut result: Fields) {
        let capabilities = result.get("capabilities").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let says = result.take("instructions").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let says = says.map(|says| visible::head(says.trim(), LONGEST)).filter(|says| !says.is_empty());
        if let Some(of) = self.upstreams.values().find(|of| of.number == upstream) {
            let says = says.map(Arc::from);
            self.state.services.instructions.remember(&of.config.command_line(), says);
        }
        self.welcomed.push((upstream, capabilities.unwrap_or_default()));
    }

    /// Answers the client's greeting when it is time, and goes on with the servers that have answered it.
    pub(super) fn settle_greeting(&mut self) {
        if let Some(unanswered) = &self.unanswered {
            let is_unknown = self.upstreams.values().any(|of| {
                of.phase == Phase::Coming
                    && self.state.services.instructions.of(&of.config.command_line()).is_none()
                    && !self.welcomed.iter().any(|(upstream, _)| *upstream == of.number)
            });
            if is_unknown && Instant::now() < unanswered.until {
                return;
            }
            self.answer_greeting();
        }
        for (upstream, capabilities) in std::mem::take(&mut self.welcomed) {
            self.to_upstream(upstream, notification_line("notifications/initialized", None), None);
            self.came(upstream, capabilities);
        }
    }

    /// Answers the client's greeting, if it is not answered.
    pub(super) fn answer_greeting(&mut self) {
        let (Some(greeting), Some(Unanswered { id, .. })) = (&self.greeting, self.unanswered.take()) else {
            return;
        };
        let known = &self.state.services.instructions;
        let servers = self
            .upstreams
            .iter()
            .map(|(name, of)| (name.as_str(), known.of(&of.config.command_line()).flatten()));
        let answer = greeting.answer(servers);
        self.reply(result_line(&id, &answer));
        let missing = self.upstreams.values().filter_map(|of| match &of.phase {
            Phase::Missing(why) => Some((of.config.name.clone(), why.clone())),
            Phase::Coming | Phase::Up | Phase::Ended => None,
        });
        for (server, why) in missing.collect::<Vec<_>>() {
            self.warn(format!("the server `{server}` is missing: {why}"));
        }
    }

    /// The time at which the greeting waits no longer.
    pub(super) fn greeting_waits_until(&self) -> Option<Instant> {
        self.unanswered.as_ref().map(|unanswered| unanswered.until)
    }
}
