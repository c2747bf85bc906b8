//! Shows a question as a page of the system's web engine, on systems without a native dialog.
//!
//! - The page shows the same [`ConsentView`] as the dialog. It only reports events; [`Arming`] decides.
//! - INVARIANT: reports must arrive in order. A missing or repeated report counts as a press outside Allow.
//! - [`ReadExtent`] uses the page's measurements to determine what was read. The page cannot claim to be taller than
//!   the window, whose height the system reports.
//! - INVARIANT: the page cannot detect covering windows, so Allow must be held, unless it only allows reading one file.

use super::DialogResult;
use super::arming::{Arming, Effect, Event, InputDevice};
use super::clock::{Countdown, format_waiting};
use super::hint;
use super::read_progress::{Extent, ReadExtent};
use super::view::ConsentView;
use ironcurtain_consent::{Answer, DenialReach, Lifetime};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Remaining time at which screen readers announce that time is running out.
const WARN_BEFORE_END: Duration = Duration::from_secs(10);

/// Page that shows one question.
#[derive(Debug)]
pub(super) struct Page {
    /// Number of the page. Another page for the same question has a different number.
    number: u64,
    view: ConsentView,
    arming: Arming,
    countdown: Countdown,
    offer: usize,
    lifetime: Lifetime,
    /// Sequence number expected in the page's next report.
    next: u64,
    pressed: Option<Instant>,
    /// Number of presses of Allow that were not accepted.
    ignored: u64,
    more: usize,
    /// `true` if Allow and Deny are swapped, so that Allow is not at its position on the previous page.
    mirrored: bool,
    reading: ReadExtent,
    /// Latest measurement: the extent of the required text, and the scroll offset.
    measurement: Option<(Extent, f64)>,
    /// Height of the window as reported by the system. Until it is known, nothing counts as read.
    window_height: f64,
    over: bool,
}

/// Event reported by the page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum PageEvent {
    /// The page was scrolled or resized. Contains the scroll offset, the visible height, and the height of the
    /// required text.
    LaidOut { above: f64, room: f64, height: f64 },
    /// Another part of the page moved or changed.
    Changed,
    /// The pointer moved on the page.
    Moved,
    /// The pointer is on Allow, at these screen coordinates.
    OnAllow { x: i32, y: i32 },
    /// The pointer left Allow.
    OffAllow,
    /// `true` if a key moved the focus to Allow, `false` if the focus left it.
    Keyed { on: bool },
    /// The primary button or a finger pressed another part of the page.
    Inside,
    /// Any other button or key was pressed.
    Press,
    /// A press of Allow started.
    Down { by: InputDevice },
    /// A press of Allow was released on Allow.
    Up { by: InputDevice },
    /// The user selected the offer and lifetime with these indices.
    Choose { offer: usize, lifetime: usize },
    /// The user denied the call.
    Deny { note: String, reach: Reach },
}

/// Calls that a denial covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reach {
    Call,
    Waiting,
    Session,
    Pause,
}

/// Static content of the page.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageContent {
    #[serde(flatten)]
    view: ConsentView,
    /// Labels of the lifetimes, for each choice.
    times: Vec<Vec<&'static str>>,
    mirrored: bool,
}

/// Changing content of the page.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageUpdate {
    /// Hint that tells the user what to do next.
    hint: Cow<'static, str>,
    /// Filled fraction of the ring, from 0 to 1.
    filled: f64,
    /// `true` if a press of Allow would be accepted, or an accepted press is being held.
    armed: bool,
    /// Number of presses of Allow that were not accepted. The page flashes when it increases.
    ignored: u64,
    /// Time after which the page must query this content again, in milliseconds.
    again_ms: u64,
    clock: String,
    soon: bool,
    allow: String,
    outcome: String,
    more: usize,
}

impl Page {
    /// Creates the page.
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
            measurement: None,
            window_height: 0.0,
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

    /// Returns the static content.
    pub(super) fn content(&self) -> PageContent {
        let words = |times: &[Lifetime]| times.iter().map(|time| time.label()).collect();
        let times = self.view.choices.iter().map(|choice| words(&choice.lifetimes)).collect();
        PageContent { view: self.view.clone(), times, mirrored: self.mirrored }
    }

