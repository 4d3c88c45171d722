"""An OpenAI-compatible endpoint on the loopback that answers as a test wants."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes]


class FakeEndpoint(ThreadingHTTPServer):
    """Answers each request with what `reply` makes of it and keeps what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.reply: Callable[[dict[str, Any]], Answer] = lambda body: chat("A Good Name")


class _Handler(BaseHTTPRequestHandler):
    server: FakeEndpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.asked.append(body)
            self.server.headers.append(dict(self.headers))
            self.server.paths.append(self.path)
        status, data = self.server.reply(body)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", data.decode())
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


def chat(content: Any) -> Answer:
    return 200, json.dumps({"choices": [{"message": {"content": content}}]}).encode()


def keyword_of(body: dict[str, Any]) -> str:
    return str(json.loads(body["messages"][1]["content"])["keywords"][0])
