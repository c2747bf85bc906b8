//! Parser for server-sent events in an HTTP response.
//!
//! - Acquires memory for an event before reading more of it. An event that is too long or gets no memory is skipped and
//!   reported.
//! - Lines end with a line feed, optionally preceded by a carriage return.

use crate::wire::{Allowance, Line, Lines, MAX_LINE_BYTES, Share};
use std::io;
use std::time::Duration;
use tokio::io::AsyncRead;

/// Maximum length of an event id in bytes. A longer id is ignored.
const MAX_ID_LEN: usize = 1024;

/// Minimum and maximum of the reconnect delay that a server may set.
const RETRY_DELAY_BOUNDS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];

/// Reconnect delay if the server sets none.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Position in a stream at which the stream can be reopened.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// Id of the last event, if the server sends ids.
    pub(super) last_id: Option<String>,
    retry_delay: Option<Duration>,
}

impl Position {
    /// Returns the delay before reopening the stream.
    pub(super) fn retry_delay(&self) -> Duration {
        self.retry_delay.unwrap_or(DEFAULT_RETRY_DELAY)
    }
}

/// Event, or a report of a skipped event.
#[derive(Debug)]
pub(super) enum Event {
    /// A message and the memory that it holds.
    Message(Vec<u8>, Vec<Share>),
    /// A skipped event that exceeded the size limit, with its length so far.
    TooLong(u64),
    /// A skipped event for which no memory was available.
    NoMemory,
}

/// Reader of server-sent events.
pub(super) struct Events<R> {
    lines: Lines<R>,
    /// Data of the current event, if any.
    data: Option<Vec<u8>>,
    shares: Vec<Share>,
    id: Option<String>,
    is_message: bool,
    skipped: Option<Event>,
}

impl<R: AsyncRead + Unpin> Events<R> {
    pub(super) fn new(body: R, memory: Allowance) -> Self {
        Self {
            lines: Lines::with_allowance(memory, body, MAX_LINE_BYTES),
            data: None,
            shares: Vec::new(),
            id: None,
            is_message: true,
            skipped: None,
        }
    }

    /// Returns the next event, or `None` at the end of the stream. Updates `position`.
    pub(super) async fn next(&mut self, position: &mut Position) -> io::Result<Option<Event>> {
        loop {
            let (line, share) = match self.lines.next().await? {
                None => return Ok(None),
                Some(Line::TooLong { length, .. }) => {
                    self.skipped = Some(Event::TooLong(length));
                    continue;
                }
                Some(Line::NoMemory { .. }) => {
                    self.skipped = Some(Event::NoMemory);
                    continue;
                }
                Some(Line::Whole(line, share)) => (line, share),
            };
            let line = line.strip_suffix(b"\r").map_or(line.as_slice(), |line| line);
            if !line.is_empty() {
                self.parse_field(line, share, position);
                continue;
            }
            if let Some(event) = self.finish_event(position) {
                return Ok(Some(event));
            }
        }
    }

    /// Completes the current event and returns it. Returns `None` if the event is empty or not a message.
    fn finish_event(&mut self, position: &mut Position) -> Option<Event> {
        if let Some(id) = self.id.take() {
            position.last_id = (!id.is_empty()).then_some(id);
        }
        let (data, shares) = (self.data.take(), std::mem::take(&mut self.shares));
        let is_message = std::mem::replace(&mut self.is_message, true);
        if let Some(skipped) = self.skipped.take() {
            return Some(skipped);
        }
        let data = data.filter(|data| is_message && !data.is_empty())?;
        Some(Event::Message(data, shares))
    }

    fn parse_field(&mut self, line: &[u8], share: Option<Share>, position: &mut Position) {
        let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || std::str::from_utf8(value).ok();
        // The stream may start with a byte order mark.
        match name.strip_prefix(b"\xef\xbb\xbf").unwrap_or(name) {
            b"data" => self.add_data(value, share),
            b"event" => self.is_message = value.is_empty() || value == b"message",
            b"id" => {
                self.id = text().filter(|id| id.len() <= MAX_ID_LEN && !id.contains('\0')).map(str::to_owned)
            }
            b"retry" => {
                let [least, most] = RETRY_DELAY_BOUNDS;
                let retry_delay = text().and_then(|text| text.parse().ok()).map(Duration::from_millis);
                position.retry_delay =
                    retry_delay.map(|retry_delay| retry_delay.clamp(least, most)).or(position.retry_delay);
            }
            // A comment or an unknown field.
            _ => {}
        }
    }

    /// Appends a line of data.
    fn add_data(&mut self, value: &[u8], share: Option<Share>) {
        let current_len = self.data.as_ref().map_or(0, |data| data.len() + 1);
        if current_len + value.len() > MAX_LINE_BYTES {
            self.skipped = Some(Event::TooLong((current_len + value.len()) as u64));
        }
        if self.skipped.is_some() {
            (self.data, self.shares) = (None, Vec::new());
            return;
        }
        match &mut self.data {
            None => self.data = Some(value.to_vec()),
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
        }
        self.shares.extend(share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::MemoryBudget;

    async fn read(body: &[u8]) -> (Vec<String>, Position) {
        let mut events = Events::new(body, MemoryBudget::new(64, 8).allowance(1));
        let (mut got, mut position) = (Vec::new(), Position::default());
        while let Some(event) = events.next(&mut position).await.unwrap() {
            got.push(match event {
                Event::Message(text, _) => String::from_utf8(text).unwrap(),
                Event::TooLong(length) => format!("too long: {length}"),
                Event::NoMemory => "no room".to_owned(),
            });
        }
        (got, position)
    }

    #[tokio::test]
    async fn events_are_parsed_as_the_standard_requires() {
        let body = b"\xef\xbb\xbfdata: one\n\n: a comment\r\nevent: message\r\ndata:two\r\ndata: lines\r\n\r\nevent: other\ndata: x\n\nid: 7\ndata:\n\nretry: 50\nid: 8\n\ndata: lost at the end";
        let (got, position) = read(body).await;
        assert_eq!(got, ["one", "two\nlines"]);
        assert_eq!(position.last_id.as_deref(), Some("8"));
        assert_eq!(position.retry_delay(), Duration::from_millis(200));
        assert_eq!(Position::default().retry_delay(), DEFAULT_RETRY_DELAY);
    }

    // The clock is paused so that waiting for memory takes no time.
    #[tokio::test(start_paused = true)]
    async fn a_too_long_event_is_reported_and_skipped() {
        let long = "x".repeat(9 * 1024 * 1024);
        let (got, _) = read(format!("data: {long}\n\ndata: next\n\n").as_bytes()).await;
        assert_eq!(got, [format!("too long: {}", long.len() + 6), "next".to_owned()]);
        let half = "x".repeat(5 * 1024 * 1024);
        let (got, _) = read(format!("data: {half}\ndata: {half}\n\ndata: next\n\n").as_bytes()).await;
        assert_eq!(got, ["no room", "next"]);
    }
}
