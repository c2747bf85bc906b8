//! Each way to a yes, each way around it, and sequences that nobody thought of.

use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// Events at milliseconds after the dialog opened; returns `true` if one of them was a yes.
fn run(slow: bool, events: &[(u32, Event)]) -> bool {
    let start = Instant::now();
    let mut arming = Arming::new(slow, start);
    events.iter().any(|(at, event)| arming.on(*event, start + MS * *at))
}

const READ: (u32, Event) = (10, Event::Read(true));

#[test]
fn a_pointer_that_is_brought_to_allow_after_the_rest_and_clicks_allows() {
    let click =
        [READ, (900, Event::Pointer(true)), (1200, Event::Down(By::Pointer)), (1250, Event::Up(By::Pointer))];
    assert!(run(false, &click));
    assert!(!run(true, &click), "too short where it has to be held");
    let mut held = click;
    held[3].0 = 1900;
    assert!(run(true, &held));
}

#[test]
fn focus_that_a_key_brought_to_allow_and_alt_a_allow() {
    let press = [
        READ,
        (100, Event::Focused(true)),
        (1000, Event::Press),
        (1000, Event::Keyed(true)),
        (1900, Event::Down(By::Key)),
        (1930, Event::Down(By::Key)),
        (1950, Event::Up(By::Key)),
    ];
    assert!(run(false, &press));
    assert!(!run(true, &press));
    let mut held = press;
    held[6].0 = 2600;
    assert!(run(true, &held));
}

#[test]
fn a_key_that_repeats_itself_later_than_the_rest_is_still_the_same_press() {
    let held = [
        READ,
        (100, Event::Focused(true)),
        (150, Event::Keyed(true)),
        (200, Event::Down(By::Key)),
        (1900, Event::Down(By::Key)),
        (2900, Event::Up(By::Key)),
    ];
    assert!(!run(false, &held) && !run(true, &held));
}

#[test]
fn without_its_part_nothing_allows() {
    let whole =
        [READ, (900, Event::Pointer(true)), (1200, Event::Down(By::Pointer)), (1250, Event::Up(By::Pointer))];
    for missing in 0..whole.len() {
        let mut events = whole.to_vec();
        events.remove(missing);
        assert!(!run(false, &events), "without {:?}", whole[missing]);
    }
}

#[test]
fn whatever_happens_in_between_starts_the_rest_anew() {
    let between = [
        Event::Press,
        Event::Changed,
        Event::InView(false),
        Event::Read(false),
        Event::Slow(true),
        Event::Down(By::Key),
        Event::Action,
        Event::Pointer(false),
    ];
    for event in between {
        for at in [1100, 1220] {
            let mut events = vec![
                READ,
                (900, Event::Pointer(true)),
                (1200, Event::Down(By::Pointer)),
                (1250, Event::Up(By::Pointer)),
            ];
            events.push((at, event));
            events.sort_by_key(|(at, _)| *at);
            assert!(!run(false, &events), "{event:?} at {at}");
        }
    }
}

#[test]
fn a_parked_pointer_never_allows_and_does_once_it_left_and_came_back() {
    let parked =
        [READ, (20, Event::Pointer(true)), (5000, Event::Down(By::Pointer)), (5050, Event::Up(By::Pointer))];
    assert!(!run(false, &parked));
    let back = [
        READ,
        (20, Event::Pointer(true)),
        (1000, Event::Pointer(false)),
        (1100, Event::Pointer(true)),
        (1400, Event::Down(By::Pointer)),
        (1450, Event::Up(By::Pointer)),
    ];
    assert!(run(false, &back));
}

#[test]
fn a_finger_that_jumps_there_allows_with_its_second_touch_after_the_rest() {
    let mut touches = vec![
        READ,
        (900, Event::Pointer(true)),
        (901, Event::Down(By::Pointer)),
        (950, Event::Up(By::Pointer)),
    ];
    assert!(!run(false, &touches));
    touches.extend([(1800, Event::Down(By::Pointer)), (1850, Event::Up(By::Pointer))]);
    assert!(run(false, &touches));
}

