//! Translates toolkit events to events of [`Arming`](crate::consent::arming::Arming), without deciding anything.
//!
//! - Every press in the window is reported before the pressed widget receives it.
//! - Presses of Allow never reach the toolkit's button, which does not distinguish Enter, Space and clicks.

use super::Inner;
use crate::consent::arming::{Event, InputDevice};
use gtk::gdk::{self, CrossingMode, ModifierType};
use gtk::glib::Propagation;
use gtk::prelude::*;
use std::rc::Rc;

use gdk::keys::constants as keys;

/// Minimum distance in pixels between two reported pointer positions.
const STEP: u32 = 3;

impl Inner {
    /// Connects the handlers for all input events of the window.
    pub(super) fn connect_input(self: &Rc<Self>) {
        self.connect_presses();
        self.connect_allow();
        self.connect_focus();
        self.connect_bounds();
    }

    fn connect_presses(self: &Rc<Self>) {
        let window = &self.layout.window;
        // By default, the toolkit delays motion events until it draws, so they would arrive after a later press.
        window.connect_realize(|window| {
            if let Some(window) = window.window() {
                window.set_event_compression(false);
            }
        });
        let gesture = gtk::GestureMultiPress::new(window);
        gesture.set_propagation_phase(gtk::PropagationPhase::Capture);
        gesture.set_button(0);
        gesture.set_exclusive(false);
        let weak = Rc::downgrade(self);
        gesture.connect_pressed(move |gesture, _, x, y| {
            if let Some(inner) = weak.upgrade() {
                if !inner.layout.allow.has(&inner.layout.window, x, y) {
                    let is_first = gesture.current_button() == gdk::BUTTON_PRIMARY;
                    inner.on(if is_first { Event::Inside } else { Event::Press });
                }
                inner.record_activity();
            }
        });
        self.gesture.replace(Some(gesture));
        let weak = Rc::downgrade(self);
        window.connect_key_press_event(move |_, key| match weak.upgrade() {
            Some(inner) => inner.key_down(key),
            None => Propagation::Stop,
        });
        let weak = Rc::downgrade(self);
        window.connect_key_release_event(move |_, key| match weak.upgrade() {
            Some(inner) => inner.key_up(key),
            None => Propagation::Stop,
        });
    }

    fn connect_allow(self: &Rc<Self>) {
        let button = &self.layout.allow.button;
        let weak = Rc::downgrade(self);
        button.connect_enter_notify_event(move |_, event| {
            if let Some(inner) = weak.upgrade().filter(|_| event.mode() == CrossingMode::Normal) {
                inner.pointer_on_allow(event.root());
            }
            Propagation::Proceed
        });
        // Another window's pointer grab may have suppressed the enter event.
        button.add_events(gdk::EventMask::POINTER_MOTION_MASK);
        let weak = Rc::downgrade(self);
        button.connect_motion_notify_event(move |_, event| {
            if let Some(inner) = weak.upgrade().filter(|inner| inner.on_allow(event.position())) {
                inner.pointer_on_allow(event.root());
            }
            Propagation::Proceed
        });
        let weak = Rc::downgrade(self);
        button.connect_leave_notify_event(move |_, event| {
            if let Some(inner) = weak.upgrade().filter(|_| event.mode() == CrossingMode::Normal) {
                inner.pointer_on.set(None);
                inner.record_pointer();
                inner.on(Event::OffAllow);
            }
            Propagation::Proceed
        });
        let weak = Rc::downgrade(self);
        button.connect_button_press_event(move |_, event| {
            // Ignores the additional event that the toolkit sends for a double click.
            if let Some(inner) = weak.upgrade().filter(|_| event.event_type() == gdk::EventType::ButtonPress)
            {
                inner.on(if event.button() == 1 { Event::Down(InputDevice::Pointer) } else { Event::Press });
            }
            Propagation::Stop
        });
        let weak = Rc::downgrade(self);
        button.connect_button_release_event(move |_, event| {
            if let Some(inner) = weak.upgrade().filter(|_| event.button() == 1) {
                inner.end_press(InputDevice::Pointer, event.position());
            }
            Propagation::Stop
        });
        let weak = Rc::downgrade(self);
        button.connect_touch_event(move |_, event| {
            if let Some(inner) = weak.upgrade() {
                let kind = event.event_type();
                if kind == gdk::EventType::TouchBegin {
                    inner.on(Event::Down(InputDevice::Touch));
                } else if kind == gdk::EventType::TouchEnd {
                    inner.end_press(InputDevice::Touch, event.coords().unwrap_or((-1.0, -1.0)));
                } else if kind == gdk::EventType::TouchCancel {
                    inner.on(Event::Press);
                }
            }
            Propagation::Stop
        });
        let weak = Rc::downgrade(self);
        button.connect_clicked(move |_| {
            // Pointer and key events are handled elsewhere, so this is a screen reader's action.
            if let Some(inner) = weak.upgrade() {
                inner.on(Event::Action);
            }
        });
    }

