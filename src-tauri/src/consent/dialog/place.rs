//! The place of Allow: never where the last dialog had it.

use super::Inner;
use gtk::gdk;
use gtk::prelude::*;
use std::rc::Rc;

/// The place of a dialog's Allow, which the next one's is not to have.
#[derive(Debug, Clone, Copy)]
pub(in crate::consent) struct AllowPlace {
    pub(super) mirrored: bool,
    /// On the screen; none where places are not told.
    on_screen: Option<gdk::Rectangle>,
}

impl Inner {
    /// The place that it has now.
    pub(super) fn allow_place(&self) -> AllowPlace {
        AllowPlace { mirrored: self.mirrored.get(), on_screen: self.allow_on_screen() }
    }

    /// Puts Allow at the other end of its row where it would lie on the last one's place.
    pub(super) fn keep_away(self: &Rc<Self>) {
        let last = self.last.and_then(|last| last.on_screen);
        if let (Some(last), Some(now)) = (last, self.allow_on_screen())
            && last.intersect(&now).is_some()
        {
            self.mirror(!self.mirrored.get());
        }
    }

    pub(super) fn mirror(&self, mirrored: bool) {
        self.mirrored.set(mirrored);
        self.layout.mirror(mirrored);
    }

    fn allow_on_screen(&self) -> Option<gdk::Rectangle> {
        let button = &self.layout.allow.button;
        let (_, x, y) = self.layout.window.window()?.origin();
        let (left, top) = button.translate_coordinates(&self.layout.window, 0, 0)?;
        let size = button.allocation();
        Some(gdk::Rectangle::new(x + left, y + top, size.width(), size.height()))
    }
}
