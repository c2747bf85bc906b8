//! Tests every way to allow a call, attempts to bypass the conditions, and random sequences of events.

mod oracle;

use super::*;
use oracle::missing;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

/// Events with their times, in milliseconds after the dialog opened.
type Events = Vec<(u32, Event)>;

/// Returns `true` if one of the events allows the call.
fn run(slow: bool, events: &[(u32, Event)]) -> bool {
    let start = Instant::now();
    let mut arming = Arming::new(slow, start);
    events.iter().any(|(at, event)| arming.on(*event, start + MS * *at) == Effect::Allowed)
}

/// Returns the times at which a press of Allow is not accepted.
fn ignored(events: &[(u32, Event)]) -> Vec<u32> {
    let start = Instant::now();
    let mut arming = Arming::new(false, start);
    let ignored = events
        .iter()
        .filter(|(at, event)| arming.on(*event, start + MS * *at) == Effect::Ignored)
        .map(|(at, _)| *at);
    ignored.collect()
}

const READ: (u32, Event) = (10, Event::Read(true));

/// Returns the events of a pointer that arrives on Allow at `came`, moves at `moved` and clicks at `pressed`.
fn click(came: u32, moved: u32, pressed: u32) -> Events {
    vec![
        READ,
        (came, Event::OnAllow(100, 100)),
        (moved, Event::OnAllow(112, 100)),
        (pressed, Event::Down(InputDevice::Pointer)),
        (pressed + 50, Event::Up(InputDevice::Pointer)),
    ]
}

#[test]
fn moving_on_allow_after_the_rest_and_clicking_allows() {
    let mut click = click(850, 900, 1200);
    assert!(run(false, &click));
    assert!(!run(true, &click), "too short where it has to be held");
    click[4].0 = 1900;
    assert!(run(true, &click));
}

#[test]
fn early_or_short_movement_does_not_choose_allow() {
    assert!(!run(false, &click(700, 790, 1500)), "before");
    let mut short = click(900, 950, 1500);
    short[2].1 = Event::OnAllow(108, 108);
    assert!(!run(false, &short), "11 pixels");
    short[2].1 = Event::OnAllow(108, 109);
    assert!(run(false, &short), "12 pixels");
    // The small movements of a trembling hand do not add up to the required distance.
    let mut trembles: Events = vec![READ, (900, Event::OnAllow(100, 100))];
    trembles.extend((1..20).map(|n| (900 + n * 10, Event::OnAllow(100 + (n as i32 % 2) * 8, 100))));
    trembles.extend([(1500, Event::Down(InputDevice::Pointer)), (1550, Event::Up(InputDevice::Pointer))]);
    assert!(!run(false, &trembles));
}

#[test]
fn a_resting_pointer_chooses_allow_by_moving_after_the_rest() {
    let still = [READ, (20, Event::OnAllow(100, 100)), (30, Event::OnAllow(120, 100))];
    let press = |at| [(at, Event::Down(InputDevice::Pointer)), (at + 50, Event::Up(InputDevice::Pointer))];
    assert!(!run(false, &[&still[..], &press(5000)].concat()));
    let moved = [(1000, Event::OnAllow(107, 100)), (1040, Event::OnAllow(100, 100))];
    assert!(run(false, &[&still[..], &moved, &press(1400)].concat()));
}

#[test]
fn an_early_press_only_restarts_the_rest() {
    // In a measurement, a fast user pressed Allow 0.38 s after the dialog opened.
    let mut quick = click(300, 320, 380);
    assert_eq!(ignored(&quick), [380]);
    quick.extend([(1100, Event::Down(InputDevice::Pointer)), (1150, Event::Up(InputDevice::Pointer))]);
    assert!(!run(false, &quick), "0.72 s later");
    quick.extend([
        (1950, Event::OnAllow(124, 100)),
        (2000, Event::Down(InputDevice::Pointer)),
        (2050, Event::Up(InputDevice::Pointer)),
    ]);
    assert!(run(false, &quick), "the pointer never left Allow");
}

