"""An MCP server that uses the network with and without its proxy variables. The policy checks the URL of `get`. The other
tools take `where`, which the policy treats as plain text.
"""

import concurrent.futures
import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request

held = []


def get(where):
    try:
        with urllib.request.urlopen(where, timeout=30) as answer:
            return re.sub("<[^>]*>", "", answer.read().decode())
    except urllib.error.HTTPError as refusal:
        return f"{refusal.code} {refusal.headers.get('x-ironcurtain-reason')}: {refusal.read().decode().strip()}"


def many(where):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        return " | ".join(sorted(set(pool.map(get, [where] * 12))))


def hold(where):
    """Opens a tunnel and keeps it open."""
    stream = socket.create_connection(("127.0.0.1", 3128), timeout=30)
    stream.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := stream.recv(1)):
        head += byte
    if b" 200 " in head.split(b"\r\n")[0]:
        held.append(stream)
    return head.split(b"\r\n")[0].decode()


def alive(_):
    """Returns the tunnels that are still open."""

    def echoes(stream):
        try:
            stream.sendall(b"x")
            return stream.recv(1) == b"x"
        except OSError:
            return False

    return " ".join("alive" if echoes(stream) else "cut" for stream in held)


def direct(where):
    host, port = where.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=30).close()
        return "connected"
    except OSError as problem:
        return os.strerror(problem.errno)


def ssh(where):
    """Returns the command with which git would connect over ssh."""
    host, port = where.rsplit(":", 1)
    command = re.search(r"ProxyCommand='\\''(.*)'\\'' --connect", os.environ["GIT_SSH_COMMAND"])[1]
    done = subprocess.run([command, "--connect", host, port], input=b"hello", capture_output=True, timeout=30)
    return (done.stdout + done.stderr).decode().strip()


def proxies(_):
    return " ".join(sorted(name for name in os.environ if "proxy" in name.lower()))


TOOLS = {tool.__name__: tool for tool in (get, many, hold, alive, direct, ssh, proxies)} | {"sneak": get}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fetcher", "version": "1"},
        }
    if method != "tools/call":
        return {"tools": []}
    arguments = params.get("arguments", {})
    text = TOOLS[params["name"]](arguments.get("url") or arguments.get("where"))
    return {"content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
