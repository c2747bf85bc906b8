"""A notification service that appends each notification to a file as one JSON object per line.

A line `NUMBER ACTION` on standard input simulates a click on that notification.
"""
import json
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME = "org.freedesktop.Notifications"
XML = f"""<node><interface name="{NAME}">
<method name="GetCapabilities"><arg type="as" direction="out"/></method>
<method name="GetServerInformation"><arg type="s" direction="out"/><arg type="s" direction="out"/>
<arg type="s" direction="out"/><arg type="s" direction="out"/></method>
<method name="CloseNotification"><arg type="u" direction="in"/></method>
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{{sv}}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
</interface></node>"""


def call(_bus, _sender, _path, _interface, method, arguments, invocation):
    if method == "Notify":
        app, _replaces, _icon, summary, body, actions, _hints, _timeout = arguments.unpack()
        with open(sys.argv[1], "a", encoding="utf-8") as out:
            told = {"app": app, "summary": summary, "body": body, "actions": actions}
            out.write(json.dumps(told) + "\n")
        invocation.return_value(GLib.Variant("(u)", (1,)))
    elif method == "GetCapabilities":
        invocation.return_value(GLib.Variant("(as)", (["body", "body-markup", "actions"],)))
    elif method == "GetServerInformation":
        invocation.return_value(GLib.Variant("(ssss)", ("recorder", "tests", "1", "1.2")))
    else:
        invocation.return_value(None)


def press(*_):
    line = sys.stdin.readline()
    if line:
        number, action = line.split()
        told = GLib.Variant("(us)", (int(number), action))
        bus.emit_signal(None, "/org/freedesktop/Notifications", NAME, "ActionInvoked", told)
    return bool(line)


bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
bus.register_object("/org/freedesktop/Notifications", Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0], call)
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: print("ready"), None)
GLib.io_add_watch(0, GLib.IO_IN, press)
GLib.MainLoop().run()
