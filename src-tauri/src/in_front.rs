//! Windows come to the front when the person asks for them, under every window manager.
//!
//! - A manager that keeps programs from stealing the focus compares when the person last did something in each. Who asks for a window
//!   of ours did so elsewhere: in the panel, in a terminal, or on the page, which is a process of its own. So the moment counts
//!   at which it is shown, and not that of the last key or click in this process, which may have been yesterday.
//! - INVARIANT: only for what a person asked for. A dialog that comes by itself takes no keyboard.

use gdkx11::{X11Window, functions::x11_get_server_time};
use gtk::gdk;
use gtk::prelude::*;

/// Shows a window before all others, with the keyboard.
pub(crate) fn bring(window: &impl IsA<gtk::Window>) {
    let window = window.as_ref();
    window.realize();
    if let Some(ours) = on_x(window) {
        let now = x11_get_server_time(&ours);
        ours.set_user_time(now);
        window.present_with_time(now);
    } else {
        // On Wayland no program brings a window to the front that is open, but one that opens comes there.
        if !window.is_active() {
            window.hide();
        }
        window.show();
    }
}

/// The number of a window that is realized, by which its screen's server knows it; none elsewhere than on X.
pub(crate) fn number(window: &impl IsA<gtk::Window>) -> Option<u64> {
    on_x(window.as_ref()).map(|ours| ours.xid())
}

/// Has a window stand before that of another process, as if it belonged to that. A number that is no window's changes nothing.
pub(crate) fn stand_before(window: &impl IsA<gtk::Window>, other: u64) {
    let window = window.as_ref();
    window.realize();
    if let Some(ours) = on_x(window) {
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

fn on_x(window: &gtk::Window) -> Option<X11Window> {
    window.window()?.downcast().ok()
}
