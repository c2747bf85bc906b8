//! Scenes of accidental input while a dialog opens or closes, followed by a deliberate answer.

use super::Try;
use super::user_input::{Act, Desk, Press, Spot};
use crate::harness::{DIALOG, Harness};
use Act::{Click, Down, Key, KeysDown, KeysUp, Move, Up, Wait};
use std::time::{Duration, Instant};

/// Duration of a scene's accidental input, in milliseconds.
const LENGTH: u64 = 2600;
/// Delay between the start of the accidental input and the question.
const BEFORE: Duration = Duration::from_millis(300);
/// A point far from every dialog.
const FAR: (i32, i32) = (25, 770);

/// Label of the button that shows both calls together.
const TWO: &str = "See all 2 together";

/// A kind of accidental input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    Clicks,
    DoubleClicks,
    Parked,
    HeldPress,
    Jumps,
    AfterAnAnswer,
    TwoInARow,
    EarlyKeys,
    HeldKeys,
    TypingElsewhere,
    LateFocus,
    Covered,
    Uncovered,
    FullScreen,
    OtherWorkspace,
    Minimized,
    Together,
}

pub(crate) const SCENES: [Scene; 17] = [
    Scene::Clicks,
    Scene::DoubleClicks,
    Scene::Parked,
    Scene::HeldPress,
    Scene::Jumps,
    Scene::AfterAnAnswer,
    Scene::TwoInARow,
    Scene::EarlyKeys,
    Scene::HeldKeys,
    Scene::TypingElsewhere,
    Scene::LateFocus,
    Scene::Covered,
    Scene::Uncovered,
    Scene::FullScreen,
    Scene::OtherWorkspace,
    Scene::Minimized,
    Scene::Together,
];

/// Positions of the controls in the first dialog, in the second dialog and in the batch dialog for two calls.
pub(crate) struct Spots {
    first: Spot,
    second: Spot,
    together: Spot,
}

impl Spots {
    /// Opens each dialog and determines the positions of its controls.
    pub(crate) fn look(desk: &Desk) -> Self {
        let mut harness = Harness::start(&desk.screen, &["dialog"]);
        harness.order("ask write q1 60000");
        harness.order("ask write q2 60000");
        let first = desk.look(DIALOG);
        harness.order("withdraw q1");
        assert_eq!(harness.event(), "q1 dropped");
        let second = crate::screen::until("the second dialog", || {
            Some(desk.look(DIALOG)).filter(|second| second.allow.0 != first.allow.0)
        });
        drop(harness);
        let harness = two(desk);
        desk.screen.press(DIALOG, "push button", TWO);
        let together = desk.look("read 2 files$");
        drop(harness);
        Self { first, second, together }
    }
}

impl Scene {
    /// Plays the scene. If `meant` is `true`, answers deliberately afterwards.
    pub(crate) fn run(self, desk: &mut Desk, spots: &Spots, pace: u64, meant: bool) -> Try {
        let name = format!("{}: {self:?}, every {pace} ms", desk.manager);
        desk.act(&[Move(FAR.0, FAR.1)]);
        let mut harness = Harness::start(&desk.screen, &["dialog"]);
        if self == Self::Together {
            harness = two(desk);
        }
        let others = self.play(desk, spots, pace, &mut harness);
        let events = harness.events_until_idle();
        let allows = events.iter().filter(|event| event.contains(" allow ")).count();
        let accident = allows > usize::from(self == Self::AfterAnAnswer);
        drop(others);
        let meant = (meant && !accident).then(|| {
            let left = if self == Self::AfterAnAnswer || self == Self::TwoInARow { "q2" } else { "q1" };
            if events.iter().any(|event| event.starts_with(left)) {
                drop(harness);
                harness = Harness::start(&desk.screen, &["dialog"]);
                harness.order("ask write q1 60000");
                desk.look(DIALOG);
                return self.mean(desk, spots.first, &harness);
            }
            let spot = match self {
                Self::Together => spots.together,
                Self::AfterAnAnswer | Self::TwoInARow => spots.second,
                Self::Clicks
                | Self::DoubleClicks
                | Self::Parked
                | Self::HeldPress
                | Self::Jumps
                | Self::EarlyKeys
                | Self::HeldKeys
                | Self::TypingElsewhere
                | Self::LateFocus
                | Self::Covered
                | Self::Uncovered
                | Self::FullScreen
                | Self::OtherWorkspace
                | Self::Minimized => spots.first,
            };
            self.mean(desk, spot, &harness)
        });
        Try { name, accident, meant }
    }

