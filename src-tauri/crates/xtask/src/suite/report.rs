//! Results of test programs: the number of passed and failed tests, and each test's duration.

use crate::totals::Totals;

/// Number of slow tests to list.
const SLOWEST: usize = 20;

/// Results of one or several test programs.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) totals: Totals,
    pub(crate) times: Vec<TestTime>,
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
        Self { totals, times: Vec::new() }
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
}
