//! Detects whether a panel shows tray icons.
//!
//! - Current panels register a `StatusNotifierWatcher` on the session bus. Older panels, such as `tint2`, own the
//!   XEmbed system tray selection, and the tray library embeds the icon in them as a window.

use gtk::prelude::*;
use gtk::{gdk, gio};
use x11rb::connection::Connection;
use x11rb::errors::ReplyError;
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;

/// Sets the icon's name. Panels show it as a tooltip, because the tray library sends no tooltip on Linux. The first
/// menu entry contains the state.
pub(super) fn name_icon() {
    gtk::glib::set_application_name("IronCurtain Desktop");
}

/// Returns `true` if a panel can show the icon.
pub(super) fn shows_icons() -> bool {
    has_notifier_watcher() || has_embedding_tray()
}

fn has_notifier_watcher() -> bool {
    use gtk::glib::{ToVariant, VariantTy};
    let Ok(bus) = gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE) else { return false };
    let reply = bus.call_sync(
        Some("org.freedesktop.DBus"),
        "/org/freedesktop/DBus",
        "org.freedesktop.DBus",
        "NameHasOwner",
        Some(&("org.kde.StatusNotifierWatcher",).to_variant()),
        VariantTy::new("(b)").ok(),
        gio::DBusCallFlags::NONE,
        500,
        gio::Cancellable::NONE,
    );
    reply.is_ok_and(|answer| answer.get::<(bool,)>().is_some_and(|(owned,)| owned))
}

fn has_embedding_tray() -> bool {
    let display = gdk::Display::default().filter(|display| display.backend().is_x11());
    let connected = display.and_then(|display| RustConnection::connect(Some(&display.name())).ok());
    connected.is_some_and(|(screen, number)| tray_owner(&screen, number).is_ok_and(|owner| owner != 0))
}

/// Returns the window that owns this screen's system tray, or 0 if there is none.
fn tray_owner(screen: &RustConnection, number: usize) -> Result<u32, ReplyError> {
    let name = format!("_NET_SYSTEM_TRAY_S{number}");
    let selection = screen.intern_atom(false, name.as_bytes())?.reply()?.atom;
    screen.flush()?;
    Ok(screen.get_selection_owner(selection)?.reply()?.owner)
}
