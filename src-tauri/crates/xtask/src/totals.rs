//! Parses the numbers of passed and failed tests in the summaries of test programs.

use std::fmt::{self, Display, Formatter};

/// Numbers of passed and failed tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Totals {
    pub(crate) const ONE_SUCCESS: Self = Self { passed: 1, failed: 0 };
    pub(crate) const ONE_FAILURE: Self = Self { passed: 0, failed: 1 };

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Parses the summary line of a test program. An ignored test counts as failed.
    pub(crate) fn of_program(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let failed = before("failed", rest)? + before("ignored", rest)?;
        Some(Self { passed: before("passed", rest)?, failed })
    }
}

impl Display for Totals {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Returns the number immediately before a word.
fn before(word: &str, line: &str) -> Option<u64> {
    let words: Vec<&str> =
        line.split_whitespace().map(|word| word.trim_matches([',', ';', ':', '.'])).collect();
    words.iter().enumerate().find_map(|(at, found)| {
        let number = found.parse().ok()?;
        (words.get(at + 1) == Some(&word)).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_summary_of_a_test_program() {
        let of = |line| Totals::of_program(line).map(|t| (t.passed, t.failed));
        assert_eq!(
            of(
                "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.52s"
            ),
            Some((12, 0))
        );
        assert_eq!(
            of(
                "test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.0s"
            ),
            Some((2, 2))
        );
        assert_eq!(of("test a::b ... ok"), None);
    }
}
