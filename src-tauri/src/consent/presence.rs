//! Reports when the screen is locked and when the machine sleeps. The user cannot answer at these times, and the key or
//! click that unlocks or wakes the machine must not count as an answer.
//!
//! - Subscribes to logind on the system bus. No question is shown before logind's first reply. Without logind, the
//!   user always counts as present.

use super::Command;
use gtk::gio::{self, prelude::*};
use gtk::glib::{self, Variant, VariantDict};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::sync::mpsc::WeakUnboundedSender;

const LOGIND: &str = "org.freedesktop.login1";
const MANAGER: &str = "/org/freedesktop/login1";
const MANAGER_INTERFACE: &str = "org.freedesktop.login1.Manager";
const SESSION: &str = "org.freedesktop.login1.Session";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// D-Bus property set by lock screens.
const LOCKED: &str = "LockedHint";
/// Timeout for a reply in milliseconds.
const TIMEOUT: i32 = 5_000;

/// Returns the total time that the machine has slept since boot. The clocks reveal sleep before programs are notified
/// of it.
pub(super) fn asleep() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let awake = read(ClockId::Monotonic);
    read(ClockId::Boottime).saturating_sub(awake)
}

/// Sends every change to the queue while the app is running. Must be called on the main thread.
pub(super) async fn follow(queue: WeakUnboundedSender<Command>) -> std::convert::Infallible {
    // Dropping the bus connection ends the subscription.
    let bus = begin(&queue).await;
    if let Err(error) = &bus {
        tracing::info!(%error, "cannot detect a locked screen or a sleeping machine");
        send(&queue, Command::Locked(false));
    }
    std::future::pending().await
}

async fn begin(queue: &WeakUnboundedSender<Command>) -> Result<gio::DBusConnection, glib::Error> {
    let bus = gio::bus_get_future(gio::BusType::System).await?;
    let sender = queue.clone();
    bus.signal_subscribe(
        Some(LOGIND),
        Some(MANAGER_INTERFACE),
        Some("PrepareForSleep"),
        Some(MANAGER),
        None,
        gio::DBusSignalFlags::NONE,
        move |_, _, _, _, _, begins| {
            if let Some(asleep) = begins.try_child_value(0).and_then(|begins| begins.get::<bool>()) {
                send(&sender, Command::Asleep(asleep));
            }
        },
    );
    let ask = |path: &str, interface: &str, method: &str, arguments: Variant| {
        let flags = gio::DBusCallFlags::NONE;
        bus.call_future(Some(LOGIND), path, interface, method, Some(&arguments), None, flags, TIMEOUT)
    };
    let found = ask(MANAGER, MANAGER_INTERFACE, "GetSession", ("auto",).to_variant()).await?;
    let session = found.child_value(0).str().unwrap_or_default().to_owned();
    let sender = queue.clone();
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
                send(&sender, Command::Locked(locked));
            }
        },
    );
    let now = ask(&session, PROPERTIES, "Get", (SESSION, LOCKED).to_variant()).await?;
    let locked = now.child_value(0).as_variant().and_then(|value| value.get::<bool>());
    send(queue, Command::Locked(locked.unwrap_or(false)));
    Ok(bus)
}

fn send(queue: &WeakUnboundedSender<Command>, command: Command) {
    // If the queue no longer exists, nothing is shown.
    if let Some(queue) = queue.upgrade() {
        let _ = queue.send(command);
    }
}
