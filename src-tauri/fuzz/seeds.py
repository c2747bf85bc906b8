"""Writes the seeds of the targets that hold conversations, from those in `traffic`, which were recorded between real clients and real
servers, and those of the judge from its own vocabulary. Run it anew when the steps of a target change: python3 src-tauri/fuzz/seeds.py

In `traffic` a line that begins with `> ` went to the server, one that begins with `< ` came from it.
"""

import json
import pathlib
import zlib

HERE = pathlib.Path(__file__).parent

# As in `calls.rs`, `targets/client_era.rs` and `targets/server_era.rs`.
CLIENT_METHODS = ["tools/call", "prompts/get", "resources/read", "tools/list", "server/discover", "subscriptions/listen", "ping",
                  "logging/setLevel", "tasks/get", "completion/complete", "initialize"]
CLIENT_INPUTS = ["elicitation/create", "sampling/createMessage", "roots/list", "x"]
CLIENT_NEWS = ["notifications/progress", "notifications/message", "notifications/tools/list_changed",
               "notifications/resources/updated", "notifications/elicitation/complete", "notifications/tasks/status",
               "notifications/initialized", "x"]
CAPABILITIES = ["elicitation", "sampling", "roots", "tasks"]
SERVER_METHODS = ["tools/call", "prompts/get", "resources/read", "tools/list", "logging/setLevel", "resources/subscribe", "tasks/get"]
SERVER_INPUTS = ["elicitation/create", "sampling/createMessage", "roots/list", "ping"]
SERVER_NEWS = ["notifications/progress", "notifications/cancelled", "notifications/tools/list_changed",
               "notifications/initialized", "notifications/subscriptions/acknowledged", "x"]
OWN = "io.modelcontextprotocol/"