    /// Returns the changing content.
    pub(super) fn update(&mut self, now: Instant) -> PageUpdate {
        let slow = self.needs_holding();
        let _ = self.arming.on(Event::Slow(slow), now);
        let left = self.countdown.left(now);
        let stage = self.arming.stage(now);
        let allow = self.view.allow_words(self.offer, self.lifetime).replace('_', "");
        let (filled, again) = hint::ring(stage, now);
        let second = Duration::from_millis(u64::from(left.subsec_millis()) + 5);
        let again = again.map_or(second, |again| again.min(second));
        PageUpdate {
            hint: hint::text(stage, slow, &allow),
            filled,
            armed: hint::is_armed(stage),
            ignored: self.ignored,
            again_ms: u64::try_from(again.as_millis()).unwrap_or(0),
            clock: format_waiting(left),
            soon: left <= WARN_BEFORE_END,
            allow,
            outcome: self.view.outcome(self.offer, self.lifetime),
            more: self.more,
        }
    }

    /// Handles a report from the page. Returns the question's result, if there is one, and `true` if the user is
    /// active.
    pub(super) fn on(&mut self, number: u64, event: PageEvent, now: Instant) -> (Option<DialogResult>, bool) {
        if self.over {
            return (None, false);
        }
        if self.countdown.has_expired(now) {
            return (self.end(DialogResult::TimedOut), false);
        }
        let in_turn = number == self.next;
        self.next = number.saturating_add(1);
        // A denial is accepted even out of order.
        if !in_turn && !matches!(event, PageEvent::Deny { .. }) {
            return (self.apply(Event::Press, now), self.countdown.record_activity(now));
        }
        let event = match event {
            PageEvent::Moved => return (None, self.countdown.record_activity(now)),
            PageEvent::Choose { offer, lifetime } => {
                let chosen = self.view.choices.get(offer).and_then(|choice| choice.lifetimes.get(lifetime));
                if let Some(lifetime) = chosen.copied() {
                    (self.offer, self.lifetime) = (offer, lifetime);
                }
                Event::Changed
            }
            PageEvent::Deny { note, reach } => {
                self.pressed = Some(now);
                let note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
                let no = Answer::Deny { note, reach: reach.into() };
                return (self.end(DialogResult::Answered(no)), false);
            }
            PageEvent::LaidOut { above, room, height } => {
                self.measurement = Some((Extent { height, room }, above));
                self.check_if_read(now);
                Event::Changed
            }
            PageEvent::Changed => Event::Changed,
            PageEvent::OnAllow { x, y } => Event::OnAllow(x, y),
            PageEvent::OffAllow => Event::OffAllow,
            PageEvent::Keyed { on } => Event::Keyed(on),
            PageEvent::Inside => Event::Inside,
            PageEvent::Press => Event::Press,
            PageEvent::Down { by } => Event::Down(by),
            PageEvent::Up { by } => Event::Up(by),
        };
        (self.apply(event, now), self.countdown.record_activity(now))
    }

    /// Handles a window event reported by the system.
    pub(super) fn on_window_event(&mut self, event: Event, now: Instant) {
        let _ = self.arming.on(event, now);
    }

    /// Stores the window's height in CSS pixels, as reported by the system.
    pub(super) fn set_window_height(&mut self, window_height: f64, now: Instant) {
        self.window_height = window_height;
        self.check_if_read(now);
    }

    fn check_if_read(&mut self, now: Instant) {
        let Some((Extent { height, room }, above)) = self.measurement else { return };
        if let Some(is_read) =
            self.reading.record(Extent { height, room: room.min(self.window_height) }, above)
        {
            let _ = self.arming.on(Event::Read(is_read), now);
        }
    }

    /// Denies the call because the user closed the window.
    pub(super) fn close(&mut self) -> Option<DialogResult> {
        self.end(DialogResult::Answered(Answer::Deny { note: None, reach: DenialReach::Call }))
    }

    /// Returns the result if the question has expired.
    pub(super) fn expire(&mut self, now: Instant) -> Option<DialogResult> {
        let is_late = !self.over && self.countdown.has_expired(now);
        if is_late { self.end(DialogResult::TimedOut) } else { None }
    }

    fn apply(&mut self, event: Event, now: Instant) -> Option<DialogResult> {
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
