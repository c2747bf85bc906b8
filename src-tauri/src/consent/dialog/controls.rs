//! Connects the dialog's controls, and shows the effect of the chosen answer.
//!
//! - A control that changes the effect of Allow disarms it.

use super::{Inner, rows};
use crate::consent::Command;
use crate::consent::arming::Event;
use gtk::ResponseType;
use gtk::prelude::*;
use std::rc::Rc;

impl Inner {
    pub(super) fn connect_controls(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.window.connect_response(move |_, response| {
            if let Some(inner) = weak.upgrade() {
                // Escape, Deny, the close button and the session manager each deny the call.
                inner.deny(response == ResponseType::Cancel);
            }
        });
        self.layout.choices.connect_changed(self.on_allow_changed());
        self.layout.ticks.connect_changed(self.on_allow_changed());
        for (button, together) in [(&self.layout.together, true), (&self.layout.one_by_one, false)] {
            let weak = Rc::downgrade(self);
            button.connect_clicked(move |_| {
                if let Some(inner) = weak.upgrade() {
                    inner.record_activity();
                    inner.send(Command::ShowTogether(together));
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
                inner.record_activity();
            }
        });
    }

    /// Returns the change handler for the controls that determine the effect of Allow.
    fn on_allow_changed(self: &Rc<Self>) -> impl Fn() + 'static {
        let weak = Rc::downgrade(self);
        move || {
            if let Some(inner) = weak.upgrade() {
                inner.refresh_choice();
                inner.on(Event::Changed);
            }
        }
    }

    pub(super) fn connect_denials(self: &Rc<Self>) {
        let weak = Rc::downgrade(self);
        self.layout.denials.connect_changed(move || {
            if let Some(inner) = weak.upgrade() {
                inner.on(Event::Changed);
                inner.record_activity();
            }
        });
    }

    pub(super) fn refresh_choice(&self) {
        let (offer, lifetime) = self.layout.choices.chosen();
        let (words, outcome) = if self.view.calls.is_empty() {
            (self.view.allow_words(offer, lifetime).to_owned(), self.view.outcome(offer, lifetime))
        } else {
            let allowed = self.allowed_questions().len();
            self.layout.allow.button.set_sensitive(allowed > 0);
            self.view.effect(allowed)
        };
        let text = format!("\u{2192} {outcome}");
        rows::set_text(&self.layout.outcome, &text, &pango::AttrList::new());
        rows::announce(&self.layout.outcome, &outcome);
        self.layout.allow.set_words(&words);
    }
}
