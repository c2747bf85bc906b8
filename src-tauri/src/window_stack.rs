//! Brings windows to the front at the user's request, under any window manager.
//!
//! - Window managers that prevent focus stealing compare the times of the last user action in each window. The user
//!   requests our window outside this process: in the panel, in a terminal or on the page. The window therefore uses
//!   the time at which it is shown rather than the time of this process's last input, which may be a day old.
//! - INVARIANT: used only for windows that the user requested. A dialog that opens on its own never takes the keyboard
//!   focus.

use gdkx11::{X11Window, functions::x11_get_server_time};
use gtk::gdk;
use gtk::prelude::*;

/// Raises a window above all others and gives it the keyboard focus.
pub(crate) fn raise(window: &impl IsA<gtk::Window>) {
    let window = window.as_ref();
    window.realize();
    if let Some(ours) = x11_window(window) {
        let now = x11_get_server_time(&ours);
        ours.set_user_time(now);
        window.present_with_time(now);
    } else {
        // On Wayland, a program cannot raise an open window, but a newly shown window appears in front.
        if !window.is_active() {
            window.hide();
        }
        window.show();
    }
}

/// Returns the X11 window id of a realized window, or `None` on other display servers.
pub(crate) fn x11_id(window: &impl IsA<gtk::Window>) -> Option<u64> {
    x11_window(window.as_ref()).map(|ours| ours.xid())
}

/// Makes a window transient for another process's window, so that it stays above that window. Invalid ids are ignored.
pub(crate) fn set_transient_for(window: &impl IsA<gtk::Window>, other: u64) {
    let window = window.as_ref();
    window.realize();
    if let Some(ours) = x11_window(window) {
        let [property, kind] = ["WM_TRANSIENT_FOR", "WINDOW"].map(gdk::Atom::intern);
        gdk::property_change(
            ours.upcast_ref(),
            &property,
            &kind,
            32,
            gdk::PropMode::Replace,
            gdk::ChangeData::ULongs(&[other]),
        );
    }
}

fn x11_window(window: &gtk::Window) -> Option<X11Window> {
    window.window()?.downcast().ok()
}
