//! Limits the app to one instance per desktop session. A second instance opens the first instance's window and exits.
//!
//! - Implements `org.freedesktop.Application`, the D-Bus interface through which desktops start programs. The app's
//!   launcher in the desktop therefore has the same effect.
//! - Any process on the session bus can call this interface, but the only effect is opening the window.

#[cfg(target_os = "linux")]
pub(crate) use linux::{activate_running, answer};

#[cfg(target_os = "linux")]
mod linux {
    use gtk::gio::{self, prelude::*};
    use std::time::Duration;

    /// The app's bus name, from which desktops derive the object path to call.
    const NAME: &str = "io.github.ironcurtain-desktop";
    const OBJECT: &str = "/io/github/ironcurtain_desktop";
    const INTERFACE: &str = "org.freedesktop.Application";
    /// Timeout for a reply. A running app replies immediately, so a missing reply means that it hangs.
    const TIMEOUT: Duration = Duration::from_secs(3);

    /// Opens the running app's window. Returns `false` if no app replies.
    pub(crate) fn activate_running() -> bool {
        let Ok(bus) = gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE) else { return false };
        let nothing = gtk::glib::VariantDict::new(None).end();
        let arguments = gtk::glib::Variant::tuple_from_iter([nothing]);
        let patience = i32::try_from(TIMEOUT.as_millis()).unwrap_or(i32::MAX);
        let flags = gio::DBusCallFlags::NO_AUTO_START;
        let none = gio::Cancellable::NONE;
        bus.call_sync(
            Some(NAME),
            OBJECT,
            INTERFACE,
            "Activate",
            Some(&arguments),
            None,
            flags,
            patience,
            none,
        )
        .is_ok()
    }

    /// Calls `open` whenever the app is started again, until the returned value is dropped. Must be called on the main
    /// thread.
    pub(crate) fn answer(open: impl Fn() + 'static) -> gio::Application {
        let application = gio::Application::new(Some(NAME), gio::ApplicationFlags::FLAGS_NONE);
        application.connect_activate(move |_| open());
        if let Err(error) = application.register(gio::Cancellable::NONE) {
            tracing::info!(%error, "no session bus: starting the program again will not open the window");
        }
        application
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{activate_running, answer};

/// Stubs for other platforms. A second start there only reports that the app is already running.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn activate_running() -> bool {
        false
    }

    pub(crate) fn answer(_: impl Fn() + 'static) {}
}
