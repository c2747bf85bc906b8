"""The other side: files over HTTP (80) and TLS (443, 8443), a shell script (22), and a log of every connection.

Arguments: directory of files, certificate, key, log, script. Says `ready` once it listens. Each line of the log is the address and
port that was reached and the first bytes that came, in hexadecimal; nothing came when they are empty.
"""

import http.server
import socket
import ssl
import subprocess
import sys
import threading
import urllib.parse

files, certificate, key, log_path, script = sys.argv[1:6]
log = open(log_path, "a", buffering=1)


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args):
        super().__init__(*args, directory=files)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path != "/redirect":
            return super().do_GET()
        self.send_response(302)
        self.send_header("Location", urllib.parse.unquote(url.query))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def serve(connection, port, tls):
    try:
        connection.settimeout(20)
        host = connection.getsockname()[0].removeprefix("::ffff:")
        try:
            first = connection.recv(16, socket.MSG_PEEK)
        except OSError:
            first = b""
        log.write(f"{host} {port} {first.hex()}\n")
        if first and tls:
            connection = tls.wrap_socket(connection, server_side=True)
        if port == 22:
            subprocess.run(["sh", "-e", script], stdin=connection, stdout=connection)
        elif first:
            Handler(connection, ("client", 0), None)
    except OSError:
        pass
    finally:
        connection.close()


def listen(port, tls):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0], port, tls), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)
listen(22, None)
listen(80, None)
listen(443, context)
listen(8443, context)
print("ready", flush=True)
sys.stdin.read()
