//! The native consent dialog (GTK 3), which shows a [`ConsentView`].
//!
//! - Never runs a nested main loop. Sends at most one [`DialogResult`].
//! - Only [`Arming`] decides that the user allowed the call. Enter, Space, Escape, closing the dialog and timeouts
//!   never allow it.
//! - Allow is never where it was in the previous dialog. A press is not accepted until everything that it would allow
//!   has been in view.
//! - The dialog does not take the keyboard focus when it opens. All content is plain text.

mod allow;
mod allow_position;
mod batch_rows;
mod choices;
mod controls;
mod denials;
mod icons;
mod input;
mod layout;
mod long_words;
mod palette;
mod rows;
mod timer;
mod visibility;

use super::arming::{Arming, Effect, Event, InView};
use super::clock::Countdown;
use super::occlusion::OcclusionWatch;
use super::presence::asleep;
use super::read_progress::ReadProgress;
use super::reminder::Reminder;
use super::view::ConsentView;
use super::{Command, DialogResult};
use crate::window_stack;
pub(super) use allow_position::AllowPosition;
use gtk::glib;
use gtk::prelude::*;
use ironcurtain_consent::{Answer, DenialReach};
use layout::Layout;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::WeakUnboundedSender;

/// Minimum difference between the monotonic and the boot-time clock that counts as sleep. Smaller differences are
/// measurement errors.
const SLEEP_THRESHOLD: Duration = Duration::from_millis(200);

/// Open dialog.
pub(super) struct Dialog(Rc<Inner>);

/// Position and size of a window.
type WindowBounds = ((i32, i32), (u32, u32));

struct Inner {
    view: ConsentView,
    layout: Layout,
    arming: RefCell<Arming>,
    countdown: RefCell<Countdown>,
    commands: WeakUnboundedSender<Command>,
    reminder: RefCell<Reminder>,
    timer: RefCell<Option<(glib::SourceId, Instant)>>,
    gesture: RefCell<Option<gtk::GestureMultiPress>>,
    bounds: Cell<Option<WindowBounds>>,
    last_pointer: Cell<(i32, i32)>,
    /// Last reported position of the pointer on Allow.
    pointer_on: Cell<Option<(i32, i32)>>,
    pressed: Cell<Option<Instant>>,
    seen: Cell<bool>,
    /// `true` if the X server reports the dialog as not covered. This is the only source if the stacking order is
    /// unavailable.
    unobscured: Cell<bool>,
    covers: RefCell<Option<OcclusionWatch>>,
    /// Parts of the question that the user has read so far.
    read: RefCell<ReadProgress>,
    /// `true` if screen readers have announced that time is running out.
    warned: Cell<bool>,
    mirrored: Cell<bool>,
    last_allow: Option<AllowPosition>,
    /// Total sleep time of the machine at the last event.
    asleep: Cell<Duration>,
    is_closed: Cell<bool>,
}

impl Dialog {
    /// Opens a dialog. `last_allow` is the position of Allow in the previous dialog.
    pub(super) fn open(
        view: ConsentView,
        countdown: Countdown,
        commands: WeakUnboundedSender<Command>,
        last_allow: Option<AllowPosition>,
    ) -> Self {
        let now = Instant::now();
        let inner = Rc::new(Inner {
            layout: Layout::build(&view),
            view,
            arming: RefCell::new(Arming::new(true, now)),
            countdown: RefCell::new(countdown),
            commands,
            reminder: RefCell::new(Reminder::new(now)),
            timer: RefCell::new(None),
            gesture: RefCell::new(None),
            bounds: Cell::new(None),
            last_pointer: Cell::new((-1, -1)),
            pointer_on: Cell::new(None),
            pressed: Cell::new(None),
            seen: Cell::new(false),
            unobscured: Cell::new(true),
            covers: RefCell::new(None),
            read: RefCell::default(),
            warned: Cell::new(false),
            mirrored: Cell::new(false),
            last_allow,
            asleep: Cell::new(asleep()),
            is_closed: Cell::new(false),
        });
        inner.mirror(last_allow.is_some_and(|last| !last.mirrored));
        inner.record_pointer();
        inner.connect_controls();
        inner.connect_input();
        inner.connect_denials();
        inner.refresh_choice();
        // Some window managers never shrink a window that was too large when first shown.
        inner.layout.window.foreach(WidgetExt::show_all);
        inner.layout.fit();
        inner.layout.window.show_all();
        inner.layout.deny.grab_focus();
        inner.layout.scroll_to_focus();
        inner.watch_occlusion();
        inner.tick();
        Self(inner)
    }