    /// Performs the accidental input. Returns the other windows that are still open.
    fn play(self, desk: &mut Desk, spots: &Spots, pace: u64, harness: &mut Harness) -> Vec<Harness> {
        let ask = |harness: &mut Harness| harness.order("ask write q1 60000");
        let (x, y) = spots.first.allow;
        let clicks = |length: u64| repeated(&[Click, Wait(pace)], length / pace);
        let at_the_spot = [vec![Move(x, y)], clicks(LENGTH)].concat();
        let typing =
            [Key("x"), Wait(pace), Key("alt+a"), Wait(pace), Key("Tab"), Wait(pace), Key("y"), Wait(pace)];
        match self {
            Self::Clicks => during(desk, &at_the_spot, || ask(harness)),
            Self::DoubleClicks => {
                let double = repeated(&[Click, Wait(60), Click, Wait(pace.max(300))], LENGTH / pace.max(300));
                during(desk, &[vec![Move(x, y)], double].concat(), || ask(harness));
            }
            Self::Parked => {
                during(desk, &[Move(x, y), Wait(1000 + 4 * pace), Click, Wait(300), Click], || ask(harness))
            }
            Self::HeldPress => during(desk, &[Move(x, y), Down, Wait(1500 + pace), Up], || ask(harness)),
            Self::Jumps => {
                let (far_x, far_y) = FAR;
                let half = pace / 2;
                let jump = [Move(far_x, far_y), Click, Wait(half), Move(x, y), Click, Wait(half)];
                during(desk, &repeated(&jump, LENGTH / pace), || ask(harness));
            }
            Self::AfterAnAnswer => {
                ask(harness);
                harness.order("ask write q2 60000");
                desk.look(DIALOG);
                self.mean(desk, spots.first, harness).expect("a deliberate answer");
                desk.act(&clicks(LENGTH));
                return vec![];
            }
            Self::TwoInARow => {
                ask(harness);
                harness.order("ask write q2 60000");
                let (x, y) = if pace.is_multiple_of(100) { spots.second.allow } else { (x, y) };
                during(desk, &[vec![Move(x, y)], clicks(LENGTH)].concat(), || harness.order("withdraw q1"));
            }
            Self::EarlyKeys => {
                during(desk, &repeated(&[Key("alt+a"), Wait(pace)], LENGTH / pace), || {
                    ask(harness);
                    focus_when_shown(desk);
                });
            }
            Self::HeldKeys => during(desk, &[KeysDown, Wait(LENGTH), KeysUp], || {
                ask(harness);
                focus_when_shown(desk);
            }),
            Self::TypingElsewhere => {
                let other = other(desk, &["window"]);
                during(desk, &repeated(&typing, LENGTH / (4 * pace) + 1), || ask(harness));
                return vec![other];
            }
            Self::LateFocus => {
                let mut other = other(desk, &["window"]);
                during(desk, &repeated(&typing, LENGTH / (4 * pace) + 1), || {
                    ask(harness);
                    std::thread::sleep(Duration::from_millis(1200));
                    other.order("close");
                });
            }
            Self::Covered => {
                ask(harness);
                desk.look(DIALOG);
                let cover = desk.cover(spots.first.words);
                let (far_x, far_y) = FAR;
                desk.act(&[Wait(900), Move(far_x, far_y), Move(x, y), Wait(400), Click, Wait(900), Click]);
                desk.focus(DIALOG);
                desk.act(&[Key("Tab"), Wait(900), Key("alt+a"), Wait(900), Key("alt+a")]);
                return vec![cover];
            }
            Self::Uncovered => {
                ask(harness);
                desk.look(DIALOG);
                let cover = desk.cover(spots.first.words);
                desk.act(&[Wait(900), Move(FAR.0, FAR.1), Move(x, y), Wait(900)]);
                drop(cover);
                // The covering window is closed, but the text below it has not been read yet.
                desk.act(&[Click, Wait(pace), Move(x, y), Click]);
            }
            Self::FullScreen => {
                let other = other(desk, &["fullscreen"]);
                during(desk, &at_the_spot, || ask(harness));
                return vec![other];
            }
            Self::OtherWorkspace => {
                during(desk, &at_the_spot, || {
                    ask(harness);
                    desk.workspace(2);
                    std::thread::sleep(Duration::from_millis(700));
                    desk.workspace(1);
                });
            }
            Self::Together => {
                // The input continues on Allow, in the dialog for one question or in the batch dialog.
                let (x, y) = if pace.is_multiple_of(100) { spots.together.allow } else { (x, y) };
                during(desk, &[vec![Move(x, y)], clicks(LENGTH)].concat(), || {
                    // The input may already have denied one of the questions.
                    desk.screen.try_press(DIALOG, "push button", TWO);
                });
            }
            Self::Minimized => {
                ask(harness);
                desk.look(DIALOG);
                during(desk, &at_the_spot, || {
                    desk.minimize(true);
                    std::thread::sleep(Duration::from_millis(700));
                    desk.minimize(false);
                });
            }
        }
        vec![]
    }

