//! Controls for choosing how much to allow and for how long.
//!
//! - Initially, the narrowest offer and the shortest lifetime are selected. Only offers can be selected.

use super::rows;
use crate::consent::view::Choice;
use gtk::Orientation;
use gtk::prelude::*;
use ironcurtain_consent::Lifetime;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[derive(Clone)]
pub(super) struct Choices(Rc<Inner>);

struct Inner {
    rows: gtk::Box,
    lifetimes: gtk::Box,
    choices: Vec<Choice>,
    offer: Cell<usize>,
    lifetime: Cell<Lifetime>,
    changed: RefCell<Option<Box<dyn Fn()>>>,
}

impl Choices {
    pub(super) fn build(choices: &[Choice]) -> Self {
        let first = choices.first().and_then(|choice| choice.lifetimes.first());
        let this = Self(Rc::new(Inner {
            rows: gtk::Box::new(Orientation::Vertical, 8),
            lifetimes: gtk::Box::new(Orientation::Horizontal, 16),
            choices: choices.to_vec(),
            offer: Cell::new(0),
            lifetime: Cell::new(first.copied().unwrap_or(Lifetime::Once)),
            changed: RefCell::new(None),
        }));
        let list = &this.0.rows;
        list.style_context().add_class("ic-choices");
        if choices.iter().any(|choice| choice.is_decision) {
            list.pack_start(&rows::captioned("Decide", &this.offers()), false, false, 0);
        } else {
            list.pack_start(&rows::captioned("Allow", &this.offers()), false, false, 0);
            list.pack_start(&rows::captioned("for", &this.0.lifetimes), false, false, 0);
        }
        rows::describe(&this.0.lifetimes, "For how long", "");
        this.draw_lifetimes();
        this
    }

    pub(super) fn widget(&self) -> &gtk::Box {
        &self.0.rows
    }

    /// Returns the index of the selected offer, and the selected lifetime.
    pub(super) fn chosen(&self) -> (usize, Lifetime) {
        (self.0.offer.get(), self.0.lifetime.get())
    }

    pub(super) fn connect_changed(&self, changed: impl Fn() + 'static) {
        self.0.changed.replace(Some(Box::new(changed)));
    }

    fn offers(&self) -> gtk::Box {
        let list = gtk::Box::new(Orientation::Vertical, 4);
        rows::describe(&list, "What to allow", "");
        let mut first: Option<gtk::RadioButton> = None;
        for (index, choice) in self.0.choices.iter().enumerate() {
            let radio = rows::radio(&choice.label, first.as_ref());
            let weak = Rc::downgrade(&self.0);
            radio.connect_toggled(move |radio| {
                if let Some(inner) = weak.upgrade().filter(|_| radio.is_active()) {
                    Self(inner).choose_offer(index);
                }
            });
            list.pack_start(&radio, false, false, 0);
            first.get_or_insert(radio);
        }
        list
    }

    fn choose_offer(&self, index: usize) {
        let Some(choice) = self.0.choices.get(index) else { return };
        self.0.offer.set(index);
        if !choice.lifetimes.contains(&self.0.lifetime.get()) {
            self.0.lifetime.set(choice.lifetimes.first().copied().unwrap_or(Lifetime::Once));
        }
        self.draw_lifetimes();
        self.notify_changed();
    }

    fn draw_lifetimes(&self) {
        for old in self.0.lifetimes.children() {
            self.0.lifetimes.remove(&old);
        }
        let Some(choice) = self.0.choices.get(self.0.offer.get()) else { return };
        let mut first: Option<gtk::RadioButton> = None;
        for lifetime in choice.lifetimes.iter().copied() {
            let radio = rows::radio(lifetime.label(), first.as_ref());
            radio.set_active(lifetime == self.0.lifetime.get());
            let weak = Rc::downgrade(&self.0);
            radio.connect_toggled(move |radio| {
                if let Some(inner) = weak.upgrade().filter(|_| radio.is_active()) {
                    inner.lifetime.set(lifetime);
                    Self(inner).notify_changed();
                }
            });
            self.0.lifetimes.pack_start(&radio, false, false, 0);
            first.get_or_insert(radio);
        }
        self.0.lifetimes.show_all();
    }

    fn notify_changed(&self) {
        if let Some(changed) = self.0.changed.borrow().as_ref() {
            changed();
        }
    }
}
