//! Updates everything in the dialog that depends on the time.
//!
//! - The countdown ends the dialog with [`DialogResult::TimedOut`], which never allows a call.

use super::{Inner, rows};
use crate::consent::arming::Event;
use crate::consent::clock::format_waiting;
use crate::consent::{Command, DialogResult};
use gtk::glib::{self, ControlFlow};
use gtk::prelude::*;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Interval between updates of the countdown.
const TICK: Duration = Duration::from_secs(1);
/// Remaining time at which screen readers announce that time is running out.
const WARN_BEFORE_END: Duration = Duration::from_secs(10);

impl Inner {
    /// Updates everything that depends on the time, and schedules the next update.
    pub(super) fn tick(self: &Rc<Self>) {
        if self.is_closed.get() {
            return;
        }
        let now = Instant::now();
        if self.countdown.borrow().has_expired(now) {
            self.end(self.open(), DialogResult::TimedOut);
            return;
        }
        self.notify_if_ignored(now);
        self.check_if_read(now);
        let slow = self.needs_holding();
        let _ = self.arming.borrow_mut().on(Event::Slow(slow), now);
        let left = self.countdown.borrow().left(now);
        self.layout.clock.set_text(&format_waiting(left));
        if self.warned.replace(left <= WARN_BEFORE_END) != (left <= WARN_BEFORE_END)
            && left <= WARN_BEFORE_END
        {
            rows::announce(&self.layout.clock, &self.layout.clock.text());
        }
        let stage = self.arming.borrow().stage(now);
        let soon = self.layout.allow.show(stage, slow, now);
        // Updates again shortly after the next full second, when the text changes.
        let second = Duration::from_millis(u64::from(left.subsec_millis()) + 5);
        self.schedule_tick(now + soon.unwrap_or(TICK).min(second));
    }

    /// Sends a notification if the user has not reacted to the dialog.
    fn notify_if_ignored(&self, now: Instant) {
        let in_view = self.seen.get() && self.can_detect_occlusion();
        let active = self.countdown.borrow().last_activity();
        if !self.layout.window.is_active() && self.reminder.borrow_mut().is_due(active, in_view, now) {
            self.send_first(Command::RemindUser);
        }
    }

    fn schedule_tick(self: &Rc<Self>, at: Instant) {
        if self.timer.borrow().as_ref().is_some_and(|(_, due)| *due <= at && *due > Instant::now()) {
            return;
        }
        self.stop_timer();
        let weak = Rc::downgrade(self);
        let wait = at.saturating_duration_since(Instant::now());
        let source = glib::timeout_add_local(wait.max(Duration::from_millis(1)), move || {
            if let Some(inner) = weak.upgrade() {
                inner.timer.replace(None);
                inner.record_pointer();
                inner.tick();
            }
            ControlFlow::Break
        });
        self.timer.replace(Some((source, at)));
    }

    pub(super) fn stop_timer(&self) {
        if let Some((source, _)) = self.timer.take() {
            source.remove();
        }
    }
}