    fn connect_focus(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.window.connect_is_active_notify(move |window| {
            if let Some(inner) = weak.upgrade() {
                inner.on(Event::Focused(window.is_active()));
                if !window.is_active() {
                    inner.layout.deny.grab_focus();
                }
            }
        });
        let weak = Rc::downgrade(self);
        self.layout.allow.button.connect_has_focus_notify(move |button| {
            if let Some(inner) = weak.upgrade() {
                let by_key = gtk::current_event()
                    .is_some_and(|event| matches!(event.event_type(), gdk::EventType::KeyPress));
                inner.on(Event::Keyed(button.has_focus() && by_key));
            }
        });
    }

    fn connect_bounds(self: &Rc<Self>) {
        let window = &self.layout.window;
        let weak = Rc::downgrade(self);
        window.connect_configure_event(move |_, event| {
            if let Some(inner) = weak.upgrade() {
                let position = (event.position(), event.size());
                if inner.bounds.replace(Some(position)) != Some(position) {
                    inner.on(Event::Changed);
                    inner.avoid_last_allow_position();
                }
            }
            false
        });
        let weak = Rc::downgrade(self);
        window.connect_event(move |_, event| {
            if let Some(inner) = weak.upgrade() {
                inner.handle_press(event);
            }
            Propagation::Proceed
        });
        let weak = Rc::downgrade(self);
        for scrolled in self.layout.scrolled() {
            let weak = weak.clone();
            scrolled.connect_value_changed(move |_| {
                if let Some(inner) = weak.upgrade() {
                    inner.on(Event::Changed);
                    inner.record_activity();
                }
            });
        }
    }

    fn handle_press(self: &Rc<Self>, event: &gdk::Event) {
        use gdk::EventType::{ButtonPress, EnterNotify, KeyPress, Map, MotionNotify, Scroll, Unmap};
        let kind = event.event_type();
        if let Some(event) = event.downcast_ref::<gdk::EventVisibility>() {
            self.unobscured.set(event.state() == gdk::VisibilityState::Unobscured);
            self.on(Event::InView(self.visibility()));
        }
        let hides = gdk::WindowState::ICONIFIED | gdk::WindowState::WITHDRAWN;
        let hidden = event
            .downcast_ref::<gdk::EventWindowState>()
            .is_some_and(|state| state.changed_mask().intersects(hides));
        if hidden || [Map, Unmap].contains(&kind) {
            self.on(Event::Changed);
        }
        let came = kind == EnterNotify && event.root_coords().is_some_and(|at| !self.pointer_was_at(at));
        if came || [MotionNotify, KeyPress, ButtonPress, Scroll].contains(&kind) {
            self.record_activity();
        }
    }

    /// Reports that the pointer is on Allow. Small movements are skipped, because each report rechecks the whole
    /// dialog.
    fn pointer_on_allow(self: &Rc<Self>, (x, y): (f64, f64)) {
        #[expect(clippy::cast_possible_truncation, reason = "a point of a screen")]
        let at = (x as i32, y as i32);
        let was = self.pointer_on.get();
        if was.is_none_or(|was| was.0.abs_diff(at.0).max(was.1.abs_diff(at.1)) >= STEP) {
            self.pointer_on.set(Some(at));
            self.on(Event::OnAllow(at.0, at.1));
        }
    }

