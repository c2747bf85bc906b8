"""Sends requests to the proxy that ordinary programs do not send. Prints one line.

    connect TARGET [HOST]       CONNECT to TARGET with this Host header
    get URL [HOST]              a plain request with this Host header
    tls TARGET NAME             CONNECT to TARGET, then a TLS handshake with this server name
    hold TARGET                 CONNECT to TARGET, then an echo for each line of standard input
    direct HOST PORT            a connection without the proxy
    echo HOST PORT              an echo without the proxy
    blocking HOST PORT          an echo without the proxy, over a socket without a time limit
    secure HOST PORT NAME       a TLS handshake without the proxy, with this server name
    send HOST PORT              a UDP packet
    keep HOST PORT              an echo without the proxy for each line of standard input
"""

import os
import socket
import ssl
import sys

PROXY = ("127.0.0.1", 3128)


def head(stream):
    text = b""
    while not text.endswith(b"\r\n\r\n") and (byte := stream.recv(1)):
        text += byte
    lines = text.decode().split("\r\n")
    reason = [line.split(": ")[1] for line in lines if line.lower().startswith("x-ironcurtain-reason")]
    return " ".join(lines[0].split(" ")[1:2] + reason)


def ask(request):
    stream = socket.create_connection(PROXY, timeout=60)
    stream.sendall(request.encode())
    return stream, head(stream)


def connect(target, host=None):
    return ask(f"CONNECT {target} HTTP/1.1\r\nHost: {host or target}\r\n\r\n")


def get(url, host=None):
    host = host or url.split("/")[2]
    return ask(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")


def tls(target, name):
    stream, said = connect(target)
    return handshake(stream, name) if said == "200" else said


def handshake(stream, name):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with context.wrap_socket(stream, server_hostname=name) as secure:
            secure.sendall(f"GET /hello HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return head(secure)
    except (ssl.SSLError, OSError):
        return "cut"


def alive(stream):
    try:
        stream.sendall(b"x")
        return "alive" if stream.recv(1) == b"x" else "cut"
    except OSError:
        return "cut"


def answer_lines(stream, said):
    print(said, flush=True)
    for _ in sys.stdin:
        print(alive(stream), flush=True)


def hold(target):
    answer_lines(*connect(target))


def direct(host, port, then=lambda _: "connected"):
    try:
        with socket.create_connection((host, int(port)), timeout=60) as stream:
            return then(stream)
    except socket.gaierror as problem:
        return problem.strerror
    except OSError as problem:
        return os.strerror(problem.errno) if problem.errno else str(problem)


def echo(host, port):
    return direct(host, port, alive)


def blocking(host, port):
    try:
        with socket.socket() as stream:
            stream.connect((host, int(port)))
            return alive(stream)
    except OSError as problem:
        return os.strerror(problem.errno)


def secure(host, port, name):
    return direct(host, port, lambda stream: handshake(stream, name))


def send(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(60)
        try:
            sender.connect((host, int(port)))
            sender.send(b"out")
            return sender.recv(1)
        except OSError as problem:
            return os.strerror(problem.errno) if problem.errno else str(problem)


def keep(host, port):
    return direct(host, port, lambda stream: answer_lines(stream, "200"))


mode, *rest = sys.argv[1:]
if mode in ("connect", "get"):
    print(globals()[mode](*rest)[1])
elif mode in ("hold", "keep"):
    globals()[mode](*rest)
else:
    print(globals()[mode](*rest))
