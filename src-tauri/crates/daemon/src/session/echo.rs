//! Detects a client whose output is its input, which would make us answer our own messages forever.
//!
//! - Checks only lines that no client sends on purpose: responses to no request, and invalid messages.

use ironcurtain_mcp::wire::Outgoing;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of our lines that may come back before the session is closed. A single one may come from a confused client.
const MOST: u8 = 3;

/// Number of recent lines to remember: more than fit into a pipe that is read slowly.
const REMEMBERED: usize = 64;

/// Number of leading bytes of a line that are compared; the rest is compared by length.
const COMPARED: usize = 1024;

/// Reason for closing the session, for the audit record and the session log.
pub(super) const WHY: &str =
    "what is sent to the client comes back as its input: its output and its input are the same pipe or file";

/// Recently sent lines, and how many of them came back.
#[derive(Debug, Default)]
pub(super) struct Echo {
    sent: VecDeque<u64>,
    back: u8,
}

impl Echo {
    /// Remembers a line that was sent.
    pub(super) fn sent(&mut self, line: &Outgoing) {
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        // Excludes the line feed.
        self.sent.push_back(digest(line.length() - 1, &line.begin(COMPARED)));
    }

    /// Checks an unexpected line, and returns `true` if the session must be closed.
    pub(super) fn is_echoing(&mut self, line: &[u8]) -> bool {
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
    fn three_returned_lines_are_an_echo() {
        let mut echo = Echo::default();
        for n in 0..100 {
            echo.sent(&Outgoing::line(format!("line {n}\n").into_bytes()));
        }
        assert!((0..100).all(|n| !echo.is_echoing(format!("other {n}").as_bytes())));
        // Lines that are no longer remembered.
        assert!((0..36).all(|n| !echo.is_echoing(format!("line {n}").as_bytes())));
        assert!(!echo.is_echoing(b"line 98") && !echo.is_echoing(b"line 99"));
        assert!(echo.is_echoing(b"line 99"));
    }
}
