//! Answers the client's `initialize`, including the instructions of all servers.
//!
//! - The response waits briefly for servers whose instructions are unknown. Instructions are remembered per command
//!   line.
//! - A server is marked as running, and may send requests to the client, only after the client has received the
//!   response.

use super::Aggregate;
use super::upstream::Phase;
use ironcurtain_mcp::wire::{Fields, Id, notification_line, result_line};
use ironcurtain_visible as visible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time that the response to `initialize` waits for servers.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of one server's instructions, in characters. Longer instructions are truncated.
const MAX_LEN: usize = 4000;

/// The client's `initialize` request while it is unanswered.
#[derive(Debug)]
pub(super) struct Unanswered {
    id: Id,
    until: Instant,
}

impl Unanswered {
    /// Creates the state for a request that has just arrived.
    pub(super) fn new(id: Id) -> Self {
        Self { id, until: Instant::now() + TIMEOUT }
    }
}

impl Aggregate {
    /// Stores a server's response to `initialize`, and remembers its instructions.
    pub(super) fn initialized_by(&mut self, upstream: u64, mut result: Fields) {
        let capabilities = result.get("capabilities").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let says = result.take("instructions").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let says = says.map(|says| visible::head(says.trim(), MAX_LEN)).filter(|says| !says.is_empty());
        if let Some(of) = self.upstreams.values().find(|of| of.number == upstream) {
            let says = says.map(Arc::from);
            self.host.instructions.remember(&of.config.command_line(), says);
        }
        self.initialized_upstreams.push((upstream, capabilities.unwrap_or_default()));
    }

    /// Answers the client's `initialize` if the response is due, then marks the servers that have responded as running.
    pub(super) fn settle_initialize(&mut self) {
        if let Some(unanswered) = &self.unanswered {
            let is_unknown = self.upstreams.values().any(|of| {
                of.phase == Phase::Coming
                    && self.host.instructions.of(&of.config.command_line()).is_none()
                    && !self.initialized_upstreams.iter().any(|(upstream, _)| *upstream == of.number)
            });
            if is_unknown && Instant::now() < unanswered.until {
                return;
            }
            self.answer_initialize();
        }
        for (upstream, capabilities) in std::mem::take(&mut self.initialized_upstreams) {
            self.to_upstream(upstream, notification_line("notifications/initialized", None), None);
            self.mark_running(upstream, capabilities);
        }
    }

    /// Answers the client's `initialize`, unless it has already been answered.
    pub(super) fn answer_initialize(&mut self) {
        let (Some(greeting), Some(Unanswered { id, .. })) =
            (&self.initialize_request, self.unanswered.take())
        else {
            return;
        };
        let known = &self.host.instructions;
        let servers = self
            .upstreams
            .iter()
            .map(|(name, of)| (name.as_str(), known.of(&of.config.command_line()).flatten()));
        let answer = greeting.answer(servers);
        self.reply(result_line(&id, &answer));
        let missing = self.upstreams.values().filter_map(|of| match &of.phase {
            Phase::Missing(why) => Some((of.config.name.clone(), why.clone())),
            Phase::Coming | Phase::Remembered | Phase::Up | Phase::Ended => None,
        });
        for (server, why) in missing.collect::<Vec<_>>() {
            self.warn(format!("the server `{server}` is missing: {why}"));
        }
    }

    /// Returns the time at which the response is due, or `None` if the client is not waiting for a response.
    pub(super) fn initialize_waits_until(&self) -> Option<Instant> {
        self.unanswered.as_ref().map(|unanswered| unanswered.until)
    }
}
