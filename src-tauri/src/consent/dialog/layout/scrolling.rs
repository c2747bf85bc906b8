//! Fits the dialog to the screen, and scrolls the parts that must be read.

use super::Layout;
use crate::consent::dialog::rows::{self, Block};
use crate::consent::read_progress::Extent;
use gtk::prelude::*;

/// Maximum height of the part above the choices, in percent of the screen (`SCREEN_SHARE`), and its minimum height in
/// pixels.
const SCREEN_SHARE: i32 = 50;
const MIN_HEIGHT: i32 = 120;
/// Height in pixels reserved for the window manager's frame.
const FRAME: i32 = 48;

impl Layout {
    /// Returns the extent and scroll offset of each part that must be read, beginning with the question. Parts that
    /// are not laid out yet are `None`.
    pub(in crate::consent::dialog) fn reading(&self) -> Vec<Option<(Extent, f64)>> {
        let outcome = {
            let at = self.outcome_room.vadjustment();
            (Extent { height: at.upper(), room: at.page_size() }, at.value())
        };
        let parts = self.blocks.iter().map(Block::extent).chain([Some(outcome)]);
        std::iter::once(self.body_extent()).chain(parts).collect()
    }

    fn body_extent(&self) -> Option<(Extent, f64)> {
        let at = self.upper.vadjustment();
        let body = self.upper.child()?.downcast::<gtk::Viewport>().ok()?.child()?;
        let (_, end) = self.required.translate_coordinates(&body, 0, self.required.allocated_height())?;
        Some((Extent { height: f64::from(end), room: at.page_size() }, at.value()))
    }

    /// Returns the scroll adjustments of all parts that must be read, in the order of [`Layout::reading`].
    pub(in crate::consent::dialog) fn scrolled(&self) -> Vec<gtk::Adjustment> {
        let blocks = self.blocks.iter().map(Block::adjustment);
        let ends = [self.outcome_room.vadjustment()];
        std::iter::once(self.upper.vadjustment()).chain(blocks).chain(ends).collect()
    }

    /// Limits the height of both scrolling parts so that the window with its frame fits into the work area, with the
    /// text about the effect and the buttons on the screen.
    pub(in crate::consent::dialog) fn fit(&self) {
        let screen = rows::screen_size().1;
        let choosing = self.choosing.preferred_height().1.max(1);
        let upper = (screen * SCREEN_SHARE / 100).max(MIN_HEIGHT);
        self.lower.set_max_content_height(choosing);
        self.upper.set_max_content_height(upper);
        let too_high = || (self.window.preferred_height().1 - (screen - FRAME)).max(0);
        let over = too_high();
        if over > 0 {
            // A window that is not drawn yet may still grow, because the height of text is known only after layout.
            let drawn = self.upper.preferred_height().1.min(upper);
            self.upper.set_max_content_height((drawn - over).clamp(MIN_HEIGHT, upper));
        }
        let left = (choosing - too_high()).max(MIN_HEIGHT.min(choosing));
        self.lower.set_max_content_height(left);
    }

    /// From now on, scrolls to the control that receives the focus. Must be called after the window is shown, so that
    /// the dialog starts at its top rather than at its first control.
    pub(in crate::consent::dialog) fn scroll_to_focus(&self) {
        if let Some(body) =
            self.upper.child().and_then(|viewport| viewport.downcast::<gtk::Viewport>().ok()?.child())
            && let Ok(body) = body.downcast::<gtk::Box>()
        {
            body.set_focus_vadjustment(&self.upper.vadjustment());
        }
    }

    /// Scrolls the part at the index `unread` of [`Layout::reading`] by a number of pages. Scrolls the question instead
    /// if `unread` is `None` or `pages` is not positive.
    pub(in crate::consent::dialog) fn scroll(&self, unread: Option<usize>, pages: f64) {
        let part = unread.filter(|_| pages > 0.0).unwrap_or_default();
        if let Some(block) = part.checked_sub(1).and_then(|at| self.blocks.get(at)) {
            self.bring_into_view(&block.expander);
        }
        if let Some(at) = self.scrolled().get(part) {
            at.set_value(at.value() + pages * at.page_size() * 0.9);
        }
    }

    fn bring_into_view(&self, widget: &impl IsA<gtk::Widget>) {
        let body = self.upper.child().and_then(|viewport| viewport.downcast::<gtk::Viewport>().ok()?.child());
        let top = body.and_then(|body| widget.translate_coordinates(&body, 0, 0));
        if let Some((_, top)) = top {
            let bottom = top + widget.allocated_height();
            self.upper.vadjustment().clamp_page(f64::from(top), f64::from(bottom));
        }
    }
}
