//! State machine that decides whether a press of Allow is accepted. It depends on neither the GUI toolkit nor the
//! clock.
//!
//! - Each [`Event`] is passed with its time and results in an [`Effect`].
//! - INVARIANT: a call is allowed by a press and release on Allow, after a rest period: [`REST`] without other presses
//!   or changes. Before the press, the user must have read the whole question with the dialog in view, and must have
//!   chosen Allow with the pointer, a finger or the keyboard focus.
//! - INVARIANT: the pointer chooses Allow by moving [`TRAVEL`] pixels on it and staying there for [`HOVER`]. Only
//!   movement after the rest period counts. After a press on another control of the dialog, movement during the rest
//!   period counts as well.
//! - INVARIANT: a finger chooses Allow by touching it when pointer movement would count. The next touch, after another
//!   rest period, allows the call. The keyboard chooses Allow if a key moves the focus there.
//! - INVARIANT: if another window could cover the dialog unnoticed, the press must last for [`HOLD`].
//! - The pointer does not have to leave Allow first, because moving on Allow after a rest period always chooses it.

use std::time::{Duration, Instant};

/// Minimum time without a press or change before Allow is accepted. It is longer than the interval between clicks or
/// keys meant for another window.
pub(crate) const REST: Duration = Duration::from_millis(800);
/// Minimum time between the pointer's arrival on Allow and a press that is accepted.
pub(crate) const HOVER: Duration = Duration::from_millis(250);
/// Minimum duration of a press if Allow must be held.
pub(crate) const HOLD: Duration = Duration::from_millis(700);
/// Distance in pixels that the pointer must move on Allow before a press is accepted.
pub(crate) const TRAVEL: u32 = 12;

/// Input device that presses Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InputDevice {
    /// Primary button of the pointer.
    Pointer,
    /// A finger on a touch screen.
    Touch,
    /// The key combination Alt+A.
    Key,
}

/// Visibility of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InView {
    Whole,
    /// Another window covers part of the dialog.
    Covered,
    /// Part of the dialog is outside every screen.
    OffScreen,
}

/// Event that affects whether a press of Allow is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The dialog moved, grew, scrolled or was shown again, or the user changed a choice.
    Changed,
    /// The dialog received (`true`) or lost (`false`) the keyboard focus.
    Focused(bool),
    /// The visibility of the dialog changed.
    InView(InView),
    /// `true` once all required text has been in view, `false` if the text has grown since then.
    Read(bool),
    /// `true` if Allow must be held for [`HOLD`].
    Slow(bool),
    /// The pointer is on Allow, at these screen coordinates in pixels.
    OnAllow(i32, i32),
    /// The pointer left Allow.
    OffAllow,
    /// `true` if a key moved the focus to Allow, `false` if the focus left it.
    Keyed(bool),
    /// The primary button was pressed on another part of the dialog, such as a choice, an expander or text.
    Inside,
    /// Another button or key was pressed.
    Press,
    /// Allow was pressed. A key that repeats while held counts as one press.
    Down(InputDevice),
    /// The press was released on Allow.
    Up(InputDevice),
    /// A screen reader activated Allow.
    Action,
}

/// Result of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Effect {
    Nothing,
    /// Allow was pressed, but the press was not accepted.
    Ignored,
    /// The user allowed the call.
    Allowed,
}

/// State machine that decides whether a press of Allow is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arming {
    slow: bool,
    read: bool,
    in_view: InView,
    /// Time at which the dialog received the keyboard focus.
    focused: Option<Instant>,
    on_allow: Option<OnAllow>,
    /// `true` if a finger chose Allow by touching it.
    touched: bool,
    keyed: bool,
    /// `true` if Alt+A was pressed and its release has not been received.
    is_key_down: bool,
    /// Time of the last press or change.
    last_disturbance: Instant,
    /// Time of the last press on another control. Set only if all events since the last rest period are such presses or
    /// changes that they caused.
    last_other_press: Option<Instant>,
    down: Option<(InputDevice, Instant)>,
}

/// State of the pointer while it is on Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OnAllow {
    since: Instant,
    /// Point from which movement is measured.
    from: (i32, i32),
    at: (i32, i32),
    travelled: bool,
}

/// State of Allow, as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Part of the question has not been read yet.
    Unread,
    /// Another window covers the dialog.
    Covered,
    /// Part of the dialog is outside every screen.
    OffScreen,
    /// A press is being held. Contains its start, and the time from which it is accepted.
    Holding(Instant, Instant),
    /// The press was held long enough and can be released.
    Release,
    /// The user must pause. Contains the start and end of the rest period.
    Resting(Instant, Instant),
    /// The pointer is on Allow but has not moved since the rest period.
    MovePointer,
    /// The user has not chosen Allow yet.
    Waiting,
    /// A press with this device is accepted.
    Armed(InputDevice),
}

impl Arming {
    /// Creates the state of a newly opened dialog: unread and without the keyboard focus.
    pub(crate) fn new(slow: bool, now: Instant) -> Self {
        Self {
            slow,
            read: false,
            in_view: InView::Whole,
            focused: None,
            on_allow: None,
            touched: false,
            keyed: false,
            is_key_down: false,
            last_disturbance: now,
            last_other_press: None,
            down: None,
        }
    }

