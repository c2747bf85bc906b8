//! The native consent dialog (GTK 3), drawn from one [`ConsentView`].
//!
//! - Never nests a main loop; ends exactly once, and then sends one [`DialogResult`].
//! - Only a click on an armed Allow or Alt+A allows: Enter, Space, Escape, closing and time never do.
//! - Allow is not armed before all of what would be done was in view.
//! - Does not take the keyboard when it opens; everything shown is plain text.

mod choices;
mod layout;
mod rows;

use super::clock::{Arming, Countdown, clock_words};
use super::view::{ConsentView, allow_words};
use super::{Command, DialogResult};
use gtk::glib::{self, ControlFlow, Propagation};
use gtk::prelude::*;
use gtk::{ResponseType, gdk};
use ironcurtain_daemon::consent::Answer;
use layout::Layout;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::WeakUnboundedSender;

/// The time after which the countdown and the Allow button are brought up to date.
const TICK: Duration = Duration::from_millis(100);
/// The time for which the dialog may be without the focus before a notification tells of it.
const UNSEEN: Duration = Duration::from_secs(1);

/// One open dialog.
pub(super) struct Dialog(Rc<Inner>);

struct Inner {
    view: ConsentView,
    layout: Layout,
    opened: Instant,
    arming: RefCell<Arming>,
    countdown: RefCell<Countdown>,
    commands: WeakUnboundedSender<Command>,
    told: Cell<bool>,
    /// The end of what would be done was in view.
    read: Cell<bool>,
    over: Cell<bool>,
}

impl Dialog {
    /// Shows a question.
    pub(super) fn open(
        view: ConsentView,
        countdown: Countdown,
        commands: WeakUnboundedSender<Command>,
    ) -> Self {
        let now = Instant::now();
        let inner = Rc::new(Inner {
            layout: Layout::build(&view),
            view,
            opened: now,
            arming: RefCell::new(Arming::new(now)),
            countdown: RefCell::new(countdown),
            commands,
            told: Cell::new(false),
            read: Cell::new(false),
            over: Cell::new(false),
        });
        inner.connect_window();
        inner.connect_controls();
        inner.refresh_choice();
        inner.refresh();
        inner.layout.window.show_all();
        inner.layout.deny.grab_focus();
        inner.layout.follow_the_focus();
        let weak = Rc::downgrade(&inner);
        glib::timeout_add_local(TICK, move || match weak.upgrade() {
            Some(inner) if !inner.over.get() => inner.tick(),
            Some(_) | None => ControlFlow::Break,
        });
        Self(inner)
    }

    /// The number of questions that wait behind this one.
    pub(super) fn set_more(&self, more: usize) {
        let text = if more == 0 { String::new() } else { format!("{more} more waiting") };
        self.0.layout.more.set_text(&text);
    }

    /// Brings the dialog to the front, because the person asked for it.
    pub(super) fn raise(&self) {
        self.0.layout.window.present();
    }

    /// Takes the dialog away.
    pub(super) fn close(self) {
        self.0.over.set(true);
        self.0.layout.window.hide();
        // The window is destroyed by the default handler of the delete event this sends.
        self.0.layout.window.close();
    }
}

impl Inner {
    fn connect_window(self: &Rc<Self>) {
        let window = &self.layout.window;
        let weak = Rc::downgrade(self);
        window.connect_response(move |_, response| {
            if let Some(inner) = weak.upgrade() {
                if response == ResponseType::Accept {
                    inner.try_allow();
                } else {
                    // Deny, Escape, the close button, the session manager: everything else is a no.
                    inner.deny(response == ResponseType::Cancel);
                }
            }
        });
        let weak = Rc::downgrade(self);
        window.connect_is_active_notify(move |window| {
            if let Some(inner) = weak.upgrade() {
                inner.arming.borrow_mut().set_focused(window.is_active(), Instant::now());
                inner.refresh();
            }
        });
        let weak = Rc::downgrade(self);
        window.connect_configure_event(move |_, _| {
            if let Some(inner) = weak.upgrade() {
                inner.disturb();
            }
            false
        });
        let weak = Rc::downgrade(self);
        window.connect_event(move |_, event| {
            if let Some(inner) = weak.upgrade() {
                inner.notice(event);
            }
            Propagation::Proceed
        });
        let weak = Rc::downgrade(self);
        window.connect_key_press_event(move |_, key| match weak.upgrade() {
            Some(inner) => inner.key(key),
            None => Propagation::Stop,
        });
    }