class Seed:
    """Bytes that the crate `arbitrary` reads these values from: values from the front, lengths from the end."""

    def __init__(self):
        self.front, self.lengths = b"", b""

    def number(self, value, width=1):
        self.front += (value % 256**width).to_bytes(width, "little")

    def flag(self, value):
        self.number(bool(value))

    def maybe(self, *values):
        self.flag(values)
        for value, width in values:
            self.number(value, width)

    def choice(self, at, of):
        self.number(((at << 32) + (1 << 31)) // of, 4)

    def text(self, value):
        data = value if isinstance(value, bytes) else value.encode()
        self.front += data
        self.lengths = len(data).to_bytes(2, "big") + self.lengths

    def step(self, at, of, *values):
        """One of a list, of the kind `at`."""
        self.flag(True)
        self.choice(at, of)
        for value in values:
            {bool: self.flag, int: self.number, str: self.text, bytes: self.text}[type(value)](value)

    def write(self, target, name):
        folder = HERE / "seeds" / target
        folder.mkdir(parents=True, exist_ok=True)
        # With less than 300 bytes left a length would take one byte.
        (folder / name).write_bytes(self.front + bytes(600) + self.lengths)


def short(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def named(id):
    """A small number for an id."""
    return zlib.crc32(short(id).encode()) % 200


def index(names, name):
    return names.index(name) if name in names else len(names) - 1


def body(message):
    params = {name: value for name, value in message.get("params", {}).items() if name != "_meta"}
    return short(params.get("arguments", params))


def framing(name, lines):
    for pieces in [1, 7, 4096]:
        seed, data = Seed(), b"".join(line.encode() + b"\n" for _, line in lines)
        seed.number(255)
        seed.number(min(2 * len(lines), 255))
        for at in range(0, min(len(data), 60 * pieces), pieces):
            seed.flag(True)
            seed.text(data[at:at + pieces])
        seed.write("framing", f"{name}-{pieces}")


def client_era(name, lines):
    seed, waits, states = Seed(), [], 0
    for of_client, line in lines:
        message = json.loads(line)
        method, id = message.get("method"), named(message.get("id"))
        if of_client and method in CLIENT_METHODS and "id" in message:
            params = message.get("params", {})
            meta = params.get("_meta", {})
            takes = meta.get(OWN + "clientCapabilities", {})
            bits = sum(1 << at for at, capability in enumerate(CAPABILITIES) if capability in takes)
            if "requestState" in params:
                seed.step(1, 9, id, max(states - 1, 0), short(params.get("inputResponses", {})), False)
            elif OWN + "protocolVersion" in meta:
                seed.step(0, 9, id, CLIENT_METHODS.index(method), bits, body(message), 1 if "progressToken" in meta else 4)
            else:
                seed.step(3, 9, line.encode())
            waits.append(message["id"])
        elif of_client and method == "notifications/cancelled":
            seed.step(2, 9, id)
        elif of_client:
            seed.step(3, 9, line.encode())
        elif method and "id" in message:
            seed.step(5, 9, id, index(CLIENT_INPUTS, method), body(message))
        elif method:
            seed.step(7, 9, index(CLIENT_NEWS, method), body(message))
        else:
            result = message.get("result", {})
            if result.get("resultType") == "input_required":
                for request in result.get("inputRequests", {}).values():
                    seed.step(5, 9, states, index(CLIENT_INPUTS, request["method"]), body(request))
                states += 1
            elif message.get("id") in waits:
                at = waits.index(message["id"])
                waits.pop(at)
                seed.step(4, 9, at, short(result or message.get("error")), "error" in message)
    seed.write("client_era", name)


def server_era(name, lines):
    for is_modern in [False, True]:
        seed = Seed()
        seed.flag(is_modern)
        seed.text("2025-11-25")
        for of_client, line in lines:
            message = json.loads(line)
            method, params = message.get("method"), message.get("params", {})
            result = message.get("result", {})
            if of_client and method in SERVER_METHODS:
                seed.step(0, 8, SERVER_METHODS.index(method), body(message), "task" in params)
            elif of_client and method == "notifications/cancelled":
                seed.step(1, 8, 0)
            elif of_client and not method:
                seed.step(6, 8, 0, short(result or message.get("error")), "error" in message)
            elif of_client:
                seed.step(7, 8)
            elif method and "id" in message:
                seed.step(3, 8, named(message["id"]), index(SERVER_INPUTS, method), body(message))
            elif method in SERVER_NEWS:
                seed.step(4, 8, SERVER_NEWS.index(method), body(message))
            elif method:
                seed.step(5, 8, line.encode())
            elif result.get("resultType") == "input_required":
                asked = list(result.get("inputRequests", {"": {"method": "roots/list"}}).values())[0]
                seed.step(2, 8, 0, 3 + SERVER_INPUTS.index(asked["method"]), body(asked))
                seed.step(6, 8, 0, short({"action": "accept", "content": {"name": "Ada"}}), False)
            else:
                seed.step(2, 8, 0, 0 if "error" in message else 6, short(result or message.get("error")))
        seed.step(7, 8)
        seed.write("server_era", f"{name}-{'2026' if is_modern else '2025'}")


def judge():
    """A policy that lets read in a folder, asks about what writes, and forbids to take away; each tool under it."""
    for call in range(8):
        seed = Seed()
        for then, roles, within in [(0, 1, (1, 2)), (1, 0b10, None), (2, 0b100, None)]:
            seed.flag(True)
            seed.number(then)
            seed.maybe((roles, 2))
            seed.maybe()
            seed.maybe()
            seed.maybe(*([(within[0], 2), (within[1], 1)] if within else []))
            seed.maybe()
            seed.maybe()
        seed.flag(False)
        seed.number(call)
        for at, text in enumerate(["/home/ada/src/app/README.md", "https://github.com/provos/ironcurtain.git"]):
            seed.flag(True)
            seed.choice(call % 2, 2)
            seed.number(3 + at) if call % 2 == 0 else seed.text(text)
        seed.flag(False)
        seed.flag(False)
        for _ in range(1):
            seed.flag(True)
            seed.number(7)
        seed.flag(False)
        for place, is_tree, access in [(2, True, 1), (3, False, 3)]:
            seed.flag(True)
            seed.number(place)
            seed.flag(is_tree)
            seed.number(access)
        seed.flag(False)
        seed.maybe((2, 1))
        seed.maybe((5, 1))
        seed.number(1)
        seed.write("judge", f"tool-{call}")


def main():
    for path in sorted((HERE / "traffic").iterdir()):
        lines = [(line[0] == ">", line[2:]) for line in path.read_text().splitlines()]
        framing(path.stem, lines)
        client_era(path.stem, lines)
        server_era(path.stem, lines)
    judge()


main()
