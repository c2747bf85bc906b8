//! Decides when a press of Allow counts: a state machine without toolkit and clock.
//!
//! - The time is an argument. Takes an [`Event`] and returns an [`Effect`], without any widgets.
//! - INVARIANT: Allow needs a press and its release, both on Allow, after [`REST`] without any
//!   press or change. The whole question must have been read and be in view, and the user must have
//!   chosen Allow first: with the pointer, a finger, or the keyboard focus.
//! - INVARIANT: the pointer chooses Allow by moving [`TRAVEL`] pixels on it and staying there for
//!   [`HOVER`]. Only movement after the rest counts. After a press on something else in the dialog,
//!   movement during the rest counts too.
//! - INVARIANT: a finger chooses Allow by touching it after the rest, and allows with its next
//!   touch after another rest. The focus chooses Allow if a key brought it there.
//! - INVARIANT: if a cover of the dialog would go unnoticed, the press must last for [`HOLD`].
//! - The pointer never has to leave Allow: after a rest, moving on it always chooses it.

use std::time::{Duration, Instant};

/// Minimum time without a press or a change before Allow counts. Longer than the gap between clicks
/// or keys that were meant for something else.
pub(crate) const REST: Duration = Duration::from_millis(800);
/// Minimum time from the pointer's arrival on Allow to a press that counts.
pub(crate) const HOVER: Duration = Duration::from_millis(250);
/// Minimum length of a press if Allow must be held.
pub(crate) const HOLD: Duration = Duration::from_millis(700);
/// Distance in pixels that the pointer must move on Allow before a press counts.
pub(crate) const TRAVEL: u32 = 12;

/// Device that presses Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum By {
    /// First button of the pointer.
    Pointer,
    /// A finger on a touch screen.
    Touch,
    /// Alt+A.
    Key,
}

/// Visible part of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InView {
    Whole,
    /// Another window overlaps it.
    Covered,
    /// Part of it is outside every screen.
    OffScreen,
}

/// Something that happened to the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The dialog moved, grew, was shown again or scrolled, or another choice was made.
    Changed,
    /// The dialog got or lost the keyboard.
    Focused(bool),
    /// The visible part changed.
    InView(InView),
    /// Everything that must be read has been in view, or has grown since.
    Read(bool),
    /// Allow requires [`HOLD`], or no longer does.
    Slow(bool),
    /// The pointer is on Allow, at this point of the screen in pixels.
    OnAllow(i32, i32),
    /// The pointer left Allow.
    OffAllow,
    /// A key moved the focus to Allow, or the focus left it.
    Keyed(bool),
    /// The pointer's first button was pressed on anything but Allow: a choice, an expander, the
    /// text.
    Inside,
    /// Any other button or key was pressed.
    Press,
    /// Allow was pressed. A key that repeats while held counts once.
    Down(By),
    /// The press was released on Allow.
    Up(By),
    /// A screen reader pressed Allow.
    Action,
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Effect {
    Nothing,
    /// Allow was pressed, but the press did not count.
    Ignored,
    /// The user allowed.
    Allowed,
}

/// State machine that decides whether a press of Allow counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arming {
    slow: bool,
    read: bool,
    in_view: InView,
    /// Time at which the dialog got the keyboard.
    focused: Option<Instant>,
    on_allow: Option<OnAllow>,
    /// A finger touched Allow after a rest.
    touched: bool,
    keyed: bool,
    /// Alt+A has not been released yet, as far as this window knows.
    key_held: bool,
    /// Time of the last press or change.
    disturbed: Instant,
    /// Time of the last press on something else in the dialog, if everything since the preceding
    /// rest was such a press or its consequence.
    at_work: Option<Instant>,
    down: Option<(By, Instant)>,
}

/// Pointer on Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OnAllow {
    since: Instant,
    /// Point from which movement is measured.
    from: (i32, i32),
    at: (i32, i32),
    travelled: bool,
}

/// Condition that Allow is waiting for, as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Some of the question is unread.
    Unread,
    /// Another window covers the dialog.
    Covered,
    /// A part of the dialog is outside every screen.
    OffScreen,
    /// A valid press is being held since the first time; it counts from the second time on.
    Holding(Instant, Instant),
    /// The press was held long enough.
    LetGo,
    /// Resting from the first time until the second.
    Resting(Instant, Instant),
    /// The pointer is on Allow and has not moved there since the rest.
    Still,
    /// Nothing has chosen Allow yet.
    Waiting,
    /// A press counts.
    Armed(By),
}

impl Arming {
    /// Creates the state of a dialog that just opened, unread and without the keyboard.
    pub(crate) fn new(slow: bool, now: Instant) -> Self {
        Self {
            slow,
            read: false,
            in_view: InView::Whole,
            focused: None,
            on_allow: None,
            touched: false,
            keyed: false,
            key_held: false,
            disturbed: now,
            at_work: None,
            down: None,
        }
    }

