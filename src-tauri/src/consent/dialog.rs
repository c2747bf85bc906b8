//! The native consent dialog (GTK 3), drawn from one [`ConsentView`].
//!
//! - Never nests a main loop; ends exactly once, and then sends one [`DialogResult`].
//! - Only what [`Arming`] takes for a yes allows: Enter, Space, Escape, closing and time never do.
//! - Allow is never where the last dialog had it, and does not count before all of what would be done was in view.
//! - Does not take the keyboard when it opens; everything shown is plain text.

mod allow;
mod choices;
mod denials;
mod input;
mod layout;
mod palette;
mod place;
mod rows;
mod ticks;

use super::arming::{Arming, Effect, Event, InView};
use super::away::asleep;
use super::clock::{Countdown, waiting_words};
use super::cover::CoverWatch;
use super::reading::Reading;
use super::view::{ConsentView, allow_words};
use super::{Command, DialogResult};
use crate::in_front;
use gtk::ResponseType;
use gtk::glib::{self, ControlFlow};
use gtk::prelude::*;
use ironcurtain_consent::{Answer, DenialReach};
use layout::Layout;
pub(super) use place::AllowPlace;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{self, WeakUnboundedSender};

/// The time after which the countdown is brought up to date.
const TICK: Duration = Duration::from_secs(1);
/// The time for which nobody turns to a dialog before a notification tells of it: one that may be hidden, and one that is
/// known to be in full view.
const HIDDEN: Duration = Duration::from_secs(1);
const IN_VIEW: Duration = Duration::from_secs(5);
/// The time that is left when screen readers are told of it.
const SOON: Duration = Duration::from_secs(10);
/// The time after which it tells again of one that may be hidden.
const AGAIN: Duration = Duration::from_secs(15);

/// The sleep of the machine that is more than what its two clocks are apart.
const SLEPT: Duration = Duration::from_millis(200);

/// One open dialog.
pub(super) struct Dialog(Rc<Inner>);

/// Position and size of a window.
type Place = ((i32, i32), (u32, u32));

struct Inner {
    view: ConsentView,
    layout: Layout,
    arming: RefCell<Arming>,
    countdown: RefCell<Countdown>,
    commands: WeakUnboundedSender<Command>,
    opened: Instant,
    /// When a notification last told of it.
    told: Cell<Option<Instant>>,
    timer: RefCell<Option<(glib::SourceId, Instant)>>,
    gesture: RefCell<Option<gtk::GestureMultiPress>>,
    /// Position and size of the window.
    place: Cell<Option<Place>>,
    pointer_was: Cell<(i32, i32)>,
    /// The point of Allow that the pointer was last told to be at.
    pointer_on: Cell<Option<(i32, i32)>>,
    pressed: Cell<Option<Instant>>,
    seen: Cell<bool>,
    /// Covers that the X server reports, which is all that is seen of them where nothing else is.
    unobscured: Cell<bool>,
    covers: RefCell<Option<CoverWatch>>,
    /// The parts that were read so far.
    read: RefCell<Reading>,
    /// Screen readers were told that the time is nearly over.
    warned: Cell<bool>,
    mirrored: Cell<bool>,
    last: Option<AllowPlace>,
    /// The time that the machine had been asleep when something last happened.
    asleep: Cell<Duration>,
    over: Cell<bool>,
}

impl Dialog {
    /// Shows a question. `last` is the place of Allow in the dialog before it.
    pub(super) fn open(
        view: ConsentView,
        countdown: Countdown,
        commands: WeakUnboundedSender<Command>,
        last: Option<AllowPlace>,
    ) -> Self {
        let now = Instant::now();
        let inner = Rc::new(Inner {
            layout: Layout::build(&view),
            view,
            arming: RefCell::new(Arming::new(true, now)),
            countdown: RefCell::new(countdown),
            commands,
            opened: now,
            told: Cell::new(None),
            timer: RefCell::new(None),
            gesture: RefCell::new(None),
            place: Cell::new(None),
            pointer_was: Cell::new((-1, -1)),
            pointer_on: Cell::new(None),
            pressed: Cell::new(None),
            seen: Cell::new(false),
            unobscured: Cell::new(true),
            covers: RefCell::new(None),
            read: RefCell::default(),
            warned: Cell::new(false),
            mirrored: Cell::new(false),
            last,
            asleep: Cell::new(asleep()),
            over: Cell::new(false),
        });
        inner.mirror(last.is_some_and(|last| !last.mirrored));
        inner.look_for_the_pointer();
        inner.connect_controls();
        inner.connect_input();
        inner.connect_denials();
        inner.refresh_choice();
        // A window that is shown larger than it fits does not become smaller under every window manager.
        inner.layout.window.foreach(WidgetExt::show_all);
        inner.layout.fit();
        inner.layout.window.show_all();
        inner.layout.deny.grab_focus();
        inner.layout.follow_the_focus();
        inner.watch_covers();
        inner.tick();
        Self(inner)
    }

