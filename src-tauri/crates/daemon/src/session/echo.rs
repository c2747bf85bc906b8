//! Detects a client whose output is connected to its input. Such a client sends IronCurtain's own messages back
//! forever.
//!
//! - Checks only lines that a working client never sends: invalid messages, and responses to unknown requests.

use ironcurtain_mcp::wire::Outgoing;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Number of echoed lines after which the session is closed. A single echoed line can have another cause.
const MAX_COUNT: u8 = 3;

/// Number of recent lines to remember. Must exceed the number of lines that fit into a slow reader's pipe.
const MAX_REMEMBERED_LINES: usize = 64;

/// Maximum number of bytes per line that are compared, in addition to the line's length.
const MAX_COMPARED_BYTES: usize = 1024;

/// Reason why the session is closed, for the audit log and the session log.
pub(super) const ECHO_REASON: &str =
    "messages to the client come back as its input: its output and its input are the same pipe or file";

/// Digests of recently sent lines, and the number of lines that were echoed.
#[derive(Debug, Default)]
pub(super) struct EchoDetector {
    sent: VecDeque<u64>,
    echoed: u8,
}

impl EchoDetector {
    /// Remembers a sent line.
    pub(super) fn record_sent(&mut self, line: &Outgoing) {
        if self.sent.len() == MAX_REMEMBERED_LINES {
            self.sent.pop_front();
        }
        // The line feed at the end of the line is not compared.
        self.sent.push_back(digest(line.length() - 1, &line.head_bytes(MAX_COMPARED_BYTES)));
    }

    /// Checks an unexpected line. Returns `true` if the session must be closed.
    pub(super) fn is_echoing(&mut self, line: &[u8]) -> bool {
        if self.sent.contains(&digest(line.len(), line)) {
            self.echoed += 1;
        }
        self.echoed >= MAX_COUNT
    }
}

fn digest(length: usize, bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (length, bytes.get(..MAX_COMPARED_BYTES.min(length))).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_returned_lines_are_an_echo() {
        let mut echo = EchoDetector::default();
        for n in 0..100 {
            echo.record_sent(&Outgoing::line(format!("line {n}\n").into_bytes()));
        }
        assert!((0..100).all(|n| !echo.is_echoing(format!("other {n}").as_bytes())));
        // These lines are no longer stored.
        assert!((0..36).all(|n| !echo.is_echoing(format!("line {n}").as_bytes())));
        assert!(!echo.is_echoing(b"line 98") && !echo.is_echoing(b"line 99"));
        assert!(echo.is_echoing(b"line 99"));
    }
}
