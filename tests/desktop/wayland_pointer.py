"""A virtual pointer on a Wayland screen, using the compositor's wlr-virtual-pointer protocol without a library.

wayland_pointer.py WIDTH HEIGHT     one command per line on standard input: `move X Y`, `down`, `up`, `wheel STEPS`, `sleep SECONDS`;
                                    `end` is answered with `done`
"""
import os
import socket
import struct
import sys
import time

WIDTH, HEIGHT = int(sys.argv[1]), int(sys.argv[2])
MANAGER = "zwlr_virtual_pointer_manager_v1"


class Display:
    def __init__(self):
        path = os.path.join(os.environ["XDG_RUNTIME_DIR"], os.environ["WAYLAND_DISPLAY"])
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.unread = b""

    def send(self, thing, opcode, arguments=b""):
        size = 8 + len(arguments)
        self.socket.sendall(struct.pack("<II", thing, size << 16 | opcode) + arguments)

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


def pointer(display):
    """Handles an event. Object 2 is the registry, 3 the `sync` callback, 4 the manager, 5 the pointer."""
    display.send(1, 1, struct.pack("<I", 2))
    display.send(1, 0, struct.pack("<I", 3))
    while True:
        thing, opcode, body = display.event()
        if thing == 1 and opcode == 0:
            sys.exit(f"the compositor refused: {body!r}")
        if thing == 2 and opcode == 0:
            name, length = struct.unpack_from("<II", body)
            if body[8 : 8 + length - 1].decode() == MANAGER:
                display.send(2, 0, struct.pack("<I", name) + text(MANAGER) + struct.pack("<II", 1, 4))
        if thing == 3:
            break
    display.send(4, 0, struct.pack("<II", 0, 5))


def now():
    return int(time.monotonic() * 1000) & 0xFFFFFFFF


def main():
    display = Display()
    pointer(display)
    print("ready", flush=True)
    for line in sys.stdin:
        verb, *rest = line.split()
        if verb == "move":
            place = struct.pack("<IIIII", now(), int(rest[0]), int(rest[1]), WIDTH, HEIGHT)
            display.send(5, 1, place)
            display.send(5, 4)
        elif verb in ("down", "up"):
            display.send(5, 2, struct.pack("<III", now(), 0x110, int(verb == "down")))
            display.send(5, 4)
        elif verb == "wheel":
            for _ in range(int(rest[0])):
                # Wheel, vertical axis: one step is 15 units, in 24.8 fixed point.
                display.send(5, 5, struct.pack("<I", 0))
                display.send(5, 7, struct.pack("<IIii", now(), 0, 15 * 256, 1))
                display.send(5, 4)
        elif verb == "sleep":
            time.sleep(float(rest[0]))
        elif verb == "end":
            print("done", flush=True)


main()
