//! The client's edge with nothing beside it, for whoever feeds it foreign bytes.

use super::front::Front;
use super::ways::ForCore;
use crate::wire::Outgoing;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A conversation with a client, without a core.
#[derive(Debug)]
pub struct ClientEdge {
    front: Front,
    for_core: UnboundedReceiver<ForCore>,
    for_client: Vec<Vec<u8>>,
}

impl Default for ClientEdge {
    fn default() -> Self {
        let (to_core, for_core) = unbounded_channel();
        Self { front: Front::new(to_core, None), for_core, for_client: Vec::new() }
    }
}

impl ClientEdge {
    /// A line of the client, without its line feed.
    pub fn client_says(&mut self, line: Vec<u8>) {
        self.front.hear(line, None, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// A line of the core.
    pub fn core_says(&mut self, line: Outgoing) {
        self.front.tell(line, &mut |line| self.for_client.push(line.bytes().collect()));
    }

    /// The client hangs up, and the conversation goes on elsewhere; the lines that are to be read again there.
    pub fn ends(&mut self) -> Vec<u8> {
        self.front.hung_up(&mut |line| self.for_client.push(line.bytes().collect()));
        self.front.hand_over(&mut |line| self.for_client.push(line.bytes().collect()))
    }

    /// The lines that the client was sent since.
    pub fn client_hears(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.for_client)
    }

    /// The lines that the core was given since.
    pub fn core_hears(&mut self) -> Vec<Vec<u8>> {
        let all = std::iter::from_fn(|| self.for_core.try_recv().ok());
        let lines = all.filter_map(|said| match said {
            ForCore::Line(line, _) => Some(line),
            ForCore::Refused(_) | ForCore::Wake => None,
        });
        lines.collect()
    }
}
