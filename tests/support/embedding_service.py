"""An OpenAI-compatible embedding service on the loopback that fails as a test wants."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

WIDTH = 8


@dataclass
class Reply:
    """What the service answers to one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    before: float = 0.0  # seconds before the headers
    between: float = 0.0  # seconds between the bytes of the body
    missing: int = 0  # bytes that are announced but not sent


def vector(text: str, width: int = WIDTH) -> list[float]:
    """A vector that depends on the words of a text, so that similar texts have similar ones."""
    found = np.zeros(width)
    for word in text.split():
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
        found += np.random.default_rng(seed).normal(size=width)
    return [float(x) for x in found]


def answer(texts: list[str], width: int = WIDTH) -> dict[str, Any]:
    """The answer to texts, with one token per word."""
    data = [{"index": i, "embedding": vector(text, width)} for i, text in enumerate(texts)]
    return {"data": data, "usage": {"total_tokens": sum(len(text.split()) for text in texts)}}


def good(body: dict[str, Any]) -> Reply:
    """Answer as a service should."""
    return Reply(body=json.dumps(answer(body["input"])).encode())


class EmbeddingService(ThreadingHTTPServer):
    """Answers the first requests as `faults` say, and all others with `reply`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}/v1#tiny"
        self.faults: list[Callable[[dict[str, Any]], Reply]] = []
        self.reply: Callable[[dict[str, Any]], Reply] = good
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.lock = threading.Lock()

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, in their order."""
        return [text for body in self.asked for text in body["input"]]


class _Handler(BaseHTTPRequestHandler):
    server: EmbeddingService

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.times.append(time.monotonic())
            server.asked.append(body)
            server.headers.append(dict(self.headers))
            server.paths.append(self.path)
            reply = (server.faults.pop(0) if server.faults else server.reply)(body)
        time.sleep(reply.before)
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.missing))
            self.end_headers()
            for start in range(0, len(reply.body), 16 if reply.between else 10**9):
                self.wfile.write(reply.body[start : start + (16 if reply.between else 10**9)])
                time.sleep(reply.between)
        except (BrokenPipeError, ConnectionResetError):  # the client gave up
            pass
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass
