//! Client side without a core, for fuzzing.

use super::conversation::Conversation;
use super::outputs::ToSession;
use crate::wire::Outgoing;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Conversation with a client, without a core.
#[derive(Debug)]
pub struct FuzzedClient {
    conversation: Conversation,
    for_session: UnboundedReceiver<ToSession>,
    for_client: Vec<Vec<u8>>,
}

impl Default for FuzzedClient {
    fn default() -> Self {
        let (to_session, for_session) = unbounded_channel();
        Self { conversation: Conversation::new(to_session, None), for_session, for_client: Vec::new() }
    }
}

impl FuzzedClient {
    /// Feeds a line from the client, without its line feed.
    pub fn client_sends(&mut self, line: Vec<u8>) {
        self.conversation.receive(line, None, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// Feeds a line from the core.
    pub fn session_sends(&mut self, line: Outgoing) {
        self.conversation.send(line, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// Ends the client's input and hands the conversation over. Returns the lines to be read again.
    pub fn ends(&mut self) -> Vec<u8> {
        self.conversation.handle_eof(&mut |line| self.for_client.push(line.bytes().collect()));
        self.conversation.hand_over(&mut |line| self.for_client.push(line.bytes().collect()))
    }

    /// Returns the lines sent to the client since the last call.
    pub fn client_receives(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.for_client)
    }

    /// Returns the lines sent to the core since the last call.
    pub fn session_receives(&mut self) -> Vec<Vec<u8>> {
        let all = std::iter::from_fn(|| self.for_session.try_recv().ok());
        let lines = all.filter_map(|output| match output {
            ToSession::Line(line, _) => Some(line),
            ToSession::Refused(_) | ToSession::Wake => None,
        });
        lines.collect()
    }
}
