//! Detects windows that cover the dialog, as far as the display server permits.
//!
//! - If covering windows cannot be detected, Allow must be held for everything but reading one file.

use super::Inner;
use crate::consent::arming::{Event, InView};
use crate::consent::occlusion::OcclusionWatch;
use crate::window_stack;
use gtk::glib;
use gtk::prelude::*;
use std::rc::Rc;
use std::time::Instant;
use tokio::sync::mpsc;

impl Inner {
    /// Returns `true` if Allow must be held, because it allows more than reading a file and covering windows cannot be
    /// detected.
    pub(super) fn needs_holding(&self) -> bool {
        let (offer, _) = self.layout.choices.chosen();
        let little = self.view.choices.get(offer).is_some_and(|choice| choice.reads_one_file);
        !little && !self.can_detect_occlusion()
    }

    /// Returns `true` if covering windows can be detected. On Wayland, programs cannot see the windows above their
    /// own.
    pub(super) fn can_detect_occlusion(&self) -> bool {
        self.covers.borrow().is_some()
    }

    /// Starts watching the windows above the dialog, if the display server supports it.
    pub(super) fn watch_occlusion(self: &Rc<Self>) {
        let Some(number) =
            window_stack::x11_id(&self.layout.window).and_then(|number| u32::try_from(number).ok())
        else {
            return;
        };
        let display = WidgetExt::display(&self.layout.window).name();
        let (tell, mut told) = mpsc::unbounded_channel();
        // Ignores reports that arrive after the dialog was closed.
        match OcclusionWatch::start(&display, number, move |in_view| {
            let _ = tell.send(in_view);
        }) {
            Ok(watch) => drop(self.covers.replace(Some(watch))),
            Err(error) => return tracing::warn!(%error, "cannot detect windows above the dialog"),
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

    /// Checks the windows above the dialog again before a press is accepted, because a recent change may not have been
    /// reported yet.
    pub(super) fn check_occlusion(&self, now: Instant) {
        let in_view = self.visibility();
        self.seen.set(in_view == InView::Whole);
        let _ = self.arming.borrow_mut().on(Event::InView(in_view), now);
    }

    /// Returns the dialog's visibility, as far as it can be determined.
    pub(super) fn visibility(&self) -> InView {
        let by_stacking = self.covers.borrow().as_ref().map_or(InView::Whole, OcclusionWatch::visibility);
        self.in_view(by_stacking)
    }

    /// Combines the visibility from the stacking order with the X server's report. The report is reliable only without
    /// a compositor.
    fn in_view(&self, by_stacking: InView) -> InView {
        if by_stacking == InView::Whole && !self.unobscured.get() { InView::Covered } else { by_stacking }
    }
}
