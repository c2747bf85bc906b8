//! Hint and ring that show the state of Allow, for all kinds of dialogs.

use super::arming::{InputDevice, Stage};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Interval between frames of the ring while it fills.
const FRAME: Duration = Duration::from_millis(80);

/// Longest hint, for which space is reserved.
pub(super) const LONGEST_HINT: &str =
    "To allow: move the pointer slightly on Allow, or press Tab until you are on it";

/// Returns the hint for a stage, with the verb of the button's label. `slow` is `true` if the button must be held.
pub(super) fn text(stage: Stage, slow: bool, label: &str) -> Cow<'static, str> {
    let words = allow_text(stage, slow);
    if label.starts_with("Apply") {
        return words.replace("Allow", "Apply").replace("allow", "apply").into();
    }
    words.into()
}

fn allow_text(stage: Stage, slow: bool) -> &'static str {
    match (stage, slow) {
        (Stage::Unread, _) => "To allow: read to the end first, with Page Down or the mouse",
        (Stage::Covered, _) => "To allow: move the window that covers this one",
        (Stage::OffScreen, _) => "To allow: part of this window is off the screen, move it",
        (Stage::MovePointer, _) => LONGEST_HINT,
        (Stage::Waiting, _) => "To allow: point at Allow, or press Tab until you are on it",
        (Stage::Resting(..), _) => "Allow unlocks in a moment",
        (Stage::Armed(InputDevice::Pointer), false) => "Click here to allow",
        (Stage::Armed(InputDevice::Pointer), true) => "Press and hold here to allow",
        (Stage::Armed(InputDevice::Touch), false) => "Tap Allow again to allow",
        (Stage::Armed(InputDevice::Touch), true) => "Touch and hold Allow to allow",
        (Stage::Armed(InputDevice::Key), false) => "Press Alt+A to allow",
        (Stage::Armed(InputDevice::Key), true) => "Hold Alt+A to allow",
        (Stage::Holding(..), _) => "Keep holding",
        (Stage::Release, _) => "Let go to allow",
    }
}

/// Returns the filled fraction of the ring and, if it changes over time, the time of the next frame.
pub(super) fn ring(stage: Stage, now: Instant) -> (f64, Option<Duration>) {
    match stage {
        Stage::Resting(from, until) | Stage::Holding(from, until) => {
            let total = until.saturating_duration_since(from).as_secs_f64().max(0.001);
            let elapsed = now.saturating_duration_since(from).as_secs_f64() / total;
            (elapsed.min(1.0), Some(until.saturating_duration_since(now).min(FRAME)))
        }
        Stage::Armed(_) | Stage::Release => (1.0, None),
        Stage::Unread | Stage::Covered | Stage::OffScreen | Stage::MovePointer | Stage::Waiting => {
            (0.0, None)
        }
    }
}

/// Returns `true` if a press is accepted, or an accepted press is being held.
pub(super) fn is_armed(stage: Stage) -> bool {
    matches!(stage, Stage::Armed(_) | Stage::Holding(..) | Stage::Release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_hint_is_the_longest() {
        let now = Instant::now();
        let by = [InputDevice::Pointer, InputDevice::Touch, InputDevice::Key].map(Stage::Armed);
        let others = [
            Stage::Unread,
            Stage::Covered,
            Stage::OffScreen,
            Stage::MovePointer,
            Stage::Waiting,
            Stage::Resting(now, now),
            Stage::Holding(now, now),
            Stage::Release,
        ];
        for stage in by.into_iter().chain(others) {
            for slow in [true, false] {
                for label in ["Allow once", "Apply"] {
                    assert!(text(stage, slow, label).len() <= LONGEST_HINT.len(), "{stage:?}");
                }
            }
        }
    }

    #[test]
    fn hint_uses_the_verb_of_the_button() {
        let words = |label| text(Stage::Waiting, false, label);
        assert_eq!(words("Allow once"), "To allow: point at Allow, or press Tab until you are on it");
        assert_eq!(words("Apply"), "To apply: point at Apply, or press Tab until you are on it");
    }
}