    /// The number of all questions that wait, and of those that could be shown together.
    pub(super) fn set_waiting(&self, all: usize, together: usize) {
        let shown = self.0.open().len();
        let together = if self.0.view.calls.is_empty() { together } else { 0 };
        self.0.layout.set_more(all.saturating_sub(shown), together);
    }

    /// Returns `true` if it shows this question.
    pub(super) fn shows(&self, id: &str) -> bool {
        self.0.open().iter().any(|open| open == id)
    }

    /// A question is over. Returns `true` if that leaves nothing to answer.
    pub(super) fn loses(&self, id: &str) -> bool {
        if self.0.view.calls.is_empty() {
            return self.0.view.id == id;
        }
        self.0.layout.ticks.end(id);
        self.0.open().is_empty()
    }

    /// Brings the dialog to the front, because the person asked for it.
    pub(super) fn raise(&self) {
        // It may come to lie under the pointer, or get the keyboard: whatever stood armed was armed before.
        self.0.on(Event::Changed);
        in_front::bring(&self.0.layout.window);
    }

    /// The last press of a button or a key in it.
    pub(super) fn pressed(&self) -> Option<Instant> {
        self.0.pressed.get()
    }

    /// Takes the dialog away. Tells where its Allow was.
    pub(super) fn close(self) -> AllowPlace {
        self.0.over.set(true);
        self.0.stop_timer();
        let place = self.0.allow_place();
        self.0.layout.window.hide();
        // The window is destroyed by the default handler of the delete event this sends.
        self.0.layout.window.close();
        place
    }
}

impl Inner {
    fn connect_controls(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.window.connect_response(move |_, response| {
            if let Some(inner) = weak.upgrade() {
                // Deny, Escape, the close button, the session manager: all of it is a no.
                inner.deny(response == ResponseType::Cancel);
            }
        });
        self.layout.choices.connect_changed(self.another_yes());
        self.layout.ticks.connect_changed(self.another_yes());
        for (button, together) in [(&self.layout.together, true), (&self.layout.one_by_one, false)] {
            let weak = Rc::downgrade(self);
            button.connect_clicked(move |_| {
                if let Some(inner) = weak.upgrade() {
                    inner.work();
                    inner.send(Command::Together(together));
                }
            });
        }
        let window = self.layout.window.clone();
        self.layout.deny.connect_clicked(move |_| window.response(ResponseType::Cancel));
        let weak = Rc::downgrade(self);
        self.layout.note_toggle.connect_toggled(move |toggle| {
            if let Some(inner) = weak.upgrade() {
                inner.layout.note_row.set_visible(toggle.is_active());
                inner.layout.denials.widget().set_visible(toggle.is_active());
                inner.layout.fit();
                if toggle.is_active() {
                    inner.layout.note.grab_focus();
                }
                inner.on(Event::Changed);
                inner.work();
            }
        });
    }

