"""Reachable servers: pages on port 80 and an echo server on port 8443. Prints `ready` once they listen.

The argument is a log file, which receives a line with the local address and port of each connection.
"""

import http.server
import socket
import sys
import threading

log = open(sys.argv[1], "a", buffering=1)


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path.startswith("/hello")
        page = b"<html><body><p>hello from outside</p></body></html>" if found else b"nothing here"
        if self.path.startswith("/page"):
            found, page = True, b"<html><head><title>A page outside</title></head><body><p>hello</p></body></html>"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *args):
        pass


def serve(connection, port):
    with connection:
        log.write(f"{connection.getsockname()[0]} {port}\n")
        if port == 80:
            return Pages(connection, ("client", 0), None)
        while piece := connection.recv(100):
            connection.sendall(piece)


def listen(port):
    listener = socket.create_server(("0.0.0.0", port), backlog=64)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


listen(80)
listen(8443)
print("ready", flush=True)
sys.stdin.read()
