//! Reads a client of either protocol version and converts its messages for the core.
//!
//! - After client EOF or a handover, only messages that the client has already sent are read.

use super::conversation::Conversation;
use super::initialize::InitializeResult;
use super::outputs::{RefusedRequest, ToSession};
use super::request::has_protocol_version;
use crate::wire::{Allowance, Incoming, Line, LineReader, LineSource, MAX_LINE_BYTES, Outbox};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// Maximum time that a disconnected client's requests wait for the core's `initialize` result.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(15);

/// Protocol version selected by the client's first message, as serialized for a handover.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientVersion {
    /// No message has arrived yet.
    #[default]
    #[serde(rename = "open")]
    Unknown,
    /// Handshake version. Messages are forwarded unchanged.
    #[serde(rename = "legacy")]
    Handshake,
    /// Stateless version, with the core's `initialize` result if it has arrived.
    #[serde(rename = "modern")]
    Stateless(Option<InitializeResult>),
}

/// Client message, as the core receives it.
pub enum ClientMessage {
    /// A client line, translated if the client is stateless.
    Line(Line),
    /// A request that was already refused and answered.
    Refused(RefusedRequest),
}

/// Reads a client's messages for the core. The outbox translates messages in the other direction.
pub struct ClientReader {
    lines: LineReader,
    to_client: Outbox,
    conversation: Option<(Arc<Conversation>, UnboundedReceiver<ToSession>)>,
    has_handshake: bool,
    /// Deadline for the core's `initialize` result. Set at client EOF.
    eof_deadline: Option<Instant>,
}

impl ClientReader {
    /// Creates a reader for a client of this version. Reads the bytes in `unread` first.
    pub fn new(
        memory: Allowance,
        input: LineSource,
        unread: Vec<u8>,
        to_client: Outbox,
        version: ClientVersion,
    ) -> Self {
        let lines = input.into_reader(memory, MAX_LINE_BYTES, unread);
        let mut client =
            Self { lines, to_client, conversation: None, has_handshake: false, eof_deadline: None };
        match version {
            ClientVersion::Unknown => {}
            ClientVersion::Handshake => client.has_handshake = true,
            ClientVersion::Stateless(initialized) => client.translate(initialized),
        }
        client
    }

    /// Returns the next message for the core, or `None` at the end of the input.
    ///
    /// # Errors
    /// Returns the stream's I/O error.
    pub async fn next(&mut self) -> io::Result<Option<ClientMessage>> {
        loop {
            if self.has_handshake {
                return Ok(self.lines.next().await?.map(ClientMessage::Line));
            }
            if self.eof_deadline.is_some() && self.is_drained() {
                return Ok(self.try_pending());
            }
            let Some((conversation, for_session)) = &mut self.conversation else {
                let line = self.lines.next().await?;
                match &line {
                    Some(Line::Whole(bytes, _)) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
                    Some(Line::Whole(bytes, _)) if is_stateless(bytes) => {}
                    _ => {
                        self.has_handshake = true;
                        return Ok(line.map(ClientMessage::Line));
                    }
                }
                self.translate(None);
                self.receive(line);
                continue;
            };
            let (deadline, eof_deadline) = (conversation.deadline(), self.eof_deadline);
            let conversation = conversation.clone();
            tokio::select! {
                biased;
                Some(for_session) = for_session.recv() => if let Some(message) = client_message(for_session) {
                    return Ok(Some(message));
                },
                () = sleep_until(eof_deadline) => return Ok(None),
                () = sleep_until(deadline) => conversation.expire(&mut |line| self.to_client.send_translated(line)),
                line = self.lines.next(), if eof_deadline.is_none() => match line? {
                    Some(line @ (Line::TooLong { .. } | Line::NoMemory { .. })) => {
                        return Ok(Some(ClientMessage::Line(line)));
                    }
                    Some(line) => self.receive(Some(line)),
                    None => self.eof_deadline = Some(Instant::now() + INITIALIZE_TIMEOUT),
                },
            }
        }
    }

