//! A question as a page of the system's web engine, for systems without a native dialog of ours.
//!
//! - Drawn from the same [`ConsentView`] and judged by the same [`Arming`]: the page tells what happens in it, and decides nothing.
//! - INVARIANT: what it tells counts in its order. Where something is missing or comes twice, it is a press of something else.
//! - What was read is judged here, by [`ReadExtent`], from what the page measures; it has no more room than the system says its window has.
//! - INVARIANT: nothing here knows that the window is covered, so Allow is held, for everything but reading one file.

use super::DialogResult;
use super::arming::{Arming, By, Effect, Event};
use super::clock::{Countdown, waiting_words};
use super::hint;
use super::reading::{Extent, ReadExtent};
use super::view::{ConsentView, allow_words};
use ironcurtain_consent::{Answer, DenialReach, Lifetime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The time that is left when screen readers are told of it.
const SOON: Duration = Duration::from_secs(10);

/// One question on a page.
#[derive(Debug)]
pub(super) struct Page {
    /// Tells it from every other, of the same question too.
    number: u64,
    view: ConsentView,
    arming: Arming,
    countdown: Countdown,
    offer: usize,
    lifetime: Lifetime,
    /// The number of what the page tells next.
    next: u64,
    pressed: Option<Instant>,
    /// The number of presses of Allow that did not count.
    ignored: u64,
    more: usize,
    /// Allow stands where Deny did on the page before.
    mirrored: bool,
    reading: ReadExtent,
    /// The last measure of the page: the extent of what has to be read, and the height above the room.
    measure: Option<(Extent, f64)>,
    /// The height of its window, by the system; nothing is read before that is known.
    tall: f64,
    over: bool,
}

/// One thing that happened on the page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Did {
    /// It scrolled, or its size changed: what lies above the room, the room, and the height of what has to be read.
    LaidOut { above: f64, room: f64, height: f64 },
    /// Something else of it moved or changed.
    Changed,
    /// The pointer moved in it.
    Moved,
    /// The pointer is on Allow, at this point of the screen.
    OnAllow { x: i32, y: i32 },
    /// The pointer left Allow.
    OffAllow,
    /// A key brought the focus to Allow, or it went away.
    Keyed { on: bool },
    /// A press of the pointer's first button, or of a finger, on anything but Allow.
    Inside,
    /// A press of any other button or key.
    Press,
    /// A press of Allow begins.
    Down { by: By },
    /// A press of Allow ends, on it.
    Up { by: By },
    /// Another thing to allow, or another time, by their places in the view.
    Choose { offer: usize, lifetime: usize },
    /// Deny.
    Deny { note: String, reach: Reach },
}

/// The calls that a no is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    Call,
    Waiting,
    Session,
    Pause,
}

/// All that the page draws once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Drawn {
    #[serde(flatten)]
    view: ConsentView,
    /// The words for the times of each choice.
    times: Vec<Vec<&'static str>>,
    mirrored: bool,
}

/// All that changes on the page.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changing {
    /// The next thing to do, in words.
    hint: &'static str,
    /// The part of the ring that is full, from 0 to 1.
    filled: f64,
    /// A press of Allow counts, or is held.
    armed: bool,
    /// The number of presses of Allow that did not count: when it grows, the page says so.
    ignored: u64,
    /// The time after which to ask again, in milliseconds.
    again_ms: u64,
    clock: String,
    soon: bool,
    allow: String,
    outcome: String,
    more: usize,
}

