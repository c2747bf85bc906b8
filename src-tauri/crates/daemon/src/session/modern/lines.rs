//! The lines of a client in the language of the core, whichever era the client is of.
//!
//! - Nothing is read of a client that hangs up or is moved but what it said before.

use super::front::Front;
use super::greeting::Welcome;
use super::request::names_revision;
use super::ways::{ForCore, RefusedRequest};
use crate::wire::{Allowance, Incoming, Inlet, Line, Listening, MAX_LINE_BYTES, Outbox};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// The time for which requests of a client that says no more wait for the server's greeting.
const GREETING_BOUND: Duration = Duration::from_secs(15);

/// The era that a client's first message picked, as another trusted process is told of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ClientEra {
    /// It has said nothing yet.
    #[default]
    Open,
    /// With a handshake.
    Legacy,
    /// Without one; the core's answer to the greeting on its behalf, if it was greeted.
    Modern(Option<Welcome>),
}

/// Something that a client says, as a core hears it.
pub(crate) enum FromClient {
    /// A line.
    Line(Line),
    /// A request that was refused on the way, and is answered.
    Refused(RefusedRequest),
}

/// The client as a core reads it. What the core sends it is translated on the way out.
pub(crate) struct ClientLines {
    lines: Listening,
    to_client: Outbox,
    front: Option<(Arc<Front>, UnboundedReceiver<ForCore>)>,
    is_legacy: bool,
    /// The client has said its last word: until when that is waited for which must be known first.
    ended: Option<Instant>,
}

impl ClientLines {
    /// The client's lines, of which the first begins with `unread`, of a client of this era.
    pub(crate) fn new(
        memory: Allowance,
        input: Inlet,
        unread: Vec<u8>,
        to_client: Outbox,
        era: ClientEra,
    ) -> Self {
        let lines = input.lines(memory, MAX_LINE_BYTES, unread);
        let mut client = Self { lines, to_client, front: None, is_legacy: false, ended: None };
        match era {
            ClientEra::Open => {}
            ClientEra::Legacy => client.is_legacy = true,
            ClientEra::Modern(welcome) => client.translate(welcome),
        }
        client
    }

    /// The next thing for the core; `None` at the end.
    ///
    /// # Errors
    /// The stream's error.
    pub(crate) async fn next(&mut self) -> io::Result<Option<FromClient>> {
        loop {
            if self.is_legacy {
                return Ok(self.lines.next().await?.map(FromClient::Line));
            }
            if self.ended.is_some() && self.is_settled() {
                return Ok(self.pending());
            }
            let Some((front, for_core)) = &mut self.front else {
                let line = self.lines.next().await?;
                match &line {
                    Some(Line::Whole(bytes, _)) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
                    Some(Line::Whole(bytes, _)) if is_modern(bytes) => {}
                    _ => {
                        self.is_legacy = true;
                        return Ok(line.map(FromClient::Line));
                    }
                }
                self.translate(None);
                self.hear(line);
                continue;
            };
            let (deadline, ended) = (front.deadline(), self.ended);
            let front = front.clone();
            tokio::select! {
                biased;
                Some(for_core) = for_core.recv() => if let Some(said) = said(for_core) {
                    return Ok(Some(said));
                },
                () = until(ended) => return Ok(None),
                () = until(deadline) => front.expire(&mut |line| self.to_client.send_translated(line)),
                line = self.lines.next(), if ended.is_none() => match line? {
                    Some(line @ (Line::TooLong { .. } | Line::NoRoom { .. })) => {
                        return Ok(Some(FromClient::Line(line)));
                    }
                    Some(line) => self.hear(Some(line)),
                    None => self.ended = Some(Instant::now() + GREETING_BOUND),
                },
            }
        }
    }

    /// The next line for the core, where it is there already and needs no translation.
    pub(crate) fn next_now(&mut self) -> Option<Line> {
        if self.is_legacy { self.lines.next_now() } else { None }
    }

    /// Returns `true` if lines are handed over, whole: whoever hands them over says when there are no more.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.lines.is_handed_over()
    }

    /// Something that is there for the core without reading on.
    pub(crate) fn pending(&mut self) -> Option<FromClient> {
        let (_, for_core) = self.front.as_mut()?;
        std::iter::from_fn(|| for_core.try_recv().ok()).find_map(said)
    }

    /// The conversation goes on in another trusted process: the bytes that were read and are to be read again there; nothing where
    /// they were passed over.
    pub(crate) fn rest(self) -> Option<Vec<u8>> {
        let mut unread = match &self.front {
            Some((front, _)) => front.hand_over(&mut |line| self.to_client.send_translated(line)),
            None => Vec::new(),
        };
        unread.extend(self.lines.rest()?);
        Some(unread)
    }

    /// Tells the era, for as long as the conversation lasts.
    pub(crate) fn era(&self) -> impl Fn() -> ClientEra + Send + Sync + use<> {
        let (front, is_legacy) = (self.front.as_ref().map(|(front, _)| front.clone()), self.is_legacy);
        move || match &front {
            Some(front) => ClientEra::Modern(front.welcome()),
            None if is_legacy => ClientEra::Legacy,
            None => ClientEra::Open,
        }
    }

    /// From now on both ways are translated.
    fn translate(&mut self, welcome: Option<Welcome>) {
        let (to_core, for_core) = unbounded_channel();
        let front = Arc::new(Front::new(to_core, welcome));
        let translator = front.clone();
        self.to_client.translate(Box::new(move |line, to_client| translator.tell(line, to_client)));
        self.front = Some((front, for_core));
    }

    fn hear(&mut self, line: Option<Line>) {
        let (Some((front, _)), Some(Line::Whole(line, share))) = (&self.front, line) else { return };
        front.hear(line, share, &mut |line| self.to_client.send_translated(line));
    }

    /// Returns `true` if a client that has said its last word has nothing on its way to the core but what is there.
    fn is_settled(&self) -> bool {
        let Some((front, _)) = &self.front else { return true };
        front.hung_up(&mut |line| self.to_client.send_translated(line))
    }
}

/// The part of it that the core is to hear.
fn said(for_core: ForCore) -> Option<FromClient> {
    match for_core {
        ForCore::Line(line, share) => Some(FromClient::Line(Line::Whole(line, share))),
        ForCore::Refused(refused) => Some(FromClient::Refused(refused)),
        ForCore::Wake => None,
    }
}

/// Waits until then; for ever without a time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns `true` if this first message is one of a client without a handshake.
fn is_modern(line: &[u8]) -> bool {
    match Incoming::parse(line) {
        Ok(Incoming::Request { method, params, .. }) => {
            method == "server/discover" || (method != "initialize" && names_revision(params.as_deref()))
        }
        Ok(Incoming::Notification { .. } | Incoming::Response { .. }) | Err(_) => false,
    }
}