    fn end_press(self: &Rc<Self>, by: InputDevice, position: (f64, f64)) {
        self.on(if self.on_allow(position) { Event::Up(by) } else { Event::Press });
    }

    fn on_allow(&self, (x, y): (f64, f64)) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "a point of a screen")]
        self.layout.allow.holds(x.floor() as i32, y.floor() as i32)
    }

    fn key_down(self: &Rc<Self>, key: &gdk::EventKey) -> Propagation {
        self.record_activity();
        if is_letter_a(key) && key.state().contains(ModifierType::MOD1_MASK) {
            self.on(Event::Down(InputDevice::Key));
            return Propagation::Stop;
        }
        if is_held_with_others(key) {
            return Propagation::Proceed;
        }
        self.on(Event::Press);
        let presses = [keys::Return, keys::KP_Enter, keys::ISO_Enter, keys::space, keys::KP_Space];
        if self.layout.allow.button.has_focus() && presses.contains(&key.keyval()) {
            self.layout.deny.grab_focus();
            return Propagation::Stop;
        }
        let pages = match key.keyval() {
            keys::Page_Down | keys::KP_Page_Down => 1.0,
            keys::Page_Up | keys::KP_Page_Up => -1.0,
            keys::End | keys::KP_End if self.has_more_to_read() => f64::from(u16::MAX),
            _ => return Propagation::Proceed,
        };
        let unread = self.read.borrow().unread();
        self.layout.scroll(unread, pages);
        Propagation::Stop
    }

    /// Returns `true` if some text is unread and the note field is not focused. The End key then scrolls to that text.
    fn has_more_to_read(&self) -> bool {
        !self.layout.note.has_focus() && self.read.borrow().unread().is_some()
    }

    fn key_up(self: &Rc<Self>, key: &gdk::EventKey) -> Propagation {
        let alt = [keys::Alt_L, keys::Alt_R, keys::Meta_L, keys::Meta_R].contains(&key.keyval());
        if alt || is_letter_a(key) {
            self.on(Event::Up(InputDevice::Key));
        }
        Propagation::Proceed
    }

    /// Returns `true` if the pointer was at this screen position at the last check.
    fn pointer_was_at(&self, (x, y): (f64, f64)) -> bool {
        let (was_x, was_y) = self.last_pointer.get();
        (x - f64::from(was_x)).abs() < 2.0 && (y - f64::from(was_y)).abs() < 2.0
    }

    /// Stores the pointer's position.
    pub(super) fn record_pointer(&self) {
        let seat = gdk::Display::default().and_then(|display| display.default_seat());
        if let Some(pointer) = seat.and_then(|seat| seat.pointer()) {
            let (_, x, y) = pointer.position();
            self.last_pointer.set((x, y));
        }
    }
}

/// Returns `true` if the key is a modifier such as Alt or Shift. The Alt key precedes the A in Alt+A.
fn is_held_with_others(key: &gdk::EventKey) -> bool {
    let modifiers = *keys::Shift_L..=*keys::Hyper_R;
    let levels = *keys::ISO_Lock..=*keys::ISO_Level5_Lock;
    key.is_modifier() || modifiers.contains(&*key.keyval()) || levels.contains(&*key.keyval())
}

/// Returns `true` if the key is the letter A, even on a keyboard layout for another script.
fn is_letter_a(key: &gdk::EventKey) -> bool {
    let is = |value: gdk::keys::Key| value == keys::a || value == keys::A;
    is(key.keyval())
        || gdk::Display::default()
            .and_then(|display| gdk::Keymap::for_display(&display))
            .and_then(|map| {
                map.translate_keyboard_state(u32::from(key.hardware_keycode()), ModifierType::empty(), 0)
            })
            .is_some_and(|(value, ..)| is(value.into()))
}
