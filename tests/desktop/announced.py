"""Prints `ready`, then one line for each screen reader announcement by any program."""
import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402


def heard(event):
    print(event.any_data, flush=True)


listener = Atspi.EventListener.new(heard)
listener.register("object:announcement")
print("ready", flush=True)
Atspi.event_main()
