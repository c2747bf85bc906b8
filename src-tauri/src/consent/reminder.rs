//! Decides when a notification about an unnoticed dialog is due.
//!
//! - The caller provides the current time.
//! - A notification can cover the dialog and disarm Allow, so no notification is due while the user is active in the
//!   dialog.

use std::time::{Duration, Instant};

/// Time without user activity after which a notification about a visible dialog is due.
const IN_VIEW: Duration = Duration::from_secs(5);
/// Time without user activity after which a notification about a possibly hidden dialog is due.
const HIDDEN: Duration = Duration::from_secs(1);
/// Minimum time between user activity and a notification, and between notifications about a possibly hidden dialog.
const AGAIN: Duration = Duration::from_secs(15);

/// Times of the notifications about a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reminder {
    opened: Instant,
    last: Option<Instant>,
}

impl Reminder {
    /// Creates the reminder for a dialog that opens now.
    pub(super) fn new(now: Instant) -> Self {
        Self { opened: now, last: None }
    }

    /// Returns `true` if a notification is due, and counts it as sent. `active` is the time of the user's last
    /// activity. The activity counts only if this dialog was already open. `in_view` is `true` if the dialog is known
    /// to be visible.
    pub(super) fn is_due(&mut self, active: Option<Instant>, in_view: bool, now: Instant) -> bool {
        let after_opening = match (self.last, in_view) {
            (None, true) => self.opened + IN_VIEW,
            (None, false) => self.opened + HIDDEN,
            (Some(last), false) => last + AGAIN,
            (Some(_), true) => return false,
        };
        let active = active.filter(|active| *active > self.opened);
        let due = active.map_or(after_opening, |active| after_opening.max(active + AGAIN));
        if now >= due {
            self.last = Some(now);
        }
        now >= due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn visible_dialog_is_announced_once() {
        let start = Instant::now();
        let mut reminder = Reminder::new(start);
        assert!(!reminder.is_due(None, true, start + SECOND * 4));
        assert!(reminder.is_due(None, true, start + SECOND * 5));
        assert!(!reminder.is_due(None, true, start + SECOND * 60));
    }

    #[test]
    fn hidden_dialog_is_announced_repeatedly() {
        let start = Instant::now();
        let mut reminder = Reminder::new(start);
        assert!(reminder.is_due(None, false, start + SECOND));
        assert!(!reminder.is_due(None, false, start + SECOND * 15));
        assert!(reminder.is_due(None, false, start + SECOND * 16));
    }

    #[test]
    fn activity_delays_the_notification() {
        let start = Instant::now();
        for in_view in [true, false] {
            let mut reminder = Reminder::new(start);
            let active = Some(start + SECOND * 3);
            assert!(!reminder.is_due(active, in_view, start + SECOND * 17), "{in_view}");
            assert!(reminder.is_due(active, in_view, start + SECOND * 18), "{in_view}");
            // The user was active in an earlier dialog.
            assert!(
                Reminder::new(start + SECOND * 4).is_due(active, in_view, start + SECOND * 9),
                "{in_view}"
            );
        }
    }
}
