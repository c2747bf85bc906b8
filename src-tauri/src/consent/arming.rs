//! The one way to a yes: a state machine without a toolkit and without a clock.
//!
//! - Never reads the clock: the moment is an argument. Knows no widget: [`Event`]s go in, a [`Stage`] comes out.
//! - INVARIANT: a yes is a press and its release, both on Allow, after [`REST`] without any press or change, with all of
//!   the question read and in view, and with Allow chosen beforehand: by the pointer, brought onto it from elsewhere
//!   after such a rest and left there for [`HOVER`], or by the keyboard's focus, brought there by a key.
//! - INVARIANT: where nothing tells that the dialog is covered, the press lasts for [`HOLD`].

use std::time::{Duration, Instant};

/// The time without a press or a change before Allow counts: longer than between clicks and keys meant for something else.
pub(crate) const REST: Duration = Duration::from_millis(800);
/// The time for which the pointer stays on Allow before a press counts: one that jumps there and presses does not mean it.
pub(crate) const HOVER: Duration = Duration::from_millis(250);
/// The time for which Allow is held where that is asked for.
pub(crate) const HOLD: Duration = Duration::from_millis(700);

/// The means of a press.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The first button of the pointer, or a finger.
    Pointer,
    /// Alt+A.
    Key,
}

/// One thing that happened to the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// It moved, grew, was shown again, scrolled, or another choice was made.
    Changed,
    /// It has the keyboard, or lost it.
    Focused(bool),
    /// All of it can be seen, or something covers it.
    InView(bool),
    /// All of what a yes opens was in view by now, or has grown since.
    Read(bool),
    /// A yes needs [`HOLD`], or does not any more.
    Slow(bool),
    /// The pointer crossed the border of Allow: it is on it, or off it.
    Pointer(bool),
    /// A key brought the focus to Allow, or it went away from there.
    Keyed(bool),
    /// A press of any other button or key.
    Press,
    /// A press of Allow. One that repeats itself while it is held counts once.
    Down(By),
    /// The end of that press, on Allow.
    Up(By),
    /// A screen reader presses Allow.
    Action,
}

/// The state that decides if a press of Allow counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arming {
    slow: bool,
    read: bool,
    in_view: bool,
    /// Since when it has the keyboard.
    focused: Option<Instant>,
    pointer: Pointer,
    keyed: bool,
    /// Alt+A was not let go yet, as far as this window knows.
    key_held: bool,
    /// The last press or change.
    disturbed: Instant,
    down: Option<(By, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pointer {
    Off,
    /// It was there before the dialog had rested, so nobody brought it.
    Parked,
    Brought(Instant),
}

/// The words and the ring that the person is shown about Allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There is more to read.
    Unread,
    /// Something covers the dialog.
    Covered,
    /// A press that counts is held; it counts from the second moment on.
    Holding(Instant, Instant),
    /// It was held for long enough.
    LetGo,
    /// Not yet: from the first moment to the second.
    Resting(Instant, Instant),
    /// The pointer was there all the time.
    Parked,
    /// Nobody chose Allow yet.
    Waiting,
    /// A press counts.
    Armed(By),
}

impl Arming {
    /// A dialog that just opened, not read, without the keyboard.
    pub(crate) fn new(slow: bool, now: Instant) -> Self {
        Self {
            slow,
            read: false,
            in_view: true,
            focused: None,
            pointer: Pointer::Off,
            keyed: false,
            key_held: false,
            disturbed: now,
            down: None,
        }
    }

    /// Takes in what happened. Returns `true` if that was a yes.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> bool {
        match event {
            Event::Changed => self.change(now),
            Event::Focused(true) => {
                self.focused.get_or_insert(now);
            }
            Event::Focused(false) => {
                self.key_held = false;
                if self.focused.take().is_some() {
                    self.change(now);
                }
            }
            Event::InView(in_view) => {
                if self.in_view != in_view {
                    self.in_view = in_view;
                    self.change(now);
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
            Event::Pointer(true) => {
                if self.pointer == Pointer::Off {
                    self.pointer = if self.rested(now) { Pointer::Brought(now) } else { Pointer::Parked };
                }
            }
            Event::Pointer(false) => {
                self.pointer = Pointer::Off;
                self.down = self.down.filter(|(by, _)| *by != By::Pointer);
            }
            Event::Keyed(keyed) => {
                self.keyed = keyed;
                self.down = self.down.filter(|(by, _)| *by != By::Key);
            }
            Event::Press => self.press(now),
            // A key that repeats itself: its press goes on, and any other would have to wait.
            Event::Down(By::Key) if matches!(self.down, Some((By::Key, _))) => self.disturbed = now,
            Event::Down(by) => {
                let repeats = by == By::Key && std::mem::replace(&mut self.key_held, true);
                let counts = self.down.is_none() && !repeats && self.armed(by, now);
                self.press(now);
                if counts {
                    self.down = Some((by, now));
                }
            }
            Event::Up(by) => {
                self.key_held &= by != By::Key;
                let held = self.down.take().filter(|(down, _)| *down == by);
                return held
                    .is_some_and(|(_, since)| !self.slow || now.saturating_duration_since(since) >= HOLD);
            }
            Event::Action => {
                let counts = self.armed(By::Key, now);
                self.press(now);
                return counts;
            }
        }
        false
    }

    /// The stage that the person is shown.
    pub(crate) fn stage(&self, now: Instant) -> Stage {
        let rest = self.disturbed + REST;
        let chosen = match self.pointer {
            Pointer::Brought(since) => Some((By::Pointer, since, since + HOVER)),
            Pointer::Parked | Pointer::Off => {
                self.focused.filter(|_| self.keyed).map(|since| (By::Key, since, since + REST))
            }
        };
        match (self.down, chosen) {
            _ if !self.read => Stage::Unread,
            _ if !self.in_view => Stage::Covered,
            (Some((_, since)), _) if self.slow && now < since + HOLD => Stage::Holding(since, since + HOLD),
            (Some(_), _) => Stage::LetGo,
            _ if now < rest => Stage::Resting(self.disturbed, rest),
            (None, Some((_, since, until))) if now < until => Stage::Resting(since, until),
            (None, Some((by, _, _))) => Stage::Armed(by),
            (None, None) if self.pointer == Pointer::Parked => Stage::Parked,
            (None, None) => Stage::Waiting,
        }
    }

    fn armed(&self, by: By, now: Instant) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        let chosen = match (by, self.pointer) {
            (By::Pointer, Pointer::Brought(at)) => since(at) >= HOVER,
            (By::Pointer, Pointer::Off | Pointer::Parked) => false,
            (By::Key, _) => self.keyed && self.focused.is_some_and(|at| since(at) >= REST),
        };
        chosen && self.read && self.in_view && self.rested(now)
    }

    fn rested(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.disturbed) >= REST
    }

    /// Allow is another thing now, or at another place: a pointer that is there was not brought to it.
    fn change(&mut self, now: Instant) {
        self.press(now);
        if self.pointer != Pointer::Off {
            self.pointer = Pointer::Parked;
        }
    }

    fn press(&mut self, now: Instant) {
        self.disturbed = now;
        self.down = None;
    }
}

#[cfg(test)]
mod tests;
