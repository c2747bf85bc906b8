"""Ends the encryption of connections, and passes them on: CERTIFICATE KEY PORT. Prints the port it listens on."""

import socket
import ssl
import sys
import threading

certificate, key, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(plain):
    try:
        near = context.wrap_socket(plain, server_side=True)
    except OSError:
        return
    far = socket.create_connection(("127.0.0.1", port))
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)
    near.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
