"""A fake systemd user manager that reports the environment variables given as arguments."""
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME = "org.freedesktop.systemd1"
XML = f"""<node><interface name="{NAME}.Manager">
<property name="Environment" type="as" access="read"/>
</interface></node>"""


def get(_bus, _sender, _path, _interface, _property):
    return GLib.Variant("as", sys.argv[1:])


bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
interface = Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0]
bus.register_object("/org/freedesktop/systemd1", interface, None, get, None)
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print("ready", flush=True), None)
GLib.MainLoop().run()