#[test]
fn a_click_one_second_after_a_press_in_the_dialog_allows() {
    let chosen = |first: u32, press: Event| {
        let mut events: Events = vec![READ, (first, press), (first + 60, Event::Changed)];
        events.extend([
            (first + 500, Event::OnAllow(100, 100)),
            (first + 560, Event::OnAllow(115, 100)),
            (first + 1000, Event::Down(InputDevice::Pointer)),
            (first + 1060, Event::Up(InputDevice::Pointer)),
        ]);
        events
    };
    assert!(run(false, &chosen(2000, Event::Inside)));
    assert!(!run(false, &chosen(2000, Event::Press)), "a key, another button: not deliberate");
    assert!(!run(false, &chosen(500, Event::Inside)), "a click as the dialog opened is not deliberate");
    // Two clicks on choices in quick succession.
    let mut two = chosen(2000, Event::Inside);
    two.insert(1, (1700, Event::Inside));
    assert!(run(false, &two));
    // A change long after a press is not attributed to that press.
    let mut late = chosen(2000, Event::Inside);
    late[2] = (2900, Event::Changed);
    late.sort_by_key(|(at, _)| *at);
    assert!(!run(false, &late));
}

#[test]
fn rapid_clicks_are_all_ignored() {
    let mut events: Events = vec![READ, (1000, Event::Inside), (1400, Event::OnAllow(100, 100))];
    events.push((1450, Event::OnAllow(120, 100)));
    for n in 0..10 {
        events.push((1600 + n * 600, Event::Down(InputDevice::Pointer)));
        events.push((1660 + n * 600, Event::Up(InputDevice::Pointer)));
    }
    assert!(!run(false, &events));
    assert_eq!(ignored(&events).len(), 10, "and each is reported");
}

#[test]
fn alt_a_allows_after_a_key_focused_allow() {
    let press = [
        READ,
        (100, Event::Focused(true)),
        (1000, Event::Press),
        (1000, Event::Keyed(true)),
        (1900, Event::Down(InputDevice::Key)),
        (1930, Event::Down(InputDevice::Key)),
        (1950, Event::Up(InputDevice::Key)),
    ];
    assert!(run(false, &press));
    assert!(!run(true, &press));
    let mut held = press;
    held[6].0 = 2600;
    assert!(run(true, &held));
}

#[test]
fn a_repeating_key_is_one_press_even_after_the_rest() {
    let held = [
        READ,
        (100, Event::Focused(true)),
        (150, Event::Keyed(true)),
        (200, Event::Down(InputDevice::Key)),
        (1900, Event::Down(InputDevice::Key)),
        (2900, Event::Up(InputDevice::Key)),
    ];
    assert!(!run(false, &held) && !run(true, &held));
    assert_eq!(ignored(&held), [200], "it is reported once");
}

#[test]
fn every_step_is_required() {
    let whole = click(850, 900, 1200);
    for missing in 0..whole.len() {
        let mut events = whole.clone();
        events.remove(missing);
        assert!(!run(false, &events), "without {:?}", whole[missing]);
    }
}

#[test]
fn any_event_in_between_restarts_the_rest() {
    let between = [
        Event::Press,
        Event::Inside,
        Event::Changed,
        Event::InView(InView::Covered),
        Event::InView(InView::OffScreen),
        Event::Read(false),
        Event::Slow(true),
        Event::Down(InputDevice::Key),
        Event::Down(InputDevice::Touch),
        Event::Action,
        Event::OffAllow,
    ];
    for event in between {
        for at in [1100, 1220] {
            let mut events = click(850, 900, 1200);
            events.push((at, event));
            events.sort_by_key(|(at, _)| *at);
            assert!(!run(false, &events), "{event:?} at {at}");
        }
    }
}

#[test]
fn uncovering_the_dialog_restarts_the_rest() {
    let covered = |gone: u32| {
        let mut events = click(1500, 1550, 3000);
        events.extend([(600, Event::InView(InView::Covered)), (gone, Event::InView(InView::Whole))]);
        // The pointer moves on Allow until the click.
        events.extend((0..20).map(|n| (1600 + n * 70, Event::OnAllow(100 + (n as i32 % 2) * 15, 100))));
        events.sort_by_key(|(at, _)| *at);
        run(false, &events)
    };
    assert!(!covered(2990));
    assert!(!covered(2300));
    assert!(covered(2100), "the user sees all of it and waits");
}

