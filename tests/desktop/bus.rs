//! Makes D-Bus calls from the test process itself. Starting a program for each call would use most of a test's CPU
//! time.

use crate::screen::TIMEOUT;
use gtk::gio::{Cancellable, DBusCallFlags, DBusConnection, DBusConnectionFlags};
use gtk::glib::{Error, MainContext, Variant};

/// A connection to a message bus.
pub(crate) struct Bus(DBusConnection);

/// D-Bus object: the program's name on the bus, and the object's path.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) program: String,
    pub(crate) path: String,
}

impl Object {
    pub(crate) fn new(program: &str, path: &str) -> Self {
        Self { program: program.to_owned(), path: path.to_owned() }
    }
}

impl Bus {
    pub(crate) fn connect(address: &str) -> Self {
        let flags = DBusConnectionFlags::AUTHENTICATION_CLIENT | DBusConnectionFlags::MESSAGE_BUS_CONNECTION;
        let connection = DBusConnection::for_address_sync(address, flags, None, None::<&Cancellable>);
        Self(connection.unwrap_or_else(|error| panic!("cannot connect to the bus `{address}`: {error}")))
    }

    /// Calls a method and returns its results.
    pub(crate) async fn call(
        &self,
        object: &Object,
        interface: &str,
        method: &str,
        arguments: Option<Variant>,
    ) -> Result<Variant, Error> {
        let (program, path) = (Some(object.program.as_str()), object.path.as_str());
        let limit = i32::try_from(TIMEOUT.as_millis()).expect("a limit that fits");
        let arguments = arguments.as_ref();
        self.0
            .call_future(program, path, interface, method, arguments, None, DBusCallFlags::NONE, limit)
            .await
    }

    /// Returns a property, or `None` if the object or the property does not exist.
    pub(crate) async fn property(&self, object: &Object, interface: &str, name: &str) -> Option<Variant> {
        let arguments = Some((interface, name).into());
        let reply = self.call(object, "org.freedesktop.DBus.Properties", "Get", arguments).await.ok()?;
        reply.try_child_value(0)?.as_variant()
    }

    /// Returns `true` if a program has this name on the bus.
    pub(crate) fn has(&self, name: &str) -> bool {
        let bus = Object::new("org.freedesktop.DBus", "/org/freedesktop/DBus");
        let arguments = Some((name,).into());
        let reply = wait_for(self.call(&bus, "org.freedesktop.DBus", "NameHasOwner", arguments));
        reply.ok().and_then(|reply| reply.get()) == Some((true,))
    }
}

/// Returns `true` if the program exited before it replied.
pub(crate) fn is_missing_reply(error: &Error) -> bool {
    error.message().contains("org.freedesktop.DBus.Error.NoReply")
}

/// Waits for calls in this thread.
pub(crate) fn wait_for<T>(calls: impl Future<Output = T>) -> T {
    let context = MainContext::new();
    context.with_thread_default(|| context.block_on(calls)).expect("a context that no other thread uses")
}
