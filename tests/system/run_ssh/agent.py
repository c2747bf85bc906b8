"""Sends requests to an ssh agent on one connection. Prints each answer: its type, then the rest in hexadecimal."""

import socket
import struct
import sys

stream = socket.socket(socket.AF_UNIX)
stream.connect(sys.argv[1])


def read(count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            sys.exit("the agent closed the connection")
        data += piece
    return data


for request in sys.argv[2:]:
    request = bytes.fromhex(request)
    stream.sendall(struct.pack(">I", len(request)) + request)
    answer = read(struct.unpack(">I", read(4))[0])
    print(answer[0], answer[1:].hex(), flush=True)
