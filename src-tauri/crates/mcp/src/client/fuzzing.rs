//! The client's edge with nothing beside it, for whoever feeds it foreign bytes.

use super::conversation::Conversation;
use super::outputs::ToSession;
use crate::wire::Outgoing;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A conversation with a client, without a core.
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
    /// A line of the client, without its line feed.
    pub fn client_sends(&mut self, line: Vec<u8>) {
        self.conversation.receive(line, None, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// A line of the core.
    pub fn session_sends(&mut self, line: Outgoing) {
        self.conversation.send(line, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// The client hangs up, and the conversation goes on elsewhere; the lines that are to be read again there.
    pub fn ends(&mut self) -> Vec<u8> {
        self.conversation.hung_up(&mut |line| self.for_client.push(line.bytes().collect()));
        self.conversation.hand_over(&mut |line| self.for_client.push(line.bytes().collect()))
    }

    /// The lines that the client was sent since.
    pub fn client_receives(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.for_client)
    }

    /// The lines that the core was given since.
    pub fn session_receives(&mut self) -> Vec<Vec<u8>> {
        let all = std::iter::from_fn(|| self.for_session.try_recv().ok());
        let lines = all.filter_map(|said| match said {
            ToSession::Line(line, _) => Some(line),
            ToSession::Refused(_) | ToSession::Wake => None,
        });
        lines.collect()
    }
}
