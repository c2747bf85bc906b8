//! Moves Allow away from its position in the previous dialog.

use super::Inner;
use gtk::gdk;
use gtk::prelude::*;
use std::rc::Rc;

/// Position of Allow in a dialog. The next dialog must not use the same position.
#[derive(Debug, Clone, Copy)]
pub(in crate::consent) struct AllowPosition {
    pub(super) mirrored: bool,
    /// Screen coordinates, or `None` if the display server does not report them.
    on_screen: Option<gdk::Rectangle>,
}

impl Inner {
    /// Returns the current position of Allow.
    pub(super) fn allow_position(&self) -> AllowPosition {
        AllowPosition { mirrored: self.mirrored.get(), on_screen: self.allow_on_screen() }
    }

    /// Moves Allow to the other end of its row if it would overlap its position in the previous dialog.
    pub(super) fn avoid_last_allow_position(self: &Rc<Self>) {
        let last = self.last_allow.and_then(|last| last.on_screen);
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