    /// Handles an event at the time `now`.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Effect {
        match event {
            Event::Changed => self.change(now),
            Event::Focused(true) => {
                self.focused.get_or_insert(now);
            }
            Event::Focused(false) => {
                self.is_key_down = false;
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
                self.down = self.down.filter(|(by, _)| *by != InputDevice::Pointer);
            }
            Event::Keyed(keyed) => {
                self.keyed = keyed;
                self.down = self.down.filter(|(by, _)| *by != InputDevice::Key);
            }
            Event::Inside => {
                let deliberate = self.moves_count(now);
                self.disturb(now);
                self.last_other_press = deliberate.then_some(now);
            }
            Event::Press => self.disturb(now),
            Event::Down(by) => return self.press(by, now),
            Event::Up(by) => return self.release(by, now),
            Event::Action => {
                let counts = self.armed(InputDevice::Key, now);
                self.disturb(now);
                return if counts { Effect::Allowed } else { Effect::Ignored };
            }
        }
        Effect::Nothing
    }

    /// Returns the stage to show to the user.
    pub(crate) fn stage(&self, now: Instant) -> Stage {
        let rest = self.last_disturbance + REST;
        match (self.down, self.chosen()) {
            _ if !self.read => Stage::Unread,
            _ if self.in_view == InView::Covered => Stage::Covered,
            _ if self.in_view == InView::OffScreen => Stage::OffScreen,
            (Some((_, since)), _) if self.slow && now < since + HOLD => Stage::Holding(since, since + HOLD),
            (Some(_), _) => Stage::Release,
            _ if now < rest => Stage::Resting(self.last_disturbance, rest),
            (None, Some((_, since, until))) if now < until => Stage::Resting(since, until),
            (None, Some((by, _, _))) => Stage::Armed(by),
            (None, None) if self.on_allow.is_some() => Stage::MovePointer,
            (None, None) => Stage::Waiting,
        }
    }

    /// Returns the device with which the user chose Allow, the time of the choice, and the time from which a press is
    /// accepted.
    fn chosen(&self) -> Option<(InputDevice, Instant, Instant)> {
        let travelled = self.on_allow.filter(|pointer| pointer.travelled);
        let pointer = travelled.map(|pointer| (InputDevice::Pointer, pointer.since, pointer.since + HOVER));
        let key = || self.focused.filter(|_| self.keyed).map(|since| (InputDevice::Key, since, since + REST));
        let touch =
            || self.touched.then_some((InputDevice::Touch, self.last_disturbance, self.last_disturbance));
        pointer.or_else(key).or_else(touch)
    }

    fn armed(&self, by: InputDevice, now: Instant) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        let chosen = match by {
            InputDevice::Pointer => self.on_allow.is_some_and(|on| on.travelled && since(on.since) >= HOVER),
            InputDevice::Touch => self.touched,
            InputDevice::Key => self.keyed && self.focused.is_some_and(|at| since(at) >= REST),
        };
        chosen && self.read && self.in_view == InView::Whole && self.rested(now)
    }

    fn rested(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_disturbance) >= REST
    }

    /// Returns `true` if moving the pointer on Allow currently counts as choosing it.
    fn moves_count(&self, now: Instant) -> bool {
        self.rested(now) || self.last_other_press.is_some()
    }

    fn move_to(&mut self, at: (i32, i32), now: Instant) {
        let counts = self.moves_count(now);
        let new = || OnAllow { since: now, from: at, at, travelled: false };
        let pointer = self.on_allow.get_or_insert_with(new);
        pointer.at = at;
        if !counts {
            pointer.from = at;
        } else if has_travelled(pointer.from, at) {
            pointer.travelled = true;
        }
    }

    fn press(&mut self, by: InputDevice, now: Instant) -> Effect {
        // Key repeat continues the current press, but a new press must wait.
        if let Some(held @ (InputDevice::Key, _)) = self.down.filter(|_| by == InputDevice::Key) {
            self.disturb(now);
            self.down = Some(held);
            return Effect::Nothing;
        }
        let repeats = by == InputDevice::Key && std::mem::replace(&mut self.is_key_down, true);
        if self.down.is_none() && !repeats && self.armed(by, now) {
            let (on_allow, touched) = (self.on_allow, self.touched);
            self.disturb(now);
            self.down = Some((by, now));
            // Keeps the choice, so that a user who released too early can press again after a rest period.
            match by {
                InputDevice::Pointer => self.on_allow = on_allow,
                InputDevice::Touch => self.touched = touched,
                InputDevice::Key => {}
            }
            return Effect::Nothing;
        }
        let touches = by == InputDevice::Touch && self.moves_count(now);
        self.disturb(now);
        self.touched = touches;
        if repeats { Effect::Nothing } else { Effect::Ignored }
    }

    fn release(&mut self, by: InputDevice, now: Instant) -> Effect {
        self.is_key_down &= by != InputDevice::Key;
        match self.down.take().filter(|(down, _)| *down == by) {
            None => Effect::Nothing,
            Some((_, since)) if self.slow && now.saturating_duration_since(since) < HOLD => Effect::Ignored,
            Some(_) => Effect::Allowed,
        }
    }

    /// Handles a change of the dialog. A change right after a press on another control is attributed to that press.
    fn change(&mut self, now: Instant) {
        let last_other_press =
            self.last_other_press.filter(|pressed| now.saturating_duration_since(*pressed) < REST);
        self.disturb(now);
        self.last_other_press = last_other_press;
    }

    /// Restarts the rest period. Discards any choice of Allow except one made with the keyboard.
    fn disturb(&mut self, now: Instant) {
        self.last_disturbance = now;
        self.last_other_press = None;
        self.down = None;
        self.touched = false;
        if let Some(pointer) = &mut self.on_allow {
            pointer.from = pointer.at;
            pointer.travelled = false;
        }
    }
}

fn has_travelled(from: (i32, i32), to: (i32, i32)) -> bool {
    let square = |one: i32, other: i32| u64::from(one.abs_diff(other)).saturating_pow(2);
    square(from.0, to.0).saturating_add(square(from.1, to.1)) >= u64::from(TRAVEL).pow(2)
}

#[cfg(test)]
mod tests;