#[test]
fn a_screen_readers_press_waits_for_a_rest_after_a_key_that_repeats_itself() {
    let held = [
        READ,
        (20, Event::Focused(true)),
        (900, Event::Keyed(true)),
        (1800, Event::Down(By::Key)),
        (2500, Event::Down(By::Key)),
        (2700, Event::Action),
    ];
    assert!(!run(false, &held));
    let rested = [held[0], held[1], held[2], held[3], held[4], (3300, Event::Action)];
    assert!(run(false, &rested));
}

#[test]
fn the_stages_lead_from_opening_to_the_yes() {
    let start = Instant::now();
    let at = |ms: u32| start + MS * ms;
    let mut arming = Arming::new(true, start);
    assert_eq!(arming.stage(at(5000)), Stage::Unread);
    arming.on(Event::Read(true), at(10));
    assert_eq!(arming.stage(at(20)), Stage::Resting(at(10), at(810)));
    assert_eq!(arming.stage(at(810)), Stage::Waiting);
    arming.on(Event::InView(false), at(820));
    assert_eq!(arming.stage(at(900)), Stage::Covered);
    arming.on(Event::InView(true), at(1000));
    arming.on(Event::Pointer(true), at(1100));
    assert_eq!(arming.stage(at(1800)), Stage::Parked);
    arming.on(Event::Pointer(false), at(1800));
    arming.on(Event::Pointer(true), at(1900));
    assert_eq!(arming.stage(at(1900)), Stage::Resting(at(1900), at(2150)));
    assert_eq!(arming.stage(at(2150)), Stage::Armed(By::Pointer));
    arming.on(Event::Down(By::Pointer), at(2200));
    assert_eq!(arming.stage(at(2300)), Stage::Holding(at(2200), at(2900)));
    assert_eq!(arming.stage(at(2900)), Stage::LetGo);
    assert!(arming.on(Event::Up(By::Pointer), at(2900)));
}

