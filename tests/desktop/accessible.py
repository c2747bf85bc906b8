"""Reads and presses controls through AT-SPI, as a screen reader does.

accessible.py list TITLE              prints one JSON object per control in windows whose title matches
accessible.py press TITLE ROLE NAME   presses that control
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


def main():
    verb, title = sys.argv[1:3]
    for window in windows(title):
        for node in walk(window):
            role, name = node.get_role_name(), text_of(node)
            if verb == "list":
                description = node.get_description() or ""
                control = {"role": role, "name": name, "description": description}
                print(json.dumps({**control, "states": states(node), "place": place(node)}))
            elif [role, name] == sys.argv[3:5]:
                print("done" if node.do_action(0) else "refused")
                return


main()
