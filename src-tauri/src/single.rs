//! One app for each desktop session: a second start brings the window of the first, and ends.
//!
//! - By the interface that desktops start programs with (`org.freedesktop.Application`), so a desktop's own launcher does the same.
//! - Whoever is on the bus can ask for it. All that comes of it is the window.

#[cfg(target_os = "linux")]
pub(crate) use linux::{activate_running, answer};

#[cfg(target_os = "linux")]
mod linux {
    use gtk::gio::{self, prelude::*};
    use std::time::Duration;

    /// The name on the bus, and the object that desktops look for under it.
    const NAME: &str = "io.github.ironcurtain-desktop";
    const OBJECT: &str = "/io/github/ironcurtain_desktop";
    const INTERFACE: &str = "org.freedesktop.Application";
    /// A running app answers at once; one that hangs is none.
    const PATIENCE: Duration = Duration::from_secs(3);

    /// Opens the window of the app that runs. `false` where none answers.
    pub(crate) fn activate_running() -> bool {
        let Ok(bus) = gio::bus_get_sync(gio::BusType::Session, gio::Cancellable::NONE) else { return false };
        let nothing = gtk::glib::VariantDict::new(None).end();
        let arguments = gtk::glib::Variant::tuple_from_iter([nothing]);
        let patience = i32::try_from(PATIENCE.as_millis()).unwrap_or(i32::MAX);
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

    /// Opens the window for every later start. Call it on the main thread, which has to keep what it returns.
    pub(crate) fn answer(open: impl Fn() + 'static) -> gio::Application {
        let application = gio::Application::new(Some(NAME), gio::ApplicationFlags::FLAGS_NONE);
        application.connect_activate(move |_| open());
        if let Err(error) = application.register(gio::Cancellable::NONE) {
            tracing::info!(%error, "a second start cannot bring the window: there is no session bus");
        }
        application
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{activate_running, answer};

/// Elsewhere a second start says that the first runs.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn activate_running() -> bool {
        false
    }

    pub(crate) fn answer(_: impl Fn() + 'static) {}
}