    fn connect_controls(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.choices.connect_changed(move || {
            if let Some(inner) = weak.upgrade() {
                inner.refresh_choice();
                inner.disturb();
                inner.work();
            }
        });
        let weak = Rc::downgrade(self);
        self.layout.allow.connect_clicked(move |_| {
            if let Some(inner) = weak.upgrade() {
                // INVARIANT: a key that presses whatever has the focus does not allow.
                let by_key = gtk::current_event()
                    .is_some_and(|event| matches!(event.event_type(), gdk::EventType::KeyPress));
                if by_key {
                    inner.disturb();
                } else {
                    inner.layout.window.response(ResponseType::Accept);
                }
            }
        });
        let weak = Rc::downgrade(self);
        self.layout.allow.connect_mnemonic_activate(move |_, _| {
            if let Some(inner) = weak.upgrade() {
                inner.layout.window.response(ResponseType::Accept);
            }
            Propagation::Stop
        });
        let window = self.layout.window.clone();
        self.layout.deny.connect_clicked(move |_| window.response(ResponseType::Cancel));
        let weak = Rc::downgrade(self);
        self.layout.note_toggle.connect_toggled(move |toggle| {
            if let Some(inner) = weak.upgrade() {
                inner.layout.note.set_visible(toggle.is_active());
                if toggle.is_active() {
                    inner.layout.note.grab_focus();
                }
                inner.disturb();
                inner.work();
            }
        });
    }

    /// Enter and Space never reach Allow, and an early Alt+A starts the rest anew.
    fn key(&self, key: &gdk::EventKey) -> Propagation {
        use gdk::keys::constants as keys;
        let presses = [keys::Return, keys::KP_Enter, keys::ISO_Enter, keys::space, keys::KP_Space];
        if self.layout.allow.has_focus() && presses.contains(&key.keyval()) {
            self.disturb();
            return Propagation::Stop;
        }
        let pages = match key.keyval() {
            keys::Page_Down | keys::KP_Page_Down => Some(1.0),
            keys::Page_Up | keys::KP_Page_Up => Some(-1.0),
            _ => None,
        };
        if let Some(pages) = pages {
            self.layout.scroll(pages);
            self.disturb();
            return Propagation::Stop;
        }
        if key.state().contains(gdk::ModifierType::MOD1_MASK) && !self.armed() {
            self.disturb();
        }
        Propagation::Proceed
    }

    fn try_allow(&self) {
        if !self.armed() {
            self.disturb();
            // The default handlers leave the dialog as it is.
            return;
        }
        let (offer, lifetime) = self.layout.choices.chosen();
        self.end(DialogResult::Answered(Answer::Allow { offer, lifetime }));
    }

    fn deny(&self, with_note: bool) {
        let note = Some(self.layout.note.text().trim().to_owned())
            .filter(|note| with_note && self.layout.note_toggle.is_active() && !note.is_empty());
        self.end(DialogResult::Answered(Answer::Deny { note }));
    }

    fn end(&self, verdict: DialogResult) {
        if !self.over.replace(true) {
            self.send(Command::Decided(self.view.id.clone(), verdict));
        }
    }

    fn tick(&self) -> ControlFlow {
        let now = Instant::now();
        if self.countdown.borrow().is_over(now) {
            self.end(DialogResult::TimedOut);
            return ControlFlow::Break;
        }
        if !self.told.get() && now.saturating_duration_since(self.opened) >= UNSEEN {
            self.told.set(true);
            if !self.layout.window.is_active() {
                self.send(Command::Unseen(self.view.id.clone()));
            }
        }
        self.refresh();
        ControlFlow::Continue
    }

    fn armed(&self) -> bool {
        !self.over.get() && self.read.get() && self.arming.borrow().armed(Instant::now())
    }

    fn disturb(&self) {
        self.arming.borrow_mut().disturb(Instant::now());
        self.refresh();
    }

    fn notice(&self, event: &gdk::Event) {
        if let Some(event) = event.downcast_ref::<gdk::EventVisibility>() {
            let in_view = event.state() == gdk::VisibilityState::Unobscured;
            self.arming.borrow_mut().set_in_view(in_view, Instant::now());
            self.refresh();
        }
        let by_hand = [
            gdk::EventType::MotionNotify,
            gdk::EventType::KeyPress,
            gdk::EventType::ButtonPress,
            gdk::EventType::Scroll,
        ];
        if by_hand.contains(&event.event_type()) {
            self.work();
        }
    }

    fn work(&self) {
        if self.countdown.borrow_mut().work(Instant::now()) {
            self.send(Command::Working(self.view.id.clone()));
        }
    }

    fn send(&self, command: Command) {
        // Without a queue the question is denied already.
        if let Some(commands) = self.commands.upgrade() {
            let _ = commands.send(command);
        }
    }

    fn refresh_choice(&self) {
        let (offer, lifetime) = self.layout.choices.chosen();
        self.layout.outcome.set_text(&format!("\u{2192} {}", self.view.outcome(offer, lifetime)));
        self.layout.allow.set_label(allow_words(lifetime));
    }

    fn refresh(&self) {
        if !self.read.get() && self.layout.shows_the_end() {
            self.read.set(true);
            self.arming.borrow_mut().disturb(Instant::now());
        }
        let left = self.countdown.borrow().left(Instant::now());
        let rest = if self.read.get() { "" } else { ". Scroll down: there is more" };
        self.layout.clock.set_text(&format!("Denied in {}{rest}", clock_words(left)));
        let armed = self.armed();
        if !armed && self.layout.allow.has_focus() {
            self.layout.deny.grab_focus();
        }
        self.layout.allow.set_sensitive(armed);
    }
}
