//! A question's countdown.
//!
//! - The caller provides the current time.

use std::time::{Duration, Instant};

/// Minimum interval between reports that the user is active in the dialog.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Countdown that expires if the user is inactive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Countdown {
    length: Duration,
    ends: Instant,
    last_report: Option<Instant>,
}

impl Countdown {
    /// Starts the countdown for a question with this time limit.
    pub(crate) fn new(length: Duration, now: Instant) -> Self {
        Self { length, ends: now + length, last_report: None }
    }

    /// Restarts the countdown because the user is active. Returns `true` if the caller should report the activity.
    pub(crate) fn record_activity(&mut self, now: Instant) -> bool {
        if self
            .last_report
            .is_some_and(|last_report| now.saturating_duration_since(last_report) < REPORT_INTERVAL)
        {
            return false;
        }
        self.last_report = Some(now);
        self.ends = now + self.length;
        true
    }

    /// Returns the time of the last reported activity of the user.
    #[cfg(target_os = "linux")]
    pub(crate) fn last_activity(&self) -> Option<Instant> {
        self.last_report
    }

    /// Returns the time at which the countdown expires.
    #[cfg(target_os = "linux")]
    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// Returns the remaining time.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.ends.saturating_duration_since(now)
    }

    /// Returns `true` if the countdown has expired.
    pub(crate) fn has_expired(&self, now: Instant) -> bool {
        now >= self.ends
    }
}

/// Returns a sentence with the remaining time.
pub(crate) fn format_waiting(left: Duration) -> String {
    format!("Denied in {} if you don't answer", format_clock(left))
}

/// Formats the remaining time, rounded up to whole seconds, as `0:41`.
fn format_clock(left: Duration) -> String {
    let seconds = left.as_millis().div_ceil(1000);
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn work_restarts_the_countdown_and_is_reported_once_a_second() {
        let start = Instant::now();
        let mut countdown = Countdown::new(MS * 45_000, start);
        assert!(countdown.record_activity(start + MS * 10_000));
        assert!(!countdown.record_activity(start + MS * 10_500));
        assert!(countdown.record_activity(start + MS * 11_000));
        assert_eq!(countdown.left(start + MS * 12_000), MS * 44_000);
        assert!(!countdown.has_expired(start + MS * 55_999));
        assert!(countdown.has_expired(start + MS * 56_000));
    }

    #[test]
    fn formats_minutes_and_seconds() {
        let words: Vec<_> = [0, 1, 1000, 41_200, 61_000].map(|ms| format_clock(MS * ms)).into();
        assert_eq!(format_waiting(MS * 120_000), "Denied in 2:00 if you don't answer");
        assert_eq!(words, ["0:00", "0:01", "0:01", "0:42", "1:01"]);
    }
}
