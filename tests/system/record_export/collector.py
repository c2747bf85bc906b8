"""A collector that decodes requests with the official protobuf definitions.

Arguments: a folder, and a port (0 chooses one). The file `mode` in the folder determines the answers: a status, `hold`, which
waits until the mode changes, or `accept`. Accepted records are appended to `records.jsonl`, metrics to `metrics.jsonl`, every
received byte to `raw`, and the mode in which a request with records arrived to `arrived.jsonl`.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

FOLDER = Path(sys.argv[1])
LOCK = threading.Lock()


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(item) for item in any_value.array_value.values]
    return getattr(any_value, kind)


def pairs(attributes):
    return {pair.key: value(pair.value) for pair in attributes}


def append(name, lines):
    # A single write, so that a kill leaves no incomplete line.
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with LOCK, open(FOLDER / name, "ab", buffering=0) as file:
        file.write(text.encode())


def take_logs(body):
    request = ExportLogsServiceRequest.FromString(body)
    for resource in request.resource_logs:
        about = pairs(resource.resource.attributes)
        for scope in resource.scope_logs:
            append(
                "records.jsonl",
                [
                    {
                        "event": record.event_name,
                        "time": record.time_unix_nano,
                        "severity": record.severity_text,
                        "body": value(record.body),
                        "attributes": pairs(record.attributes),
                        "resource": about,
                    }
                    for record in scope.log_records
                ],
            )


def take_metrics(body):
    request = ExportMetricsServiceRequest.FromString(body)
    metrics = [m for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics]
    append("metrics.jsonl", [{"name": m.name, "unit": m.unit, "kind": m.WhichOneof("data")} for m in metrics])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with LOCK, open(FOLDER / "raw", "ab") as file:
            file.write(str(self.headers).encode() + body)
        mode = (FOLDER / "mode").read_text()
        if self.path == "/v1/logs":
            append("arrived.jsonl", [mode])
        while mode == "hold":
            time.sleep(0.01)
            mode = (FOLDER / "mode").read_text()
        if mode.isdigit():
            self.send_response(int(mode))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/v1/logs":
            take_logs(body)
        elif self.path == "/v1/metrics":
            take_metrics(body)
        answer = ExportLogsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        try:
            self.wfile.write(answer)
        except BrokenPipeError:
            # The exporter was killed.
            self.close_connection = True

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
