"""A naming endpoint on the loopback that misbehaves in a chosen way."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PAUSE = 0.1  # seconds between the bytes of a slow answer
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

Behaviour = Callable[[socket.socket, threading.Event], None]


def silent(connection: socket.socket, ended: threading.Event) -> None:
    """Never answer."""
    ended.wait()


def slow_headers(connection: socket.socket, ended: threading.Event) -> None:
    """Send the headers byte by byte, without end."""
    _drip(connection, HEAD + b"X: " + b"x" * 100_000, ended)


def endless_headers(connection: socket.socket, ended: threading.Event) -> None:
    """Send headers for ever, quickly."""
    connection.sendall(HEAD)
    while not ended.is_set():
        connection.sendall(b"X-Again: " + b"x" * 1000 + b"\r\n")


def slow_body(connection: socket.socket, ended: threading.Event) -> None:
    """Send the body byte by byte."""
    connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
    _drip(connection, b" " * 100_000, ended)


def endless_body(connection: socket.socket, ended: threading.Event) -> None:
    """Send a body for ever, quickly."""
    connection.sendall(HEAD + b"\r\n")
    while not ended.is_set():
        connection.sendall(b" " * 65_536)


def short_body(connection: socket.socket, ended: threading.Event) -> None:
    """Announce more bytes than are sent."""
    connection.sendall(HEAD + b'Content-Length: 1000000000\r\n\r\n{"choices": [')


def closed(connection: socket.socket, ended: threading.Event) -> None:
    """Close the connection at once."""


def reset(connection: socket.socket, ended: threading.Event) -> None:
    """Reset the connection in the middle of the headers."""
    connection.sendall(HEAD)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def redirect(connection: socket.socket, ended: threading.Event) -> None:
    """Redirect to itself, and send the body of that answer slowly."""
    port = connection.getsockname()[1]
    place = f"Location: http://127.0.0.1:{port}/again?key=leaked\r\n".encode()
    connection.sendall(b"HTTP/1.1 307 Moved\r\n" + place + b"Content-Length: 100000\r\n\r\n")
    _drip(connection, b" " * 100_000, ended)


def garbage(connection: socket.socket, ended: threading.Event) -> None:
    """Answer with bytes that are not HTTP."""
    connection.sendall(bytes(range(256)) * 100)


def nested(connection: socket.socket, ended: threading.Event) -> None:
    """Answer with JSON that is nested too deeply."""
    _answer(connection, b"[" * 200_000)


def hostile_name(connection: socket.socket, ended: threading.Event) -> None:
    """Answer with a name that holds escape sequences, a formula and a script."""
    name = "=cmd|'/c calc'!A1 \x1b[31m\x9b2J\u202e<script>window.hacked = 1</script>"
    content = {"choices": [{"message": {"content": name}}]}
    _answer(connection, json.dumps(content).encode())


def server_error(connection: socket.socket, ended: threading.Event) -> None:
    """Answer with an error and a body that never ends."""
    connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
    _drip(connection, b" " * 100_000, ended)


BEHAVIOURS: dict[str, Behaviour] = {
    behaviour.__name__: behaviour
    for behaviour in (
        silent,
        slow_headers,
        endless_headers,
        slow_body,
        endless_body,
        short_body,
        closed,
        reset,
        redirect,
        garbage,
        nested,
        hostile_name,
        server_error,
    )
}


def _answer(connection: socket.socket, body: bytes) -> None:
    """Send a complete answer."""
    connection.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)


def _drip(connection: socket.socket, data: bytes, ended: threading.Event) -> None:
    """Send data byte by byte, with pauses."""
    for i in range(len(data)):
        if ended.wait(PAUSE):
            return
        connection.sendall(data[i : i + 1])


@contextmanager
def misbehaving(behaviour: Behaviour) -> Iterator[str]:
    """Serve one behaviour on the loopback; yield the address."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    threads: list[threading.Thread] = []

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            behaviour(connection, ended)

    def accept() -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(connection,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        ended.set()
        accepting.join()
        for thread in threads:
            thread.join(2)
        listener.close()
