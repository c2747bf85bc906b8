"""Starts an app and prints the milliseconds until text is on the screen. Stops the app on request.

painted.py PROGRAM [ARGUMENT...]
"""
import subprocess
import sys
import time

import gi

gi.require_version("Gdk", "3.0")
from gi.repository import Gdk  # noqa: E402

# Anti-aliased text has many shades. An empty page has two or three.
SHADES = 24
# Looks at each eleventh pixel only, every 10 ms. Looking at all pixels would use a third of two processors, which the app
# needs.
STEP = 3 * 11
PAUSE = 0.01
root = Gdk.get_default_root_window()


def shades():
    # The area where the page's text begins, to the right of the list of pages.
    part = Gdk.pixbuf_get_from_window(root, 420, 120, 420, 320)
    pixels = part.get_pixels()
    return len(set(pixels[at : at + 3] for at in range(0, len(pixels), STEP)))


start = time.monotonic()
app = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
while shades() < SHADES:
    if time.monotonic() - start > 30:
        sys.exit("there is no text on the screen")
    time.sleep(PAUSE)
print((time.monotonic() - start) * 1000, flush=True)
sys.stdin.readline()
app.terminate()
app.wait()
