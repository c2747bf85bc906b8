"""A fake login manager (logind), controlled by lines on standard input: `lock` and `unlock` set the session's
screen lock, and `sleep` and `wake` announce suspend and resume.

With the argument `locked`, the screen is locked from the start.
"""
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME, MANAGER = "org.freedesktop.login1", "/org/freedesktop/login1"
SESSION, USER = f"{MANAGER}/session/_31", f"{MANAGER}/user/_1000"
XML = f"""<node><interface name="{NAME}.Manager">
<method name="GetSession"><arg type="s" direction="in"/><arg type="o" direction="out"/></method>
<method name="GetUser"><arg type="u" direction="in"/><arg type="o" direction="out"/></method>
</interface><interface name="{NAME}.Session"><property name="LockedHint" type="b" access="read"/>
<property name="Type" type="s" access="read"/><property name="Display" type="s" access="read"/>
<property name="Remote" type="b" access="read"/></interface>
<interface name="{NAME}.User"><property name="Display" type="(so)" access="read"/></interface></node>"""
locked = "locked" in sys.argv
display = next((word.removeprefix("display=") for word in sys.argv if word.startswith("display=")), "")
manager, session, user = Gio.DBusNodeInfo.new_for_xml(XML).interfaces
bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)


def call(_bus, _sender, _path, _interface, method, _arguments, invocation):
    invocation.return_value(GLib.Variant("(o)", (USER if method == "GetUser" else SESSION,)))


def get(_bus, _sender, path, _interface, name):
    if path == USER:
        return GLib.Variant("(so)", ("1", SESSION))
    values = {"Type": ("s", "x11"), "Display": ("s", display), "Remote": ("b", False), "LockedHint": ("b", locked)}
    return GLib.Variant(*values[name])


def read(source, _condition):
    global locked
    word = source.readline().strip()
    if not word:
        return False
    if word in ("sleep", "wake"):
        begins = GLib.Variant("(b)", (word == "sleep",))
        bus.emit_signal(None, MANAGER, f"{NAME}.Manager", "PrepareForSleep", begins)
        print("told", flush=True)
        return True
    locked = word == "lock"
    changed = GLib.Variant("(sa{sv}as)", (f"{NAME}.Session", {"LockedHint": GLib.Variant("b", locked)}, []))
    bus.emit_signal(None, SESSION, "org.freedesktop.DBus.Properties", "PropertiesChanged", changed)
    print("told", flush=True)
    return True


bus.register_object(MANAGER, manager, call, None, None)
bus.register_object(SESSION, session, None, get, None)
bus.register_object(USER, user, None, get, None)
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print("ready", flush=True), None)
GLib.io_add_watch(sys.stdin, GLib.IO_IN, read)
GLib.MainLoop().run()
