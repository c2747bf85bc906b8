//! Tells when the screen is locked: nobody can be asked then, and no key or click is an answer.
//!
//! - What the login manager (logind) says of this session, on the system's bus. Where there is none, nobody is ever away.

use super::Command;
use gtk::gio::{self, prelude::*};
use gtk::glib::{self, Variant, VariantDict};
use tokio::sync::mpsc::WeakUnboundedSender;

const LOGIND: &str = "org.freedesktop.login1";
const MANAGER: &str = "/org/freedesktop/login1";
const SESSION: &str = "org.freedesktop.login1.Session";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// The property that lock screens set.
const LOCKED: &str = "LockedHint";
/// The time within which it answers, in milliseconds.
const PATIENCE: i32 = 5_000;

/// Tells the queue of every change, for as long as the app runs. To be run on the main thread.
pub(super) async fn follow(queue: WeakUnboundedSender<Command>) -> std::convert::Infallible {
    // The subscription lives as long as its bus.
    let bus = begin(&queue).await;
    if let Err(error) = &bus {
        tracing::info!(%error, "whether the screen is locked is not known");
    }
    std::future::pending().await
}

async fn begin(queue: &WeakUnboundedSender<Command>) -> Result<gio::DBusConnection, glib::Error> {
    let bus = gio::bus_get_future(gio::BusType::System).await?;
    let ask = |path: &str, interface: &str, method: &str, arguments: Variant| {
        let flags = gio::DBusCallFlags::NONE;
        bus.call_future(Some(LOGIND), path, interface, method, Some(&arguments), None, flags, PATIENCE)
    };
    let found = ask(MANAGER, "org.freedesktop.login1.Manager", "GetSession", ("auto",).to_variant()).await?;
    let session = found.child_value(0).str().unwrap_or_default().to_owned();
    let told = queue.clone();
    bus.signal_subscribe(
        Some(LOGIND),
        Some(PROPERTIES),
        Some("PropertiesChanged"),
        Some(&session),
        Some(SESSION),
        gio::DBusSignalFlags::NONE,
        move |_, _, _, _, _, changed| {
            if changed.n_children() > 1
                && let Ok(Some(locked)) =
                    VariantDict::new(Some(&changed.child_value(1))).lookup::<bool>(LOCKED)
            {
                tell(&told, locked);
            }
        },
    );
    let now = ask(&session, PROPERTIES, "Get", (SESSION, LOCKED).to_variant()).await?;
    tell(queue, now.child_value(0).as_variant().and_then(|value| value.get::<bool>()).unwrap_or(false));
    Ok(bus)
}

fn tell(queue: &WeakUnboundedSender<Command>, locked: bool) {
    // Without a queue there is nothing to hide.
    if let Some(queue) = queue.upgrade() {
        let _ = queue.send(Command::Away(locked));
    }
}
