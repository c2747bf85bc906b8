"""Serves a stdio server over HTTP on a free port, which it prints. Each session starts a new server process."""

import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SESSIONS = {}


class Session:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.streams = {}
        self.lock = threading.Lock()
        threading.Thread(target=self.read, daemon=True).start()

    def say(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            is_answer = "method" not in message
            # Messages other than responses belong to the latest request.
            waiting = list(self.streams.values())
            stream = self.streams.get(json.dumps(message.get("id"))) if is_answer else (waiting or [None])[-1]
            if stream is not None:
                stream.put(message)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def plain(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def is_local(self):
        names = [self.headers.get("Host", ""), self.headers.get("Origin", "").removeprefix("http://")]
        return all(not name or name.rsplit(":", 1)[0] in ("localhost", "127.0.0.1") for name in names)

    def do_GET(self):
        self.plain(405)

    def do_DELETE(self):
        session = SESSIONS.pop(self.headers.get("mcp-session-id"), None)
        if session:
            session.process.stdin.close()
            session.process.wait(20)
        self.plain(200)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.is_local():
            return self.plain(403)
        name = self.headers.get("mcp-session-id")
        if body.get("method") == "initialize":
            name = uuid.uuid4().hex
            SESSIONS[name] = Session(sys.argv[1:])
        session = SESSIONS.get(name)
        if session is None:
            return self.plain(404)
        if "id" not in body or "method" not in body:
            session.say(body)
            return self.plain(202)
        stream = session.streams.setdefault(json.dumps(body["id"]), queue.Queue())
        session.say(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("mcp-session-id", name)
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            message = stream.get(timeout=60)
            self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
            self.wfile.flush()
            if "method" not in message:
                break
        del session.streams[json.dumps(body["id"])]
        self.close_connection = True


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