    /// Answers deliberately, with two actions: selects Allow and then presses it.
    fn mean(self, desk: &Desk, mut spot: Spot, harness: &Harness) -> Result<Duration, String> {
        let by_key =
            [Self::EarlyKeys, Self::HeldKeys, Self::TypingElsewhere, Self::LateFocus].contains(&self);
        if !by_key {
            // First, waits until a dialog is visible and accepts input.
            desk.act(&[Move(spot.beside.0, spot.beside.1)]);
            desk.wait_until_armable(DIALOG);
            // Then, finds the visible Allow button.
            spot = desk.look(DIALOG);
        }
        if self == Self::OtherWorkspace {
            // The pointer is already on Allow.
            desk.focus(DIALOG);
        }
        let begin = Instant::now();
        if by_key {
            desk.focus_and_wait(DIALOG);
            desk.allow_as_told(DIALOG, Press::Keys)?;
        } else {
            desk.allow_as_told(DIALOG, Press::Button(spot))?;
        }
        match harness.event_within(Duration::from_secs(2)) {
            Some(event) if event.contains(" allow ") => Ok(begin.elapsed()),
            Some(other) => Err(other),
            None => {
                let all = desk.screen.controls(DIALOG);
                let allow = all.into_iter().find(|one| one.name.starts_with("Allow "));
                Err(format!("Allow says: {:?}", allow.map(|allow| (allow.description, allow.place))))
            }
        }
    }
}

/// Asks two questions that can be answered together.
fn two(desk: &Desk) -> Harness {
    let mut harness = Harness::start(&desk.screen, &["dialog"]);
    harness.order("ask file-a q1 60000");
    harness.order("ask file-b q2 60000");
    desk.screen.control(DIALOG, "push button", TWO);
    harness
}

/// Opens another program's window with the keyboard focus.
fn other(desk: &Desk, kind: &[&str]) -> Harness {
    let other = Harness::start(&desk.screen, &[&["other"], kind].concat());
    assert_eq!(other.event(), "ready");
    desk.focus("Another program");
    other
}

/// Focuses the dialog as soon as it is shown.
fn focus_when_shown(desk: &Desk) {
    for _ in 0..6 {
        desk.focus(DIALOG);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Performs actions, and calls `meanwhile` shortly after they start.
fn during(desk: &Desk, acts: &[Act], meanwhile: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(BEFORE);
            meanwhile();
        });
        desk.act(acts);
    });
}

fn repeated(acts: &[Act], times: u64) -> Vec<Act> {
    (0..times.max(1)).flat_map(|_| acts.iter().copied()).collect()
}