#[test]
fn touch_allows_with_a_second_touch_after_another_rest() {
    let touch = |at| [(at, Event::Down(InputDevice::Touch)), (at + 50, Event::Up(InputDevice::Touch))];
    let touches = |first, second| [&[READ][..], &touch(first), &touch(second)].concat();
    assert!(!run(false, &touches(900, 1650)), "too soon");
    assert!(!run(false, &touches(700, 1600)), "the first was before the rest");
    assert!(run(false, &touches(900, 1750)));
    assert!(!run(true, &touches(900, 1750)), "not held");
    assert_eq!(ignored(&touches(900, 1750)), [900]);
}

#[test]
fn a_screen_reader_press_requires_a_rest_after_a_repeating_key() {
    let held = [
        READ,
        (20, Event::Focused(true)),
        (900, Event::Keyed(true)),
        (1800, Event::Down(InputDevice::Key)),
        (2500, Event::Down(InputDevice::Key)),
        (2700, Event::Action),
    ];
    assert!(!run(false, &held));
    let rested = [held[0], held[1], held[2], held[3], held[4], (3300, Event::Action)];
    assert!(run(false, &rested));
}

#[test]
fn stages_follow_the_user_from_opening_to_allow() {
    let start = Instant::now();
    let at = |ms: u32| start + MS * ms;
    let mut arming = Arming::new(true, start);
    let mut tell = |ms: u32, event: Event, shown: u32| {
        let effect = arming.on(event, at(ms));
        (effect, arming.stage(at(shown)))
    };
    let nothing = |stage| (Effect::Nothing, stage);
    assert_eq!(tell(0, Event::Keyed(false), 5000), nothing(Stage::Unread));
    assert_eq!(tell(10, Event::Read(true), 20), nothing(Stage::Resting(at(10), at(810))));
    assert_eq!(tell(20, Event::Read(true), 810), nothing(Stage::Waiting));
    assert_eq!(tell(820, Event::InView(InView::Covered), 900), nothing(Stage::Covered));
    assert_eq!(tell(950, Event::InView(InView::OffScreen), 960), nothing(Stage::OffScreen));
    let _ = tell(1000, Event::InView(InView::Whole), 1000);
    assert_eq!(tell(1100, Event::OnAllow(0, 0), 1800), nothing(Stage::MovePointer));
    let _ = tell(1700, Event::OffAllow, 1800);
    assert_eq!(tell(1800, Event::OnAllow(0, 0), 1800), nothing(Stage::MovePointer));
    assert_eq!(tell(1900, Event::OnAllow(9, 9), 1900), nothing(Stage::Resting(at(1800), at(2050))));
    assert_eq!(tell(1950, Event::OnAllow(9, 9), 2050), nothing(Stage::Armed(InputDevice::Pointer)));
    assert_eq!(
        tell(2200, Event::Down(InputDevice::Pointer), 2300),
        nothing(Stage::Holding(at(2200), at(2900)))
    );
    assert_eq!(tell(2250, Event::Focused(true), 2900), nothing(Stage::Release));
    assert_eq!(tell(2300, Event::Up(InputDevice::Pointer), 3100).0, Effect::Ignored, "let go too early");
    // Allow is still chosen, so the next press requires only a rest period.
    assert_eq!(tell(2310, Event::Keyed(false), 3000), nothing(Stage::Armed(InputDevice::Pointer)));
    let _ = tell(3000, Event::Down(InputDevice::Pointer), 3000);
    assert_eq!(tell(3700, Event::Up(InputDevice::Pointer), 3700).0, Effect::Allowed);
}

fn event() -> impl Strategy<Value = Event> {
    use super::InView as View;
    use Event::{
        Action, Changed, Down, Focused, InView, Inside, Keyed, OffAllow, OnAllow, Press, Read, Slow, Up,
    };
    use View::{Covered, OffScreen, Whole};
    // Generates events that lead to Allow more often, so that some sequences allow the call.
    prop_oneof![
        2 => prop::sample::select(vec![Changed, Press, Inside, Inside, Action, Slow(true), Slow(false)]),
        2 => prop::sample::select(vec![InView(Whole), InView(Whole), InView(Covered), InView(OffScreen), Focused(true), Focused(true), Focused(false)]),
        3 => prop::sample::select(vec![Read(true), Read(true), Read(true), Read(false), Keyed(true), Keyed(true), Keyed(false)]),
        4 => prop::sample::select(vec![OnAllow(0, 0), OnAllow(9, 0), OnAllow(20, 0), OnAllow(20, 0), OffAllow]),
        6 => prop::sample::select(vec![Down(InputDevice::Pointer), Up(InputDevice::Pointer), Down(InputDevice::Key), Up(InputDevice::Key), Down(InputDevice::Touch), Up(InputDevice::Touch)]),
    ]
}

