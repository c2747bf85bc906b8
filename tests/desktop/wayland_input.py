"""A virtual pointer and keyboard on a Wayland screen, without a library. Uses the protocols wlr-virtual-pointer and
virtual-keyboard of the compositor.

wayland_input.py WIDTH HEIGHT       one command per line on standard input: `move X Y`, `down`, `up`, `wheel STEPS`, `press KEY`,
                                    `release KEY`, `sleep SECONDS`; `end` is answered with `done`
"""
import array
import os
import socket
import struct
import sys
import tempfile
import time

WIDTH, HEIGHT = int(sys.argv[1]), int(sys.argv[2])
# Interfaces that are bound, all in version 1.
INTERFACES = ["zwlr_virtual_pointer_manager_v1", "zwp_virtual_keyboard_manager_v1", "wl_seat"]
KEYS = {"Tab": 15, "y": 21, "a": 30, "x": 45, "alt": 56}
ALT_MASK = 8
KEYMAP = """xkb_keymap {
    xkb_keycodes { include "evdev+aliases(qwerty)" };
    xkb_types { include "complete" };
    xkb_compatibility { include "complete" };
    xkb_symbols { include "pc+us+inet(evdev)" };
};
"""


class Display:
    def __init__(self):
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"])
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.unread = b""
        self.objects = 1

    def new_object(self):
        self.objects += 1
        return self.objects

    def send(self, thing, opcode, arguments=b"", file=None):
        size = 8 + len(arguments)
        message = struct.pack("<II", thing, size << 16 | opcode) + arguments
        files = [] if file is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))]
        self.socket.sendmsg([message], files)

    def event(self):
        while len(self.unread) < 8 or len(self.unread) < struct.unpack_from("<I", self.unread, 4)[0] >> 16:
            self.unread += self.socket.recv(65536) or sys.exit("the compositor is gone")
        thing, word = struct.unpack_from("<II", self.unread)
        size = word >> 16
        body, self.unread = self.unread[8:size], self.unread[size:]
        return thing, word & 0xFFFF, body


def text(words):
    data = words.encode() + b"\0"
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4)


def devices(display):
    """Creates a pointer and a keyboard, and returns their objects."""
    registry, callback = display.new_object(), display.new_object()
    display.send(1, 1, struct.pack("<I", registry))
    display.send(1, 0, struct.pack("<I", callback))
    bound = {}
    while True:
        thing, opcode, body = display.event()
        if thing == 1 and opcode == 0:
            sys.exit(f"the compositor refused: {body!r}")
        if thing == registry and opcode == 0:
            name, length = struct.unpack_from("<II", body)
            interface = body[8 : 8 + length - 1].decode()
            if interface in INTERFACES and interface not in bound:
                bound[interface] = display.new_object()
                arguments = struct.pack("<I", name) + text(interface) + struct.pack("<II", 1, bound[interface])
                display.send(registry, 0, arguments)
        if thing == callback:
            break
    pointers, keyboards, seat = (bound[interface] for interface in INTERFACES)
    pointer = display.new_object()
    display.send(pointers, 0, struct.pack("<II", 0, pointer))
    keyboard = display.new_object()
    display.send(keyboards, 0, struct.pack("<II", seat, keyboard))
    with tempfile.TemporaryFile() as keymap:
        keymap.write(KEYMAP.encode() + b"\0")
        keymap.flush()
        display.send(keyboard, 0, struct.pack("<II", 1, len(KEYMAP) + 1), keymap)
    return pointer, keyboard


def now():
    return int(time.monotonic() * 1000) & 0xFFFFFFFF


def main():
    display = Display()
    pointer, keyboard = devices(display)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "move":
            place = struct.pack("<IIIII", now(), int(rest[0]), int(rest[1]), WIDTH, HEIGHT)
            display.send(pointer, 1, place)
            display.send(pointer, 4)
        elif verb in ("down", "up"):
            display.send(pointer, 2, struct.pack("<III", now(), 0x110, int(verb == "down")))
            display.send(pointer, 4)
        elif verb == "wheel":
            for _ in range(int(rest[0])):
                # Wheel, vertical axis: one step is 15 units, in 24.8 fixed point.
                display.send(pointer, 5, struct.pack("<I", 0))
                display.send(pointer, 7, struct.pack("<IIii", now(), 0, 15 * 256, 1))
                display.send(pointer, 4)
        elif verb in ("press", "release"):
            is_pressed = int(verb == "press")
            display.send(keyboard, 1, struct.pack("<III", now(), KEYS[rest[0]], is_pressed))
            if rest[0] == "alt":
                display.send(keyboard, 2, struct.pack("<IIII", ALT_MASK * is_pressed, 0, 0, 0))
        elif verb == "sleep":
            time.sleep(float(rest[0]))
        elif verb == "end":
            print("done", flush=True)


main()
