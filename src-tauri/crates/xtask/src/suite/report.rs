//! Results of test programs: the number of passed and failed tests, each test's duration, and why tests failed.

use crate::totals::Totals;

/// Number of slow tests to list.
const SLOWEST: usize = 20;

/// Maximum number of lines to repeat of a failed test's message.
const MESSAGE_LINES: usize = 20;

/// Lines that can follow a failed test's message.
const AFTER_MESSAGE: [&str; 3] = ["", "stack backtrace:", "failures:"];

/// Results of one or more test programs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) totals: Totals,
    pub(crate) times: Vec<TestTime>,
    /// Lines of the failed tests' messages.
    pub(crate) messages: Vec<String>,
}

/// Finds the messages of failed tests in a test program's output.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// `true` after the line that precedes the output of failed tests.
    in_failures: bool,
    /// Number of lines of the current message that can still follow.
    remaining: usize,
}

/// Duration of a test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestTime {
    pub(crate) seconds: f64,
    pub(crate) name: String,
}

impl Report {
    pub(crate) fn add(&mut self, other: Self) {
        self.totals.add(other.totals);
        self.times.extend(other.times);
        self.messages.extend(other.messages);
    }

    /// Returns a line for each of the slowest tests, slowest first.
    pub(crate) fn slowest(&self) -> Vec<String> {
        let mut times: Vec<&TestTime> = self.times.iter().collect();
        times.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        times.iter().take(SLOWEST).map(|time| format!("{:8.1} s   {}", time.seconds, time.name)).collect()
    }
}

impl From<Totals> for Report {
    fn from(totals: Totals) -> Self {
        Self { totals, ..Self::default() }
    }
}

impl Messages {
    /// Returns `true` if the line belongs to the message of a failed test.
    pub(crate) fn has(&mut self, line: &str) -> bool {
        self.in_failures |= line == "failures:";
        if self.in_failures && line.starts_with("thread '") && line.contains(" panicked at ") {
            self.remaining = MESSAGE_LINES;
        } else if AFTER_MESSAGE.contains(&line) {
            self.remaining = 0;
        }
        let belongs = self.remaining > 0;
        self.remaining = self.remaining.saturating_sub(1);
        belongs
    }
}

impl TestTime {
    /// Parses a test program's line about one test: `test NAME ... ok <0.123s>`.
    pub(crate) fn of_program(line: &str) -> Option<Self> {
        let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let seconds = outcome.split_once('<')?.1.trim_end().strip_suffix("s>")?.parse().ok()?;
        Some(Self { seconds, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_tests_come_first() {
        let lines =
            ["test a ... ok <0.5s>", "test b ... FAILED <12.25s>", "test c ... ok", "running 3 tests"];
        let report = Report {
            times: lines.iter().filter_map(|line| TestTime::of_program(line)).collect(),
            ..Report::default()
        };
        assert_eq!(report.slowest(), ["    12.2 s   b", "     0.5 s   a"]);
    }

    #[test]
    fn messages_of_failed_tests_are_found() {
        let output = "\
thread 'helper' panicked at before.rs:1:1:
test a ... FAILED
failures:

---- a stdout ----
many lines

thread 'a' (12) panicked at a.rs:69:5:
assertion `left == right` failed
  left: 1
 right: 2
stack backtrace:
   0: begin

failures:
    a";
        let mut messages = Messages::default();
        let found: Vec<&str> = output.lines().filter(|line| messages.has(line)).collect();
        let message = [
            "thread 'a' (12) panicked at a.rs:69:5:",
            "assertion `left == right` failed",
            "  left: 1",
            " right: 2",
        ];
        assert_eq!(found, message);
    }
}
