//! Any bytes give the same lines however they are split, and a message stays the same when it is written again.

#![no_main]

#[path = "../words.rs"]
#[allow(dead_code, reason = "the other targets need the rest")]
mod words;

use ironcurtain_mcp::wire::{
    Id, Incoming, Line, Lines, Outgoing, Response, PartialMessage, error_line, id_in_truncated, notification_line,
    request_parts, response_parts,
};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, ReadBuf};
use words::{flat, one};

/// A stream that returns one piece per read.
struct Pieces<'a>(VecDeque<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.pop_front() {
            let (now, later) = piece.split_at(piece.len().min(to.remaining()));
            to.put_slice(now);
            if !later.is_empty() {
                self.0.push_front(later);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fuzz_target!(|input: (u8, u8, Vec<&[u8]>)| {
    let (bound, taken, pieces) = input;
    let all = pieces.concat();
    let mut expected: VecDeque<&[u8]> = all.split(|b| *b == b'\n').collect();
    // A line without a line feed is not a message.
    expected.pop_back();
    expected.iter().for_each(|line| message(line));
    let stream = Pieces(pieces.into_iter().filter(|piece| !piece.is_empty()).collect());
    let mut lines = Lines::new(stream, bound.into());
    let mut passed = 0;
    for n in 0..=taken {
        let next =
            if n % 2 == 1 { lines.try_next().map(|line| Ok(Some(line))) } else { Some(now(lines.next())) };
        let Some(next) = next else { continue };
        let Some(line) = next.unwrap() else {
            assert!(expected.is_empty(), "lines were lost");
            return;
        };
        let whole = expected.pop_front().expect("a line without a cause");
        passed += whole.len() + 1;
        match line {
            Line::Whole(line, None) => {
                assert!(line == whole && whole.len() <= bound.into());
            }
            Line::TooLong { length, head } => {
                assert!(whole.starts_with(&head) && whole.len() > bound.into());
                assert_eq!(length, whole.len() as u64);
            }
            Line::Whole(_, Some(_)) | Line::NoMemory { .. } => unreachable!("there is no allowance"),
        }
    }
    if let Some(rest) = lines.into_unread() {
        assert!(all[passed..].starts_with(&rest), "another reader would continue at another position");
    }
});

/// Returns the result of a future that is always ready.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("nothing is waited for"),
    }
}

/// Asserts that a message stays the same when it is written, and that any other line has at most
/// the id that it contains.
fn message(line: &[u8]) {
    let salvaged = PartialMessage::recover(line);
    let parsed = match Incoming::parse(line) {
        Ok(parsed) => parsed,
        Err(error) => {
            let answer =
                error_line(salvaged.and_then(|part| part.id()).as_ref(), error.code(), &error.to_string());
            assert!(
                serde_json::from_slice::<serde_json::Value>(&answer)
                    .is_ok_and(|value| value["error"].is_object())
            );
            return one(&answer);
        }
    };
    let (anew, id) = match parsed {
        Incoming::Request { id, method, params } => (request_parts(&id, &method, params), Some(id)),
        Incoming::Notification { method, params } => {
            (Outgoing::line(notification_line(&method, params.as_deref())), None)
        }
        Incoming::Response { id, response } => (response_parts(&id, response), Some(id)),
    };
    let written: Vec<u8> = anew.bytes().collect();
    one(&written);
    assert_eq!(said(&Incoming::parse(&written).unwrap()), said(&Incoming::parse(line).unwrap()));
    assert_eq!(said(&Incoming::from_outgoing(anew).unwrap().0), said(&Incoming::parse(line).unwrap()));
    assert_eq!(salvaged.and_then(|part| part.id()), id, "another id was found in the line");
    for end in [line.len() / 2, line.len().saturating_sub(1), line.len()] {
        assert!(
            id_in_truncated(&line[..end]).is_none_or(|found| Some(found) == id),
            "another id was found at its start"
        );
    }
}

/// Returns a message as its reader sees it; line breaks between tokens become spaces.
fn said(message: &Incoming) -> (Option<&Id>, &str, String) {
    let (id, what, body) = match message {
        Incoming::Request { id, method, params } => (Some(id), method.as_str(), params.as_deref()),
        Incoming::Notification { method, params } => (None, method.as_str(), params.as_deref()),
        Incoming::Response { id, response: Response::Result(body) } => (Some(id), "", Some(&**body)),
        Incoming::Response { id, response: Response::Error(body) } => (Some(id), "!", Some(&**body)),
    };
    (id, what, body.map(|raw| flat(raw.get())).unwrap_or_default())
}