/// Generates events with their times.
fn history() -> impl Strategy<Value = Events> {
    let steps = prop::collection::vec((prop::sample::select(vec![0_u32, 40, 300, 720, 810]), event()), 1..40);
    steps.prop_map(|steps| {
        let mut now = 0;
        let timed = steps.into_iter().map(|(wait, event)| {
            now += wait;
            (now, event)
        });
        timed.collect()
    })
}

/// Returns events that release every press, then report the dialog as read and in view.
fn calm(at: u32) -> Events {
    let ends = [InputDevice::Pointer, InputDevice::Touch, InputDevice::Key].map(Event::Up);
    let rest = [Event::Read(true), Event::InView(InView::Whole), Event::Slow(false)];
    ends.into_iter().chain(rest).map(|event| (at, event)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Checks that all conditions hold whenever a sequence allows the call.
    #[test]
    fn no_sequence_allows_without_every_condition(slow: bool, events in history()) {
        let start = Instant::now();
        let mut arming = Arming::new(slow, start);
        for (number, (now, event)) in events.iter().enumerate() {
            if arming.on(*event, start + MS * *now) == Effect::Allowed {
                let before = &events[..number];
                let problem = missing(slow, before, *now, *event);
                prop_assert!(problem.is_none(), "{} in {before:?}, then {event:?} at {now}", problem.unwrap_or(""));
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Checks that after any sequence, a user can allow by pausing, moving the pointer on Allow and clicking, without
    /// leaving Allow first.
    #[test]
    fn the_pointer_can_allow_after_any_sequence(slow: bool, mut events in history(), came in 0_i32..30) {
        let last = events.last().map_or(0, |(at, _)| *at);
        events.extend(calm(last));
        events.push((last, Event::OnAllow(came, 0)));
        prop_assume!(!run(slow, &events));
        events.extend([
            (last + 810, Event::OnAllow(came + 60, 0)),
            (last + 1100, Event::Down(InputDevice::Pointer)),
            (last + 1160, Event::Up(InputDevice::Pointer)),
        ]);
        prop_assert!(run(slow, &events), "{events:?}");
    }

    /// Checks that after any sequence, a user who clicks a choice and waits a second can allow.
    #[test]
    fn the_pointer_can_allow_after_any_sequence_and_a_choice(slow: bool, mut events in history()) {
        let last = events.last().map_or(0, |(at, _)| *at);
        events.extend(calm(last));
        events.push((last, Event::OffAllow));
        prop_assume!(!run(slow, &events));
        events.extend([
            (last + 900, Event::Inside),
            (last + 960, Event::Changed),
            (last + 1500, Event::OnAllow(0, 0)),
            (last + 1550, Event::OnAllow(60, 0)),
            (last + 1900, Event::Down(InputDevice::Pointer)),
            (last + 1960, Event::Up(InputDevice::Pointer)),
        ]);
        prop_assert!(run(slow, &events), "{events:?}");
    }
}

#[test]
fn random_sequences_allow_in_every_way() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut yeses = [0; 3];
    for _ in 0..8000 {
        let events = history().new_tree(&mut runner).expect("a sequence").current();
        let start = Instant::now();
        let mut arming = Arming::new(false, start);
        let yes = events
            .iter()
            .find(|(at, event)| arming.on(*event, start + MS * *at) == Effect::Allowed)
            .map(|(_, event)| *event);
        match yes {
            Some(Event::Up(InputDevice::Pointer)) => yeses[0] += 1,
            Some(Event::Up(InputDevice::Touch)) => yeses[1] += 1,
            Some(_) => yeses[2] += 1,
            None => {}
        }
    }
    assert!(yeses.iter().all(|number| *number > 5), "pointer, finger, key: {yeses:?}");
}