    /// Handles an event.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Effect {
        match event {
            Event::Changed => self.change(now),
            Event::Focused(true) => {
                self.focused.get_or_insert(now);
            }
            Event::Focused(false) => {
                self.key_held = false;
                if self.focused.take().is_some() {
                    self.disturb(now);
                }
            }
            Event::InView(in_view) => {
                if self.in_view != in_view {
                    self.in_view = in_view;
                    self.disturb(now);
                }
            }
            Event::Slow(slow) => {
                if self.slow != slow {
                    self.slow = slow;
                    self.change(now);
                }
            }
            Event::Read(read) => {
                if self.read != read {
                    self.read = read;
                    self.change(now);
                }
            }
            Event::OnAllow(x, y) => self.move_to((x, y), now),
            Event::OffAllow => {
                self.on_allow = None;
                self.down = self.down.filter(|(by, _)| *by != By::Pointer);
            }
            Event::Keyed(keyed) => {
                self.keyed = keyed;
                self.down = self.down.filter(|(by, _)| *by != By::Key);
            }
            Event::Inside => {
                let deliberate = self.moves_count(now);
                self.disturb(now);
                self.at_work = deliberate.then_some(now);
            }
            Event::Press => self.disturb(now),
            Event::Down(by) => return self.press(by, now),
            Event::Up(by) => return self.release(by, now),
            Event::Action => {
                let counts = self.armed(By::Key, now);
                self.disturb(now);
                return if counts { Effect::Allowed } else { Effect::Ignored };
            }
        }
        Effect::Nothing
    }

    /// Returns the stage to show to the user.
    pub(crate) fn stage(&self, now: Instant) -> Stage {
        let rest = self.disturbed + REST;
        match (self.down, self.chosen()) {
            _ if !self.read => Stage::Unread,
            _ if self.in_view == InView::Covered => Stage::Covered,
            _ if self.in_view == InView::OffScreen => Stage::OffScreen,
            (Some((_, since)), _) if self.slow && now < since + HOLD => Stage::Holding(since, since + HOLD),
            (Some(_), _) => Stage::LetGo,
            _ if now < rest => Stage::Resting(self.disturbed, rest),
            (None, Some((_, since, until))) if now < until => Stage::Resting(since, until),
            (None, Some((by, _, _))) => Stage::Armed(by),
            (None, None) if self.on_allow.is_some() => Stage::Still,
            (None, None) => Stage::Waiting,
        }
    }

    /// Returns the device that chose Allow, since when, and when that is long enough.
    fn chosen(&self) -> Option<(By, Instant, Instant)> {
        let travelled = self.on_allow.filter(|pointer| pointer.travelled);
        let pointer = travelled.map(|pointer| (By::Pointer, pointer.since, pointer.since + HOVER));
        let key = || self.focused.filter(|_| self.keyed).map(|since| (By::Key, since, since + REST));
        let touch = || self.touched.then_some((By::Touch, self.disturbed, self.disturbed));
        pointer.or_else(key).or_else(touch)
    }

    fn armed(&self, by: By, now: Instant) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        let chosen = match by {
            By::Pointer => self.on_allow.is_some_and(|on| on.travelled && since(on.since) >= HOVER),
            By::Touch => self.touched,
            By::Key => self.keyed && self.focused.is_some_and(|at| since(at) >= REST),
        };
        chosen && self.read && self.in_view == InView::Whole && self.rested(now)
    }

    fn rested(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.disturbed) >= REST
    }

    /// Returns whether moving on Allow chooses it now.
    fn moves_count(&self, now: Instant) -> bool {
        self.rested(now) || self.at_work.is_some()
    }

    fn move_to(&mut self, at: (i32, i32), now: Instant) {
        let counts = self.moves_count(now);
        let new = || OnAllow { since: now, from: at, at, travelled: false };
        let pointer = self.on_allow.get_or_insert_with(new);
        pointer.at = at;
        if !counts {
            pointer.from = at;
        } else if is_far(pointer.from, at) {
            pointer.travelled = true;
        }
    }

    fn press(&mut self, by: By, now: Instant) -> Effect {
        // A repeated key continues its press. Any other press would have to wait.
        if let Some(held @ (By::Key, _)) = self.down.filter(|_| by == By::Key) {
            self.disturb(now);
            self.down = Some(held);
            return Effect::Nothing;
        }
        let repeats = by == By::Key && std::mem::replace(&mut self.key_held, true);
        if self.down.is_none() && !repeats && self.armed(by, now) {
            let (on_allow, touched) = (self.on_allow, self.touched);
            self.disturb(now);
            self.down = Some((by, now));
            // Keep the choice: a user who releases too early can press again after a rest.
            match by {
                By::Pointer => self.on_allow = on_allow,
                By::Touch => self.touched = touched,
                By::Key => {}
            }
            return Effect::Nothing;
        }
        let touches = by == By::Touch && self.moves_count(now);
        self.disturb(now);
        self.touched = touches;
        if repeats { Effect::Nothing } else { Effect::Ignored }
    }

    fn release(&mut self, by: By, now: Instant) -> Effect {
        self.key_held &= by != By::Key;
        match self.down.take().filter(|(down, _)| *down == by) {
            None => Effect::Nothing,
            Some((_, since)) if self.slow && now.saturating_duration_since(since) < HOLD => Effect::Ignored,
            Some(_) => Effect::Allowed,
        }
    }

    /// Handles a changed or moved Allow. Right after a press in the dialog, that press is
    /// considered the cause.
    fn change(&mut self, now: Instant) {
        let at_work = self.at_work.filter(|pressed| now.saturating_duration_since(*pressed) < REST);
        self.disturb(now);
        self.at_work = at_work;
    }

    /// Restarts the rest and drops every choice of Allow except the focus.
    fn disturb(&mut self, now: Instant) {
        self.disturbed = now;
        self.at_work = None;
        self.down = None;
        self.touched = false;
        if let Some(pointer) = &mut self.on_allow {
            pointer.from = pointer.at;
            pointer.travelled = false;
        }
    }
}

fn is_far(from: (i32, i32), to: (i32, i32)) -> bool {
    let square = |one: i32, other: i32| u64::from(one.abs_diff(other)).saturating_pow(2);
    square(from.0, to.0).saturating_add(square(from.1, to.1)) >= u64::from(TRAVEL).pow(2)
}

#[cfg(test)]
mod tests;
