//! Incoming lines of a client or server, from a pipe or from an in-memory channel.
//!
//! - A line from a channel already holds its memory share, so no second share is acquired for it.

use super::memory_budget::{Allowance, Share};
use super::{Input, Line, Lines};
use std::io;
use tokio::sync::mpsc;

/// Line without its line feed, and its memory share.
pub type ReceivedLine = (Vec<u8>, Option<Share>);

/// Source of incoming lines.
#[derive(Debug)]
pub enum LineSource {
    /// A stream to read from.
    Stream(Input),
    /// A channel to receive from.
    Channel(mpsc::UnboundedReceiver<ReceivedLine>),
}

/// Reader of incoming lines.
#[derive(Debug)]
pub enum LineReader {
    /// Reads from a stream.
    Stream(Box<Lines<Input>>),
    /// Receives from a channel.
    Channel(mpsc::UnboundedReceiver<ReceivedLine>),
}

impl LineSource {
    /// Creates a reader of lines of at most `bound` bytes that takes memory from `allowance` and starts with the
    /// bytes in `unread`. The limits do not apply to lines from a channel, which already hold their memory.
    #[must_use]
    pub fn into_reader(self, allowance: Allowance, bound: usize, unread: Vec<u8>) -> LineReader {
        match self {
            Self::Stream(input) => LineReader::Stream(Box::new(
                Lines::with_allowance(allowance, input, bound).with_buffered(unread),
            )),
            Self::Channel(lines) => LineReader::Channel(lines),
        }
    }
}

impl LineReader {
    /// Returns the next line, or `None` at the end of the input. Cancel safe.
    ///
    /// # Errors
    /// Returns the stream's I/O error.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        match self {
            Self::Channel(lines) => Ok(lines.recv().await.map(|(line, share)| Line::Whole(line, share))),
            Self::Stream(lines) => lines.next().await,
        }
    }

    /// Returns the next line if it is already available; see [`Lines::try_next`].
    pub fn try_next(&mut self) -> Option<Line> {
        match self {
            Self::Channel(lines) => lines.try_recv().ok().map(|(line, share)| Line::Whole(line, share)),
            Self::Stream(lines) => lines.try_next(),
        }
    }

    /// Returns `true` if the source is a channel. A channel delivers complete lines and has an explicit end.
    #[must_use]
    pub fn is_channel(&self) -> bool {
        matches!(self, Self::Channel(_))
    }

    /// Returns the bytes that were read beyond the last complete line, or `None` if an overlong line was being
    /// skipped.
    #[must_use]
    pub fn into_unread(self) -> Option<Vec<u8>> {
        match self {
            Self::Stream(lines) => lines.into_unread(),
            Self::Channel(_) => Some(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Incoming, LineSink, MemoryBudget, Outbox, Outgoing, Response, error_line, notification_line,
        request_parts, response_parts,
    };
    use super::*;
    use serde_json::value::RawValue;

    #[tokio::test]
    async fn a_channel_line_brings_its_memory_share() {
        let (hand, lines) = mpsc::unbounded_channel();
        let allowance = MemoryBudget::new(64, 1).allowance(1);
        let mut lines = LineSource::Channel(lines).into_reader(allowance.clone(), 10, Vec::new());
        let share = allowance.acquire(1000).await.unwrap();
        hand.send((b"ping".to_vec(), Some(share))).unwrap();
        drop(hand);
        let Some(Line::Whole(line, Some(share))) = lines.next().await.unwrap() else { panic!() };
        assert!(line == b"ping" && share.bytes() == 1000);
        assert!(lines.next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn channel_lines_arrive_from_before_and_after_opening() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let (outbox, (lines, mut handed)) = (Outbox::unopened(), mpsc::unbounded_channel());
        outbox.send(response_parts(&7.into(), Response::Result(raw(r#"{"a":1}"#))));
        outbox.open_sink(LineSink::Channel(lines));
        outbox.send(response_parts(&8.into(), Response::Error(raw(r#"{"code":1}"#))));
        outbox.send(request_parts(&9.into(), "elicitation/create", Some(raw("{\"m\":\n2}"))));
        outbox.send(Outgoing::line(notification_line("notifications/message", Some(&raw("{}")))));
        outbox.send(Outgoing::line(error_line(None, -32700, "no")));
        let mut next = async || Incoming::from_outgoing(handed.recv().await.unwrap());
        let Ok((Incoming::Response { id, response: Response::Result(result) }, _)) = next().await else {
            panic!()
        };
        assert_eq!((id.as_json(), result.get()), ("7", r#"{"a":1}"#));
        assert!(matches!(next().await, Ok((Incoming::Response { response: Response::Error(_), .. }, _))));
        let Ok((Incoming::Request { method, params, .. }, _)) = next().await else { panic!() };
        assert_eq!((method.as_str(), params.unwrap().get()), ("elicitation/create", "{\"m\": 2}"));
        assert!(matches!(next().await, Ok((Incoming::Notification { .. }, _))));
        assert!(next().await.is_err());
        drop(handed);
        outbox.send(Outgoing::line(b"x\n".to_vec()));
        outbox.closed().await;
    }
}