fn event() -> impl Strategy<Value = Event> {
    use Event::{Action, Changed, Down, Focused, InView, Keyed, Pointer, Press, Read, Slow, Up};
    // Those that a yes is made of come oftener, so that there are some.
    prop_oneof![
        2 => prop::sample::select(vec![Changed, Press, Action, Slow(true), Slow(false)]),
        2 => prop::sample::select(vec![InView(true), InView(true), InView(false), Focused(true), Focused(true), Focused(false)]),
        3 => prop::sample::select(vec![Read(true), Read(true), Read(true), Read(false), Pointer(true), Pointer(true), Pointer(false), Keyed(true), Keyed(true), Keyed(false)]),
        6 => prop::sample::select(vec![Down(By::Pointer), Up(By::Pointer), Down(By::Key), Up(By::Key)]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Of whatever sequence: a yes has every one of its parts in the history before it.
    #[test]
    fn no_sequence_without_every_part_of_a_yes_is_one(
        slow: bool,
        steps in prop::collection::vec((prop::sample::select(vec![0_u32, 40, 300, 720, 810]), event()), 1..40),
    ) {
        let start = Instant::now();
        let mut arming = Arming::new(slow, start);
        let mut now = 0;
        let mut before: Vec<(u32, Event)> = Vec::new();
        for (wait, event) in steps {
            now += wait;
            if arming.on(event, start + MS * now) {
                let problem = missing(slow, &before, now, event);
                prop_assert!(problem.is_none(), "{} in {before:?}, then {event:?} at {now}", problem.unwrap_or(""));
            }
            before.push((now, event));
        }
    }
}

#[test]
fn the_random_sequences_have_yeses_among_them() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec((prop::sample::select(vec![0_u32, 40, 300, 720, 810]), event()), 1..40);
    let yeses = (0..4000).filter(|_| {
        let mut now = 0;
        let steps = steps.new_tree(&mut runner).expect("a sequence").current();
        let events: Vec<_> = steps
            .into_iter()
            .map(|(wait, event)| {
                now += wait;
                (now, event)
            })
            .collect();
        run(false, &events)
    });
    assert!(yeses.count() > 20);
}

/// The part of a yes that this history lacks.
fn missing(slow: bool, before: &[(u32, Event)], now: u32, last: Event) -> Option<&'static str> {
    let latest =
        |on: Event, off: Event| before.iter().rev().find(|(_, event)| *event == on || *event == off).copied();
    let (rest, hover, hold) = (REST.as_millis() as u32, HOVER.as_millis() as u32, HOLD.as_millis() as u32);
    let disturbs =
        |event: &Event| matches!(event, Event::Press | Event::Changed | Event::Down(_) | Event::Action);
    let (by, pressed) = match last {
        Event::Action => (By::Key, Some(before.len())),
        Event::Up(by) => {
            // Of a key that repeats itself, the first since it was let go.
            let from = before.iter().rposition(|(_, event)| match by {
                By::Key => matches!(event, Event::Up(By::Key) | Event::Focused(false)),
                By::Pointer => *event == Event::Up(By::Pointer),
            });
            let from = from.map_or(0, |at| at + 1);
            let pressed = match by {
                By::Key => before[from..].iter().position(|(_, event)| *event == Event::Down(by)),
                By::Pointer => before[from..].iter().rposition(|(_, event)| *event == Event::Down(by)),
            };
            let pressed = pressed.map(|at| from + at);
            let own = |event: &Event| by == By::Key && *event == Event::Down(by);
            let after = pressed.map_or(0, |at| at + 1);
            if before[after..].iter().any(|(_, event)| disturbs(event) && !own(event)) {
                return Some("no press to the end");
            }
            (by, pressed)
        }
        Event::Changed
        | Event::Focused(_)
        | Event::InView(_)
        | Event::Read(_)
        | Event::Slow(_)
        | Event::Pointer(_)
        | Event::Keyed(_)
        | Event::Press
        | Event::Down(_) => return Some("neither a release nor a screen reader's press"),
    };
    let Some(pressed) = pressed else { return Some("no press before the release") };
    let began = before.get(pressed).map_or(now, |(at, _)| *at);
    let earlier = &before[..pressed];
    if earlier.iter().any(|(at, event)| disturbs(event) && began - at < rest) || began < rest {
        return Some("no rest before the press");
    }
    if latest(Event::Read(true), Event::Read(false)).is_none_or(|(_, event)| event != Event::Read(true)) {
        return Some("not read");
    }
    if latest(Event::InView(true), Event::InView(false))
        .is_some_and(|(_, event)| event == Event::InView(false))
    {
        return Some("covered");
    }
    let slow =
        latest(Event::Slow(true), Event::Slow(false)).map_or(slow, |(_, event)| event == Event::Slow(true));
    if slow && last != Event::Action && now - began < hold {
        return Some("not held");
    }
    match by {
        By::Pointer => {
            // It may be told again that the pointer is there: it came with the first time since it was away.
            let left = before.iter().rposition(|(_, event)| *event == Event::Pointer(false));
            let since_left = &before[left.map_or(0, |at| at + 1)..];
            match since_left.iter().find(|(_, event)| *event == Event::Pointer(true)) {
                None => Some("not on Allow"),
                Some((came, _)) if *came + hover > began => Some("not long enough on Allow"),
                Some((came, _))
                    if before.iter().any(|(at, event)| disturbs(event) && at < came && at + rest > *came) =>
                {
                    Some("there before the rest")
                }
                Some(_) => None,
            }
        }
        By::Key => {
            let chosen = latest(Event::Keyed(true), Event::Keyed(false));
            let focused = latest(Event::Focused(true), Event::Focused(false));
            match (chosen, focused) {
                (Some((_, Event::Keyed(true))), Some((_, Event::Focused(true)))) => None,
                (Some((_, Event::Keyed(true))), _) => Some("without the keyboard"),
                _ => Some("not on Allow"),
            }
        }
    }
}