    /// Returns the next line if it is already available and needs no translation.
    pub fn try_next(&mut self) -> Option<Line> {
        if self.has_handshake { self.lines.try_next() } else { None }
    }

    /// Returns `true` if the source is a channel. A channel delivers complete lines and has an explicit end.
    pub fn is_channel(&self) -> bool {
        self.lines.is_channel()
    }

    /// Returns a message that can be read without waiting for the client.
    pub fn try_pending(&mut self) -> Option<ClientMessage> {
        let (_, for_session) = self.conversation.as_mut()?;
        std::iter::from_fn(|| for_session.try_recv().ok()).find_map(client_message)
    }

    /// Stops reading for a handover. Returns the bytes that the other process must read again, or `None` if an
    /// overlong line was being skipped.
    pub fn into_unread(self) -> Option<Vec<u8>> {
        let mut unread = match &self.conversation {
            Some((conversation, _)) => {
                conversation.hand_over(&mut |line| self.to_client.send_translated(line))
            }
            None => Vec::new(),
        };
        unread.extend(self.lines.into_unread()?);
        Some(unread)
    }

    /// Returns a closure that returns the client's protocol version at the time of each call.
    pub fn version(&self) -> impl Fn() -> ClientVersion + Send + Sync + use<> {
        let (conversation, has_handshake) =
            (self.conversation.as_ref().map(|(conversation, _)| conversation.clone()), self.has_handshake);
        move || match &conversation {
            Some(conversation) => ClientVersion::Stateless(conversation.initialized()),
            None if has_handshake => ClientVersion::Handshake,
            None => ClientVersion::Unknown,
        }
    }

    /// Starts translation in both directions.
    fn translate(&mut self, initialized: Option<InitializeResult>) {
        let (to_session, for_session) = unbounded_channel();
        let conversation = Arc::new(Conversation::new(to_session, initialized));
        let translator = conversation.clone();
        self.to_client.translate(Box::new(move |line, to_client| translator.send(line, to_client)));
        self.conversation = Some((conversation, for_session));
    }

    fn receive(&mut self, line: Option<Line>) {
        let (Some((conversation, _)), Some(Line::Whole(line, share))) = (&self.conversation, line) else {
            return;
        };
        conversation.receive(line, share, &mut |line| self.to_client.send_translated(line));
    }

    /// Returns `true` if a disconnected client has no messages left except those already queued.
    fn is_drained(&self) -> bool {
        let Some((conversation, _)) = &self.conversation else { return true };
        conversation.handle_eof(&mut |line| self.to_client.send_translated(line))
    }
}

/// Converts a message for the core. Returns `None` for a message that only wakes the reader.
fn client_message(for_session: ToSession) -> Option<ClientMessage> {
    match for_session {
        ToSession::Line(line, share) => Some(ClientMessage::Line(Line::Whole(line, share))),
        ToSession::Refused(refused) => Some(ClientMessage::Refused(refused)),
        ToSession::Wake => None,
    }
}

/// Waits until `time`. Without a time, waits forever.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns `true` if this first message was sent by a stateless client.
fn is_stateless(line: &[u8]) -> bool {
    match Incoming::parse(line) {
        Ok(Incoming::Request { method, params, .. }) => {
            method == "server/discover" || (method != "initialize" && has_protocol_version(params.as_deref()))
        }
        Ok(Incoming::Notification { .. } | Incoming::Response { .. }) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_parsed_in_the_format_of_older_programs() {
        let read = |text: &str| serde_json::from_str::<ClientVersion>(text).unwrap();
        assert!(matches!(read(r#""legacy""#), ClientVersion::Handshake));
        assert!(matches!(read(r#"{"modern":{"capabilities":{}}}"#), ClientVersion::Stateless(Some(_))));
        assert!(matches!(read(r#"{"modern":null}"#), ClientVersion::Stateless(None)));
        assert!(matches!(read(r#""open""#), ClientVersion::Unknown));
    }
}
