//! Checks the conditions for Allow against the complete history of events, without a state machine.

use super::super::{Event, HOLD, HOVER, InView, InputDevice, REST, TRAVEL};

/// Events with their times in milliseconds.
type History<'a> = &'a [(u32, Event)];

/// Returns the condition that keeps `last`, at time `now`, from allowing the call, or `None` if it must allow it.
pub(super) fn missing(slow: bool, before: History<'_>, now: u32, last: Event) -> Option<&'static str> {
    let (by, pressed) = match last {
        Event::Action => return unarmed(before, InputDevice::Key, now),
        Event::Up(by) => (by, press_of(before, by)),
        Event::Changed
        | Event::Focused(_)
        | Event::InView(_)
        | Event::Read(_)
        | Event::Slow(_)
        | Event::OnAllow(..)
        | Event::OffAllow
        | Event::Keyed(_)
        | Event::Inside
        | Event::Press
        | Event::Down(_) => return Some("neither a release nor a screen reader's press"),
    };
    let Some(pressed) = pressed else { return Some("no press before the release") };
    let own = |event: &Event| by == InputDevice::Key && *event == Event::Down(by);
    if before[pressed + 1..].iter().any(|(_, event)| disturbs(event) && !own(event)) {
        return Some("no press to the end");
    }
    let began = before[pressed].0;
    let told = before
        .iter()
        .rev()
        .find_map(|(_, event)| if let Event::Slow(slow) = event { Some(*slow) } else { None });
    if told.unwrap_or(slow) && now - began < ms(HOLD) {
        return Some("not held");
    }
    unarmed(&before[..pressed], by, began)
}

/// Returns an unmet condition for a press at the time `began`, if there is one.
fn unarmed(earlier: History<'_>, by: InputDevice, began: u32) -> Option<&'static str> {
    if began < ms(REST) || earlier.iter().any(|(at, event)| disturbs(event) && began - at < ms(REST)) {
        return Some("no rest before the press");
    }
    let latest = |wanted: fn(&Event) -> bool| earlier.iter().rev().map(|(_, event)| *event).find(wanted);
    if latest(|event| matches!(event, Event::Read(_))) != Some(Event::Read(true)) {
        return Some("not read");
    }
    let whole = Event::InView(InView::Whole);
    if latest(|event| matches!(event, Event::InView(_))).is_some_and(|event| event != whole) {
        return Some("not in view");
    }
    match by {
        InputDevice::Pointer => unpointed(earlier, began),
        InputDevice::Touch => untouched(earlier),
        InputDevice::Key if latest(|event| matches!(event, Event::Keyed(_))) != Some(Event::Keyed(true)) => {
            Some("the focus is not on Allow")
        }
        InputDevice::Key => {
            let focused = latest(|event| matches!(event, Event::Focused(_)));
            (focused != Some(Event::Focused(true))).then_some("without the keyboard")
        }
    }
}

/// Returns an unmet condition for choosing Allow with the pointer, if there is one.
fn unpointed(earlier: History<'_>, began: u32) -> Option<&'static str> {
    let left = earlier.iter().rposition(|(_, event)| *event == Event::OffAllow);
    let arrived = left.map_or(0, |at| at + 1);
    let points: Vec<(usize, u32, (i32, i32))> = earlier
        .iter()
        .enumerate()
        .skip(arrived)
        .filter_map(
            |(at, (moment, event))| {
                if let Event::OnAllow(x, y) = event { Some((at, *moment, (*x, *y))) } else { None }
            },
        )
        .collect();
    match points.first() {
        None => return Some("not on Allow"),
        Some((_, came, _)) if came + ms(HOVER) > began => return Some("not long enough on Allow"),
        Some(_) => {}
    }
    // Movement counts after the rest period that follows the last disturbance. A valid press is not a disturbance here.
    // After a press on another control, movement counts immediately.
    let reset = (0..earlier.len()).rev().find(|at| {
        let (moment, event) = earlier[*at];
        let counted = || unarmed(&earlier[..*at], InputDevice::Pointer, moment).is_none();
        disturbs(&event) && !(event == Event::Down(InputDevice::Pointer) && counted())
    });
    let (first, from) = match reset {
        None => (0, ms(REST)),
        Some(at) if deliberate(earlier, at) => (at + 1, earlier[at].0),
        Some(at) => (at + 1, earlier[at].0 + ms(REST)),
    };
    let counts = |at: usize, moment: u32| at >= first && moment >= from;
    // Movement is measured from the first point at which it counts, or from any later point.
    let start = points.iter().rposition(|(at, moment, _)| !counts(*at, *moment)).unwrap_or(0);
    let measured = points.get(start..).unwrap_or(&[]);
    let goes_far = measured.iter().enumerate().any(|(number, (_, _, from))| {
        measured[number + 1..].iter().any(|(at, moment, to)| {
            counts(*at, *moment) && from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)) >= TRAVEL
        })
    });
    if goes_far { None } else { Some("no movement on Allow") }
}

/// Returns an unmet condition for choosing Allow with a finger, if there is one.
fn untouched(earlier: History<'_>) -> Option<&'static str> {
    let Some(last) = earlier.iter().rposition(|(_, event)| disturbs(event)) else {
        return Some("no first touch");
    };
    let (_, event) = earlier[last];
    if event == Event::Down(InputDevice::Touch) && follows_a_choice(earlier, last) {
        None
    } else {
        Some("no first touch after a rest")
    }
}

/// Returns `true` if this event is a press on another control of the dialog, or a change that such a press caused.
fn deliberate(history: History<'_>, at: usize) -> bool {
    let (moment, event) = history[at];
    if event == Event::Inside {
        return follows_a_choice(history, at);
    }
    let pressed = history[..at].iter().rfind(|(_, event)| *event == Event::Inside);
    event == Event::Changed
        && pressed.is_some_and(|(pressed, _)| moment - pressed < ms(REST))
        && disturbance_before(history, at).is_some_and(|at| deliberate(history, at))
}

/// Returns `true` if this index follows a rest period, with at most presses on other controls and the changes they
/// caused in between.
fn follows_a_choice(history: History<'_>, at: usize) -> bool {
    let (moment, _) = history[at];
    match disturbance_before(history, at) {
        None => moment >= ms(REST),
        Some(before) => moment - history[before].0 >= ms(REST) || deliberate(history, before),
    }
}

fn disturbance_before(history: History<'_>, at: usize) -> Option<usize> {
    history[..at].iter().rposition(|(_, event)| disturbs(event))
}

fn disturbs(event: &Event) -> bool {
    matches!(event, Event::Press | Event::Inside | Event::Changed | Event::Down(_) | Event::Action)
}

/// Returns the press that belongs to a release. For a repeating key, this is the first press since the last release.
fn press_of(before: History<'_>, by: InputDevice) -> Option<usize> {
    let from = before.iter().rposition(|(_, event)| match by {
        InputDevice::Key => matches!(event, Event::Up(InputDevice::Key) | Event::Focused(false)),
        InputDevice::Pointer | InputDevice::Touch => *event == Event::Up(by),
    });
    let from = from.map_or(0, |at| at + 1);
    let is_its = |(_, event): &(u32, Event)| *event == Event::Down(by);
    let pressed = match by {
        InputDevice::Key => before[from..].iter().position(is_its),
        InputDevice::Pointer | InputDevice::Touch => before[from..].iter().rposition(is_its),
    };
    pressed.map(|at| from + at)
}

fn ms(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_millis()).expect("less than a second")
}
