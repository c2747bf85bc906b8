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
pub(super) struct PendingInitialize {
    id: Id,
    deadline: Instant,
}

impl PendingInitialize {
    /// Creates the state for a request that has just arrived.
    pub(super) fn new(id: Id) -> Self {
        Self { id, deadline: Instant::now() + TIMEOUT }
    }
}

impl Aggregate {
    /// Stores a server's response to `initialize` and remembers its instructions.
    pub(super) fn handle_initialize_response(&mut self, number: u64, mut result: Fields) {
        let capabilities = result.get("capabilities").and_then(|raw| serde_json::from_str(raw.get()).ok());
        let instructions =
            result.take("instructions").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let instructions = instructions
            .map(|instructions| visible::head(instructions.trim(), MAX_LEN))
            .filter(|instructions| !instructions.is_empty());
        if let Some(upstream) = self.upstreams.values().find(|upstream| upstream.number == number) {
            let instructions = instructions.map(Arc::from);
            self.host.instructions.insert(&upstream.config.command_line(), instructions);
        }
        self.initialized_upstreams.push((number, capabilities.unwrap_or_default()));
    }

    /// Answers the client's `initialize` if the response is due, then marks the servers that have responded as running.
    pub(super) fn answer_due_initialize(&mut self) {
        if let Some(pending_initialize) = &self.pending_initialize {
            let is_unknown = self.upstreams.values().any(|upstream| {
                upstream.phase == Phase::Starting
                    && self.host.instructions.get(&upstream.config.command_line()).is_none()
                    && !self.initialized_upstreams.iter().any(|(number, _)| *number == upstream.number)
            });
            if is_unknown && Instant::now() < pending_initialize.deadline {
                return;
            }
            self.answer_initialize();
        }
        for (number, capabilities) in std::mem::take(&mut self.initialized_upstreams) {
            self.send_to_upstream(number, notification_line("notifications/initialized", None), None);
            self.mark_running(number, capabilities);
        }
    }

    /// Answers the client's `initialize`, unless it has already been answered.
    pub(super) fn answer_initialize(&mut self) {
        let (Some(request), Some(PendingInitialize { id, .. })) =
            (&self.initialize_request, self.pending_initialize.take())
        else {
            return;
        };
        let known = &self.host.instructions;
        let servers = self
            .upstreams
            .iter()
            .map(|(name, upstream)| (name.as_str(), known.get(&upstream.config.command_line()).flatten()));
        let answer = request.result(servers);
        self.reply(result_line(&id, &answer));
        let missing = self.upstreams.values().filter_map(|upstream| match &upstream.phase {
            Phase::Missing(why) => Some((upstream.config.name.clone(), why.clone())),
            Phase::Starting | Phase::Remembered | Phase::Running | Phase::Closed => None,
        });
        for (server, why) in missing.collect::<Vec<_>>() {
            self.warn(format!("the server `{server}` is missing: {why}"));
        }
    }

    /// Returns the time at which the response is due, or `None` if the client is not waiting for a response.
    pub(super) fn initialize_deadline(&self) -> Option<Instant> {
        self.pending_initialize.as_ref().map(|pending_initialize| pending_initialize.deadline)
    }
}
