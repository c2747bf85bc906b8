"""Reads and presses controls through AT-SPI, as a screen reader does.

accessible.py list TITLE              prints one JSON object per control in windows with a matching title
accessible.py text TITLE              prints only the names of the controls
accessible.py find TITLE ROLE NAME    prints the first control with that role, or any role if it is empty, and name
accessible.py press TITLE ROLE NAME   presses that control

Reading a property sends a message to the window's program, so only `list` reads all of them.
"""
import json
import re
import sys

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402


def windows(title):
    desktop = Atspi.get_desktop(0)
    for n in range(desktop.get_child_count()):
        app = desktop.get_child_at_index(n)
        for m in range(app.get_child_count() if app else 0):
            window = app.get_child_at_index(m)
            if window and re.search(title, window.get_name() or ""):
                yield window


def walk(node):
    yield node
    for n in range(node.get_child_count()):
        child = node.get_child_at_index(n)
        if child:
            yield from walk(child)


def text_of(node):
    """Returns the text of a label or paragraph if it differs from its name."""
    name = node.get_name() or ""
    if not name and "Text" in node.get_interfaces():
        name = Atspi.Text.get_text(node, 0, -1)
    return name


def place(node):
    if "Component" not in node.get_interfaces():
        return [0, 0, 0, 0]
    box = node.get_extents(Atspi.CoordType.SCREEN)
    return [box.x, box.y, box.width, box.height]


def states(node):
    return sorted(state.value_nick for state in node.get_state_set().get_states())


def control(node):
    description = node.get_description() or ""
    named = {"role": node.get_role_name(), "name": text_of(node), "description": description}
    return json.dumps({**named, "states": states(node), "place": place(node)})


def main():
    verb, title, *wanted = sys.argv[1:]
    for node in (node for window in windows(title) for node in walk(window)):
        if verb == "list":
            print(control(node))
        elif verb == "text":
            print(text_of(node))
        elif wanted[0] in ("", node.get_role_name()) and text_of(node) == wanted[1]:
            if verb == "find":
                print(control(node))
            else:
                print("done" if node.do_action(0) else "refused")
            return


main()
