//! When Allow can be pressed, and when the time is over.
//!
//! - Never reads the clock: the moment is an argument.
//! - Allow is armed only after the dialog was focused, in full view and unchanged for [`SETTLE`].

use std::time::{Duration, Instant};

/// The time for which the dialog must rest before Allow can be pressed: longer than a keystroke or a click meant for
/// something else.
pub(crate) const SETTLE: Duration = Duration::from_millis(800);

/// The time after which the trusted process is told that the person works in the dialog.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The state that decides if Allow can be pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arming {
    focused: bool,
    in_view: bool,
    since: Instant,
}

impl Arming {
    /// A dialog that just opened, without the focus.
    pub(crate) fn new(now: Instant) -> Self {
        Self { focused: false, in_view: true, since: now }
    }

    /// The dialog has the focus, or lost it.
    pub(crate) fn set_focused(&mut self, focused: bool, now: Instant) {
        if self.focused != focused {
            self.focused = focused;
            self.since = now;
        }
    }

    /// The whole dialog can be seen, or something covers it.
    pub(crate) fn set_in_view(&mut self, in_view: bool, now: Instant) {
        if self.in_view != in_view {
            self.in_view = in_view;
            self.since = now;
        }
    }

    /// Starts the rest anew: what Allow would do has changed, the dialog moved, or someone tried too early.
    pub(crate) fn disturb(&mut self, now: Instant) {
        self.since = now;
    }

    /// Returns `true` if Allow can be pressed.
    pub(crate) fn armed(&self, now: Instant) -> bool {
        self.focused && self.in_view && now.saturating_duration_since(self.since) >= SETTLE
    }
}

/// The time that the question still waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Countdown {
    length: Duration,
    ends: Instant,
    told: Option<Instant>,
}

impl Countdown {
    /// A question that was asked just now.
    pub(crate) fn new(length: Duration, now: Instant) -> Self {
        Self { length, ends: now + length, told: None }
    }

    /// The person works in the dialog: the time starts anew. Whether the trusted process is to be told.
    pub(crate) fn work(&mut self, now: Instant) -> bool {
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < TELL_EVERY) {
            return false;
        }
        self.told = Some(now);
        self.ends = now + self.length;
        true
    }

    /// The time that is left.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.ends.saturating_duration_since(now)
    }

    /// Returns `true` if nobody answered in time.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }
}

/// The time that is left, as `0:41`. A second that has begun counts.
pub(crate) fn clock_words(left: Duration) -> String {
    let seconds = left.as_millis().div_ceil(1000);
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn allow_is_armed_after_a_rest_in_focus() {
        let start = Instant::now();
        let mut arming = Arming::new(start);
        assert!(!arming.armed(start + SETTLE * 10), "never without the focus");
        arming.set_focused(true, start);
        assert!(!arming.armed(start + SETTLE - MS));
        assert!(arming.armed(start + SETTLE));
        arming.set_focused(true, start + SETTLE);
        assert!(arming.armed(start + SETTLE), "the same news twice changes nothing");
    }

    #[test]
    fn every_change_starts_the_rest_anew() {
        let start = Instant::now();
        let changes: [fn(&mut Arming, Instant); 3] = [
            |a, now| a.disturb(now),
            |a, now| {
                a.set_focused(false, now);
                a.set_focused(true, now);
            },
            |a, now| {
                a.set_in_view(false, now);
                a.set_in_view(true, now);
            },
        ];
        for change in changes {
            let mut arming = Arming::new(start);
            arming.set_focused(true, start);
            let later = start + SETTLE;
            change(&mut arming, later);
            assert!(!arming.armed(later + SETTLE - MS));
            assert!(arming.armed(later + SETTLE));
        }
    }

    #[test]
    fn a_covered_dialog_is_not_armed() {
        let start = Instant::now();
        let mut arming = Arming::new(start);
        arming.set_focused(true, start);
        arming.set_in_view(false, start);
        assert!(!arming.armed(start + SETTLE * 10));
    }

    #[test]
    fn work_restarts_the_countdown_and_is_told_once_a_second() {
        let start = Instant::now();
        let mut countdown = Countdown::new(MS * 45_000, start);
        assert!(countdown.work(start + MS * 10_000));
        assert!(!countdown.work(start + MS * 10_500));
        assert!(countdown.work(start + MS * 11_000));
        assert_eq!(countdown.left(start + MS * 12_000), MS * 44_000);
        assert!(!countdown.is_over(start + MS * 55_999));
        assert!(countdown.is_over(start + MS * 56_000));
    }

    #[test]
    fn the_clock_reads_like_a_clock() {
        let words: Vec<_> = [0, 1, 1000, 41_200, 61_000].map(|ms| clock_words(MS * ms)).into();
        assert_eq!(words, ["0:00", "0:01", "0:01", "0:42", "1:01"]);
    }
}
