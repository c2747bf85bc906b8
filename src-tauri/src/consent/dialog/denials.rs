//! Controls for choosing what to deny: this call, all pending calls of the agent, all similar calls of the session, or
//! everything until the agent is resumed.
//!
//! - Initially, only this call is selected. No choice can allow anything.

use super::rows;
use gtk::Orientation;
use gtk::prelude::*;
use ironcurtain_consent::DenialReach;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Callback for changes of the selection.
pub(super) type Changed = Rc<RefCell<Option<Box<dyn Fn()>>>>;

pub(super) struct Denials {
    list: gtk::Box,
    reach: Rc<Cell<DenialReach>>,
    changed: Changed,
}

impl Denials {
    /// Builds the controls. `denial` describes the calls that a denial for the session covers.
    pub(super) fn build(denial: &str) -> Self {
        let this = Self {
            list: gtk::Box::new(Orientation::Vertical, 4),
            reach: Rc::new(Cell::new(DenialReach::Call)),
            changed: Rc::default(),
        };
        let mut first: Option<gtk::RadioButton> = None;
        for (reach, words) in [
            (DenialReach::Call, "Deny this call".to_owned()),
            (DenialReach::Waiting, "Deny this and everything else the agent is waiting for".to_owned()),
            (DenialReach::Session, format!("Deny {denial} until this session ends")),
            (DenialReach::Pause, "Deny, and pause the agent until you resume it".to_owned()),
        ] {
            let radio = rows::radio(&words, first.as_ref());
            let (chosen, changed) = (this.reach.clone(), this.changed.clone());
            radio.connect_toggled(move |radio| {
                if radio.is_active() {
                    chosen.set(reach);
                    if let Some(changed) = changed.borrow().as_ref() {
                        changed();
                    }
                }
            });
            this.list.pack_start(&radio, false, false, 0);
            first.get_or_insert(radio);
        }
        this.list.style_context().add_class("ic-denials");
        rows::describe(&this.list, "What to deny", "");
        this.list.show_all();
        this.list.set_no_show_all(true);
        this.list.hide();
        this
    }

    pub(super) fn widget(&self) -> &gtk::Box {
        &self.list
    }

    pub(super) fn chosen(&self) -> DenialReach {
        self.reach.get()
    }

    pub(super) fn connect_changed(&self, changed: impl Fn() + 'static) {
        self.changed.replace(Some(Box::new(changed)));
    }
}