    /// For whatever makes Allow another thing than it was.
    fn another_yes(self: &Rc<Self>) -> impl Fn() + 'static {
        let weak = Rc::downgrade(self);
        move || {
            if let Some(inner) = weak.upgrade() {
                inner.refresh_choice();
                inner.on(Event::Changed);
            }
        }
    }

    fn connect_denials(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.denials.connect_changed(move || {
            if let Some(inner) = weak.upgrade() {
                inner.on(Event::Changed);
                inner.work();
            }
        });
    }

    /// Takes in what happened, and ends with a yes if that was one.
    fn on(self: &Rc<Self>, event: Event) {
        if self.over.get() {
            return;
        }
        let now = Instant::now();
        if matches!(event, Event::Inside | Event::Press | Event::Down(_) | Event::Up(_) | Event::Action) {
            self.pressed.set(Some(now));
        }
        if let Event::InView(in_view) = event {
            self.seen.set(in_view == InView::Whole);
        }
        let asleep = asleep();
        if asleep > self.asleep.replace(asleep) + SLEPT {
            // Whatever stood armed was armed before: this press may be the one that woke it.
            let _ = self.arming.borrow_mut().on(Event::Changed, now);
        }
        self.look_if_read(now);
        if matches!(event, Event::Down(_) | Event::Action) {
            self.look_for_covers(now);
        }
        let effect = self.arming.borrow_mut().on(event, now);
        let meant = self.meant();
        if effect == Effect::Allowed && !meant.is_empty() {
            let (offer, lifetime) = self.layout.choices.chosen();
            self.end(meant, DialogResult::Answered(Answer::Allow { offer, lifetime }));
        } else {
            self.tick();
            if effect == Effect::Ignored {
                self.layout.allow.flash();
            }
        }
    }

    fn deny(&self, with_note: bool) {
        let with_note = with_note && self.layout.note_toggle.is_active();
        let note =
            Some(self.layout.note.text().trim().to_owned()).filter(|note| with_note && !note.is_empty());
        let reach = if with_note { self.layout.denials.chosen() } else { DenialReach::Call };
        self.end(self.open(), DialogResult::Answered(Answer::Deny { note, reach }));
    }

    fn end(&self, questions: Vec<String>, verdict: DialogResult) {
        if !self.over.replace(true) {
            self.send(Command::Decided(questions, verdict));
        }
    }

    /// The questions that it shows and that are not over.
    fn open(&self) -> Vec<String> {
        if self.view.calls.is_empty() { vec![self.view.id.clone()] } else { self.layout.ticks.open() }
    }

    /// The questions that a yes is for.
    fn meant(&self) -> Vec<String> {
        if self.view.calls.is_empty() { self.open() } else { self.layout.ticks.ticked() }
    }

    /// Brings everything that changes by itself up to date, and comes again when the next of it does.
    fn tick(self: &Rc<Self>) {
        if self.over.get() {
            return;
        }
        let now = Instant::now();
        if self.countdown.borrow().is_over(now) {
            self.end(self.open(), DialogResult::TimedOut);
            return;
        }
        self.tell(now);
        self.look_if_read(now);
        let slow = self.needs_holding();
        let _ = self.arming.borrow_mut().on(Event::Slow(slow), now);
        let left = self.countdown.borrow().left(now);
        self.layout.clock.set_text(&waiting_words(left));
        if self.warned.replace(left <= SOON) != (left <= SOON) && left <= SOON {
            rows::announce(&self.layout.clock, &self.layout.clock.text());
        }
        let stage = self.arming.borrow().stage(now);
        let soon = self.layout.allow.show(stage, slow, now);
        // Just after the second is over: the words change then.
        let second = Duration::from_millis(u64::from(left.subsec_millis()) + 5);
        self.come_again(now + soon.unwrap_or(TICK).min(second));
    }

    /// Judges if all was read by now: before it is shown, a window has all the room that it likes.
    fn look_if_read(&self, now: Instant) {
        let measures = self.layout.reading();
        let is_read = self.read.borrow_mut().look(&measures);
        if let Some(is_read) = is_read {
            let _ = self.arming.borrow_mut().on(Event::Read(is_read), now);
        }
    }

    /// Has a notification tell of a dialog that nobody turned to.
    fn tell(&self, now: Instant) {
        let in_view = self.seen.get() && self.knows_covers();
        let due = match (self.told.get(), in_view) {
            (None, true) => self.opened + IN_VIEW,
            (None, false) => self.opened + HIDDEN,
            (Some(told), false) => told + AGAIN,
            (Some(_), true) => return,
        };
        if now >= due && !self.layout.window.is_active() {
            self.told.set(Some(now));
            self.send_first(Command::Unseen);
        }
    }

    fn come_again(self: &Rc<Self>, at: Instant) {
        if self.timer.borrow().as_ref().is_some_and(|(_, due)| *due <= at && *due > Instant::now()) {
            return;
        }
        self.stop_timer();
        let weak = Rc::downgrade(self);
        let wait = at.saturating_duration_since(Instant::now());
        let source = glib::timeout_add_local(wait.max(Duration::from_millis(1)), move || {
            if let Some(inner) = weak.upgrade() {
                inner.timer.replace(None);
                inner.look_for_the_pointer();
                inner.tick();
            }
            ControlFlow::Break
        });
        self.timer.replace(Some((source, at)));
    }

    fn stop_timer(&self) {
        if let Some((source, _)) = self.timer.take() {
            source.remove();
        }
    }

    /// Returns `true` if Allow has to be held: it is more than a file to read, and nothing tells of a cover.
    fn needs_holding(&self) -> bool {
        let (offer, _) = self.layout.choices.chosen();
        let little = self.view.choices.get(offer).is_some_and(|choice| choice.reads_one_file);
        !little && !self.knows_covers()
    }

    /// Returns whether a cover of the dialog would be noticed. On Wayland no program sees what lies over its windows.
    fn knows_covers(&self) -> bool {
        self.covers.borrow().is_some()
    }

    /// Watches what lies over the dialog from now on, where that can be seen.
    fn watch_covers(self: &Rc<Self>) {
        let Some(number) =
            in_front::number(&self.layout.window).and_then(|number| u32::try_from(number).ok())
        else {
            return;
        };
        let display = WidgetExt::display(&self.layout.window).name();
        let (tell, mut told) = mpsc::unbounded_channel();
        // Without a dialog nobody has to know.
        match CoverWatch::start(&display, number, move |in_view| {
            let _ = tell.send(in_view);
        }) {
            Ok(watch) => drop(self.covers.replace(Some(watch))),
            Err(error) => return tracing::warn!(%error, "covers of the dialog cannot be seen"),
        }
        let weak = Rc::downgrade(self);
        glib::MainContext::default().spawn_local(async move {
            while let Some(in_view) = told.recv().await {
                match weak.upgrade() {
                    Some(inner) => inner.on(Event::InView(inner.in_view(in_view))),
                    None => return,
                }
            }
        });
    }

    /// Looks again before a press counts: what happened a moment ago may not have been told yet.
    fn look_for_covers(&self, now: Instant) {
        let in_view = self.look();
        self.seen.set(in_view == InView::Whole);
        let _ = self.arming.borrow_mut().on(Event::InView(in_view), now);
    }

    /// Returns the part of the dialog that can be seen, as far as that can be told.
    fn look(&self) -> InView {
        let by_stacking = self.covers.borrow().as_ref().map_or(InView::Whole, CoverWatch::look);
        self.in_view(by_stacking)
    }

    /// Returns the part that can be seen, by the stacking order and by the reports of the X server where there is no compositor.
    fn in_view(&self, by_stacking: InView) -> InView {
        if by_stacking == InView::Whole && !self.unobscured.get() { InView::Covered } else { by_stacking }
    }

    fn work(&self) {
        if self.countdown.borrow_mut().work(Instant::now()) {
            self.send_first(Command::Working);
        }
    }

    /// Sends something about what is shown, by its first question.
    fn send_first(&self, command: fn(String) -> Command) {
        self.open().into_iter().take(1).for_each(|id| self.send(command(id)));
    }

    fn send(&self, command: Command) {
        // Without a queue the question is denied already.
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(command);
        }
    }

    fn refresh_choice(&self) {
        let (offer, lifetime) = self.layout.choices.chosen();
        let (words, outcome) = if self.view.calls.is_empty() {
            (allow_words(lifetime).to_owned(), self.view.outcome(offer, lifetime))
        } else {
            let meant = self.meant().len();
            self.layout.allow.button.set_sensitive(meant > 0);
            self.view.effect(meant)
        };
        self.layout.outcome.set_text(&format!("\u{2192} {outcome}"));
        rows::announce(&self.layout.outcome, &outcome);
        self.layout.allow.set_words(&words);
    }
}
