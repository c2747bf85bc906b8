"""A file chooser portal that records its requests, and a program that sends one.

portal.py serve FILE    appends the title of each request to FILE
portal.py ask TITLE     opens GTK's native chooser, which uses the portal if GTK_USE_PORTAL is 1
"""
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME, CHOOSER = "org.freedesktop.portal.Desktop", "org.freedesktop.portal.FileChooser"
PATH = "/org/freedesktop/portal/desktop"
ARGUMENTS = "".join(f'<arg type="{kind}" direction="in"/>' for kind in ("s", "s", "a{sv}")) + '<arg type="o" direction="out"/>'
XML = f"""<node><interface name="{CHOOSER}"><method name="OpenFile">{ARGUMENTS}</method><method name="SaveFile">{ARGUMENTS}</method>
<property name="version" type="u" access="read"/></interface></node>"""


def call(_bus, _sender, _path, _interface, _method, arguments, invocation):
    with open(sys.argv[2], "a", encoding="utf-8") as out:
        out.write(arguments.unpack()[1] + "\n")
    invocation.return_value(GLib.Variant("(o)", (PATH + "/request/1/1",)))


def serve():
    bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
    interface = Gio.DBusNodeInfo.new_for_xml(XML).interfaces[0]
    bus.register_object(PATH, interface, call, lambda *_: GLib.Variant("u", 3), None)
    Gio.bus_own_name_on_connection(bus, NAME, 0, lambda *_: print("ready", flush=True), None)
    GLib.MainLoop().run()


def ask(title):
    gi.require_version("Gtk", "3.0")
    from gi.repository import Gtk

    chooser = Gtk.FileChooserNative.new(title, None, Gtk.FileChooserAction.SELECT_FOLDER, None, None)
    chooser.show()
    Gtk.main()


serve() if sys.argv[1] == "serve" else ask(sys.argv[2])
