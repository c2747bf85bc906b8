//! A client that sends back what it is sent: its output is its input, so that we would talk to ourselves for ever.
//!
//! - Only lines that no client means to send are looked at: answers to what nobody asked, and what is no message.

use ironcurtain_mcp::wire::Outgoing;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of lines of ours that may that come back before the session ends. One alone may be a client that is
/// confused.
const MOST: u8 = 3;

/// The number of lines of ours that are remembered: more than are on their way in a pipe that nobody reads fast.
const REMEMBERED: usize = 64;

/// The part of a line that is told from others by its bytes; the rest by its length.
const COMPARED: usize = 1024;

/// Why such a session is ended, for the record and its log.
pub(super) const WHY: &str =
    "what is sent to the client comes back as its input: its output and its input are the same pipe or file";

/// The lines that were sent last, and how many of them came back.
#[derive(Debug, Default)]
pub(super) struct Echo {
    sent: VecDeque<u64>,
    back: u8,
}

impl Echo {
    /// Remembers a line that is sent.
    pub(super) fn sent(&mut self, line: &Outgoing) {
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        // Without its line feed.
        self.sent.push_back(digest(line.length() - 1, &line.begin(COMPARED)));
    }

    /// Takes a line that no client means to send; tells that the session is to end.
    pub(super) fn hears_itself(&mut self, line: &[u8]) -> bool {
        if self.sent.contains(&digest(line.len(), line)) {
            self.back += 1;
        }
        self.back >= MOST
    }
}

fn digest(length: usize, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (length, bytes.get(..COMPARED.min(length))).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_of_ours_are_an_echo_and_what_others_say_is_none() {
        let mut echo = Echo::default();
        for n in 0..100 {
            echo.sent(&Outgoing::line(format!("line {n}\n").into_bytes()));
        }
        assert!((0..100).all(|n| !echo.hears_itself(format!("other {n}").as_bytes())));
        // Long ago.
        assert!((0..36).all(|n| !echo.hears_itself(format!("line {n}").as_bytes())));
        assert!(!echo.hears_itself(b"line 98") && !echo.hears_itself(b"line 99"));
        assert!(echo.hears_itself(b"line 99"));
    }
}