impl Page {
    /// A page that opens now.
    pub(super) fn new(
        number: u64,
        view: ConsentView,
        countdown: Countdown,
        mirrored: bool,
        now: Instant,
    ) -> Self {
        let lifetime = view.choices.first().and_then(|choice| choice.lifetimes.first());
        Self {
            number,
            lifetime: lifetime.copied().unwrap_or(Lifetime::Once),
            view,
            arming: Arming::new(true, now),
            countdown,
            offer: 0,
            next: 0,
            pressed: None,
            ignored: 0,
            more: 0,
            mirrored,
            reading: ReadExtent::default(),
            measure: None,
            tall: 0.0,
            over: false,
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn id(&self) -> &str {
        &self.view.id
    }

    pub(super) fn title(&self) -> String {
        self.view.sentence()
    }

    pub(super) fn is_mirrored(&self) -> bool {
        self.mirrored
    }

    pub(super) fn pressed(&self) -> Option<Instant> {
        self.pressed
    }

    pub(super) fn set_more(&mut self, more: usize) {
        self.more = more;
    }

    /// All that it draws once.
    pub(super) fn drawn(&self) -> Drawn {
        let words = |times: &[Lifetime]| times.iter().map(|time| time.words()).collect();
        let times = self.view.choices.iter().map(|choice| words(&choice.lifetimes)).collect();
        Drawn { view: self.view.clone(), times, mirrored: self.mirrored }
    }

    /// All that changes.
    pub(super) fn changing(&mut self, now: Instant) -> Changing {
        let slow = self.needs_holding();
        let _ = self.arming.on(Event::Slow(slow), now);
        let left = self.countdown.left(now);
        let stage = self.arming.stage(now);
        let (filled, again) = hint::ring(stage, now);
        let second = Duration::from_millis(u64::from(left.subsec_millis()) + 5);
        let again = again.map_or(second, |again| again.min(second));
        Changing {
            hint: hint::words(stage, slow),
            filled,
            armed: hint::counts(stage),
            ignored: self.ignored,
            again_ms: u64::try_from(again.as_millis()).unwrap_or(0),
            clock: waiting_words(left),
            soon: left <= SOON,
            allow: allow_words(self.lifetime).replace('_', ""),
            outcome: self.view.outcome(self.offer, self.lifetime),
            more: self.more,
        }
    }

    /// Takes in what the page tells. Returns the outcome of the question, if that was one, and if the person is at work.
    pub(super) fn on(&mut self, number: u64, did: Did, now: Instant) -> (Option<DialogResult>, bool) {
        if self.over {
            return (None, false);
        }
        if self.countdown.is_over(now) {
            return (self.end(DialogResult::TimedOut), false);
        }
        let in_turn = number == self.next;
        self.next = number.saturating_add(1);
        // A no needs no proof.
        if !in_turn && !matches!(did, Did::Deny { .. }) {
            return (self.tell(Event::Press, now), self.countdown.work(now));
        }
        let event = match did {
            Did::Moved => return (None, self.countdown.work(now)),
            Did::Choose { offer, lifetime } => {
                let chosen = self.view.choices.get(offer).and_then(|choice| choice.lifetimes.get(lifetime));
                if let Some(lifetime) = chosen.copied() {
                    (self.offer, self.lifetime) = (offer, lifetime);
                }
                Event::Changed
            }
            Did::Deny { note, reach } => {
                self.pressed = Some(now);
                let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
                let no = Answer::Deny { note, reach: reach.into() };
                return (self.end(DialogResult::Answered(no)), false);
            }
            Did::LaidOut { above, room, height } => {
                self.measure = Some((Extent { height, room }, above));
                self.look_if_read(now);
                Event::Changed
            }
            Did::Changed => Event::Changed,
            Did::OnAllow { x, y } => Event::OnAllow(x, y),
            Did::OffAllow => Event::OffAllow,
            Did::Keyed { on } => Event::Keyed(on),
            Did::Inside => Event::Inside,
            Did::Press => Event::Press,
            Did::Down { by } => Event::Down(by),
            Did::Up { by } => Event::Up(by),
        };
        (self.tell(event, now), self.countdown.work(now))
    }

    /// Takes in what the system tells of the window.
    pub(super) fn window(&mut self, event: Event, now: Instant) {
        let _ = self.arming.on(event, now);
    }

    /// Takes in how tall the system says that the window is, in the page's own measure.
    pub(super) fn sized(&mut self, tall: f64, now: Instant) {
        self.tall = tall;
        self.look_if_read(now);
    }

    fn look_if_read(&mut self, now: Instant) {
        let Some((Extent { height, room }, above)) = self.measure else { return };
        if let Some(is_read) = self.reading.look(Extent { height, room: room.min(self.tall) }, above) {
            let _ = self.arming.on(Event::Read(is_read), now);
        }
    }

    /// The no of whoever closes the window.
    pub(super) fn close(&mut self) -> Option<DialogResult> {
        self.end(DialogResult::Answered(Answer::Deny { note: None, reach: DenialReach::Call }))
    }

    /// The outcome of a question that nobody answered in time.
    pub(super) fn late(&mut self, now: Instant) -> Option<DialogResult> {
        let is_late = !self.over && self.countdown.is_over(now);
        if is_late { self.end(DialogResult::TimedOut) } else { None }
    }

    fn tell(&mut self, event: Event, now: Instant) -> Option<DialogResult> {
        if matches!(event, Event::Inside | Event::Press | Event::Down(_) | Event::Up(_)) {
            self.pressed = Some(now);
        }
        let _ = self.arming.on(Event::Slow(self.needs_holding()), now);
        match self.arming.on(event, now) {
            Effect::Nothing => None,
            Effect::Ignored => {
                self.ignored += 1;
                None
            }
            Effect::Allowed => {
                let (offer, lifetime) = (self.offer, self.lifetime);
                self.end(DialogResult::Answered(Answer::Allow { offer, lifetime }))
            }
        }
    }

    fn end(&mut self, result: DialogResult) -> Option<DialogResult> {
        (!std::mem::replace(&mut self.over, true)).then_some(result)
    }

    fn needs_holding(&self) -> bool {
        !self.view.choices.get(self.offer).is_some_and(|choice| choice.reads_one_file)
    }
}

impl From<Reach> for DenialReach {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::Call => Self::Call,
            Reach::Waiting => Self::Waiting,
            Reach::Session => Self::Session,
            Reach::Pause => Self::Pause,
        }
    }
}

#[cfg(test)]
mod tests;
