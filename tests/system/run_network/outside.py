"""Reachable servers: pages and a git repository on port 80, TLS on port 443, and an echo server on port 8443.
Prints `ready` once they listen.

The arguments are a log file, which receives a line with the local address, the port and the `Host` header of each request (or
the port alone of each connection without one), and a folder with `cert.pem`, `key.pem` and the pages.
"""

import http.server
import os
import socket
import ssl
import sys
import threading

log = open(sys.argv[1], "a", buffering=1)
folder = sys.argv[2]


class Pages(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=os.path.join(folder, "pages"))

    def do_GET(self):
        self.note()
        if self.path.startswith("/redirect?"):
            self.send_response(302)
            self.send_header("Location", self.path.split("?", 1)[1])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        super().do_GET()

    def do_POST(self):
        self.note()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def note(self):
        host, port = self.connection.getsockname()[:2]
        log.write(f"{host} {port} {self.headers['Host']}\n")

    def log_message(self, *args):
        pass


def echo(connection):
    with connection:
        host, port = connection.getsockname()[:2]
        log.write(f"{host} {port}\n")
        while piece := connection.recv(100):
            connection.sendall(piece)


def listen(port, serve):
    listener = socket.create_server(("0.0.0.0", port), backlog=64)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"))


def pages(connection):
    with connection:
        Pages(connection, ("client", 0), None)


def secure(connection):
    try:
        pages(tls.wrap_socket(connection, server_side=True))
    except (ssl.SSLError, OSError):
        pass


listen(80, pages)
listen(443, secure)
listen(8443, echo)
print("ready", flush=True)
sys.stdin.read()
