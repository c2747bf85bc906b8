//! The Allow button with its label, its hint, and the ring that fills while the user must wait.
//!
//! - The button is never merely greyed out. Each [`Stage`] has a hint with the next step. Screen readers also read the
//!   hint.

use super::rows;
use crate::consent::arming::Stage;
use crate::consent::hint;
use gtk::cairo;
use gtk::prelude::*;
use std::cell::Cell;
use std::f64::consts::{PI, TAU};
use std::rc::Rc;
use std::time::{Duration, Instant};

#[derive(Clone)]
pub(super) struct Allow {
    pub(super) button: gtk::Button,
    /// Hint that tells the user what to do next.
    pub(super) hint: gtk::Label,
    label: gtk::Label,
    ring: gtk::DrawingArea,
    filled: Rc<Cell<f64>>,
    flashes: Rc<Cell<u32>>,
}

/// Duration of the flash after a press that was not accepted.
const FLASH: Duration = Duration::from_millis(350);
const FLASHING: &str = "ic-flash";

impl Allow {
    pub(super) fn build() -> Self {
        let label = gtk::Label::new(None);
        let ring = gtk::DrawingArea::new();
        ring.set_size_request(16, 16);
        ring.set_valign(gtk::Align::Center);
        let content = gtk::Box::new(gtk::Orientation::Horizontal, 8);
        content.pack_start(&ring, false, false, 0);
        content.pack_start(&label, false, false, 0);
        let button = gtk::Button::new();
        button.add(&content);
        button.set_focus_on_click(false);
        button.style_context().add_class("ic-allow");
        let hint = gtk::Label::new(None);
        hint.style_context().add_class("ic-hint");
        let filled = Rc::new(Cell::new(0.0));
        let drawn = Rc::clone(&filled);
        ring.connect_draw(move |ring, context| {
            // If drawing fails, the hint is still visible.
            let _ = draw(ring, context, drawn.get());
            gtk::glib::Propagation::Proceed
        });
        Self { button, hint, label, ring, filled, flashes: Rc::default() }
    }

    pub(super) fn set_words(&self, words: &str) {
        if self.label.text() != words.replace('_', "") {
            self.label.set_text_with_mnemonic(words);
            rows::describe(&self.button, &words.replace('_', ""), &self.hint.text());
        }
    }

    /// Shows a stage. Returns the delay until the button must be redrawn, or `None` if the stage does not change over
    /// time.
    pub(super) fn show(&self, stage: Stage, slow: bool, now: Instant) -> Option<Duration> {
        let (filled, again) = hint::ring(stage, now);
        if (self.filled.replace(filled) - filled).abs() > f64::EPSILON {
            self.ring.queue_draw();
        }
        let hint = hint::text(stage, slow, &self.label.text());
        if self.hint.text() != *hint {
            self.hint.set_text(&hint);
            rows::describe(&self.button, &self.label.text(), &hint);
            rows::announce(&self.button, &hint);
        }
        let style = self.button.style_context();
        if hint::is_armed(stage) {
            style.add_class("ic-armed");
        } else {
            style.remove_class("ic-armed");
        }
        again
    }

    /// Flashes the hint and the ring after a press that was not accepted, and makes screen readers announce the hint
    /// again.
    pub(super) fn flash(&self) {
        rows::announce(&self.button, &self.hint.text());
        for lit in [self.button.style_context(), self.hint.style_context()] {
            lit.add_class(FLASHING);
        }
        let number = self.flashes.get().wrapping_add(1);
        self.flashes.set(number);
        let this = self.clone();
        gtk::glib::timeout_add_local_once(FLASH, move || {
            if this.flashes.get() == number {
                for lit in [this.button.style_context(), this.hint.style_context()] {
                    lit.remove_class(FLASHING);
                }
            }
        });
    }

    /// Returns `true` if this point, in window coordinates, is on the button.
    pub(super) fn has(&self, window: &gtk::Dialog, x: f64, y: f64) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "a point of a screen")]
        let point = window.translate_coordinates(&self.button, x as i32, y as i32);
        point.is_some_and(|(x, y)| self.holds(x, y))
    }

    /// Returns `true` if this point, in button coordinates, is on the button.
    pub(super) fn holds(&self, x: i32, y: i32) -> bool {
        let size = self.button.allocation();
        (0..size.width()).contains(&x) && (0..size.height()).contains(&y)
    }
}

fn draw(ring: &gtk::DrawingArea, context: &cairo::Context, filled: f64) -> Result<(), cairo::Error> {
    let ink = ring.style_context().color(ring.state_flags());
    let (x, y) = (f64::from(ring.allocated_width()) / 2.0, f64::from(ring.allocated_height()) / 2.0);
    let radius = x.min(y) - 1.5;
    context.set_line_width(2.0);
    context.set_source_rgba(ink.red(), ink.green(), ink.blue(), 0.3);
    context.arc(x, y, radius, 0.0, TAU);
    context.stroke()?;
    context.set_source_rgba(ink.red(), ink.green(), ink.blue(), 1.0);
    context.arc(x, y, radius, -PI / 2.0, TAU.mul_add(filled, -PI / 2.0));
    context.stroke()?;
    if filled >= 1.0 {
        context.arc(x, y, radius - 3.0, 0.0, TAU);
        context.fill()?;
    }
    Ok(())
}
