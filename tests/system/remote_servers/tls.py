"""Terminates TLS and forwards connections. Arguments: CERTIFICATE KEY PORT. Prints the port it listens on."""

import select
import socket
import ssl
import sys
import threading

certificate, key, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def relay(near, far):
    """Forwards both directions until the far side closes. Uses one thread, because a TLS connection is not thread-safe."""
    others = {near: far, far: near}
    while far in others:
        ready = [near] if near in others and near.pending() else select.select(list(others), [], [])[0]
        for source in ready:
            data = source.recv(65536)
            if data:
                others[source].sendall(data)
                continue
            del others[source]
            if source is near:
                far.shutdown(socket.SHUT_WR)


def serve(plain):
    try:
        with context.wrap_socket(plain, server_side=True) as near:
            with socket.create_connection(("127.0.0.1", port)) as far:
                relay(near, far)
    except OSError:
        # The side that closed the connection knows the reason.
        pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
