"""Reads and presses the tray item over D-Bus, as a panel does.

tray.py read            prints the item's title, icon file, label and menu items as one JSON object
tray.py press LABEL     activates the menu item with that label
"""
import json
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

WATCHER, ITEM, MENU = "org.kde.StatusNotifierWatcher", "org.kde.StatusNotifierItem", "com.canonical.dbusmenu"
bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)


def call(name, path, interface, method, arguments, signature):
    reply = bus.call_sync(name, path, interface, method, arguments, GLib.VariantType(signature), 0, 5000, None)
    return reply.unpack()


def get(name, path, interface, prop):
    arguments = GLib.Variant("(ss)", (interface, prop))
    return call(name, path, "org.freedesktop.DBus.Properties", "Get", arguments, "(v)")[0]


def lines(node, depth=0):
    number, props, children = node
    if depth:
        label = props.get("label", "---").replace("__", "\0").replace("_", "").replace("\0", "_")
        yield number, depth, label, props.get("enabled", True)
    for child in children:
        yield from lines(child, depth + 1)


item = get(WATCHER, "/StatusNotifierWatcher", WATCHER, "RegisteredStatusNotifierItems")[0]
name, _, path = item.partition("/")
path = "/" + path
menu = get(name, path, ITEM, "Menu")
call(name, menu, MENU, "AboutToShow", GLib.Variant("(i)", (0,)), "(b)")
layout = call(name, menu, MENU, "GetLayout", GLib.Variant("(iias)", (0, -1, [])), "(u(ia{sv}av))")[1]
found = list(lines(layout))
if sys.argv[1] == "read":
    title, icon, label = (get(name, path, ITEM, prop) for prop in ("Title", "IconName", "XAyatanaLabel"))
    shown = [[depth, label, enabled] for _, depth, label, enabled in found]
    print(json.dumps({"title": title, "icon": icon, "label": label, "menu": shown}))
else:
    number = next(number for number, _, label, _ in found if label == sys.argv[2])
    event = GLib.Variant("(isvu)", (number, "clicked", GLib.Variant("i", 0), 0))
    try:
        call(name, menu, MENU, "Event", event, "()")
    except GLib.Error as error:
        # Quit may exit the app before it replies.
        if not error.matches(Gio.dbus_error_quark(), Gio.DBusError.NO_REPLY):
            raise
    print("done")