    /// Sets the number of pending questions and the number of those that could be shown together.
    pub(super) fn set_waiting(&self, all: usize, together: usize) {
        let shown = self.0.open().len();
        let together = if self.0.view.calls.is_empty() { together } else { 0 };
        self.0.layout.set_more(all.saturating_sub(shown), together);
    }

    /// Returns `true` if the dialog shows this question.
    pub(super) fn shows(&self, id: &str) -> bool {
        self.0.open().iter().any(|open| open == id)
    }

    /// Removes a question that was answered or has expired. Returns `true` if no question remains.
    pub(super) fn settle(&self, id: &str) -> bool {
        if self.0.view.calls.is_empty() {
            return self.0.view.id == id;
        }
        self.0.layout.ticks.end(id);
        self.0.open().is_empty()
    }

    /// Brings the dialog to the front at the user's request.
    pub(super) fn raise(&self) {
        // The dialog may now be under the pointer or focused, so Allow is disarmed.
        self.0.on(Event::Changed);
        window_stack::raise(&self.0.layout.window);
    }

    /// Returns the time of the last button or key press in the dialog.
    pub(super) fn pressed(&self) -> Option<Instant> {
        self.0.pressed.get()
    }

    /// Closes the dialog and returns the last position of Allow.
    pub(super) fn close(self) -> AllowPosition {
        self.0.is_closed.set(true);
        self.0.stop_timer();
        let position = self.0.allow_position();
        self.0.layout.window.hide();
        // The default handler of the delete event destroys the window.
        self.0.layout.window.close();
        position
    }
}

impl Inner {
    /// Handles an event, and closes the dialog if the user has allowed the call.
    fn on(self: &Rc<Self>, event: Event) {
        if self.is_closed.get() {
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
        if asleep > self.asleep.replace(asleep) + SLEEP_THRESHOLD {
            // This press may have woken the machine, so Allow is disarmed.
            let _ = self.arming.borrow_mut().on(Event::Changed, now);
        }
        self.check_if_read(now);
        if matches!(event, Event::Down(_) | Event::Action) {
            self.check_occlusion(now);
        }
        let effect = self.arming.borrow_mut().on(event, now);
        let allowed = self.allowed_questions();
        if effect == Effect::Allowed && !allowed.is_empty() {
            let (offer, lifetime) = self.layout.choices.chosen();
            self.end(allowed, DialogResult::Answered(Answer::Allow { offer, lifetime }));
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
        if !self.is_closed.replace(true) {
            self.send(Command::Decided(questions, verdict));
        }
    }

    /// Returns the ids of the shown questions that are unanswered.
    fn open(&self) -> Vec<String> {
        if self.view.calls.is_empty() { vec![self.view.id.clone()] } else { self.layout.ticks.open() }
    }

    /// Returns the ids of the questions that Allow would allow.
    fn allowed_questions(&self) -> Vec<String> {
        if self.view.calls.is_empty() { self.open() } else { self.layout.ticks.ticked() }
    }

    /// Checks whether the whole question has been read. Does nothing while the window is not shown, because its size is
    /// unknown.
    fn check_if_read(&self, now: Instant) {
        let measures = self.layout.reading();
        let is_read = self.read.borrow_mut().record(&measures);
        if let Some(is_read) = is_read {
            let _ = self.arming.borrow_mut().on(Event::Read(is_read), now);
        }
    }

    fn record_activity(&self) {
        if self.countdown.borrow_mut().record_activity(Instant::now()) {
            self.send_first(Command::Activity);
        }
    }

    /// Sends a command about the dialog's first question.
    fn send_first(&self, command: fn(String) -> Command) {
        self.open().into_iter().take(1).for_each(|id| self.send(command(id)));
    }

    fn send(&self, command: Command) {
        // If the queue no longer exists, the question has already been denied.
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(command);
        }
    }
}
