"""Serve the review of a run folder in this process, and send it requests."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from newfound.review.server import make_app
from newfound.review.session import Session

TOKEN = "secret-token"


@dataclass(frozen=True)
class Served:
    """A review that is served."""

    session: Session
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={TOKEN}"

    def ask(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Send a request as the page does; return status, content and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {
            "x-newfound-token": TOKEN,
            "origin": f"http://127.0.0.1:{self.port}",
            "content-type": "application/json",
        } | (headers or {})
        content = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, content, sent)
        answer = connection.getresponse()
        text = answer.read().decode()
        found = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        is_json = found.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text, found

    def decide(self, *decisions: dict[str, Any], expected: str | None = None) -> tuple[int, Any]:
        """Send decisions on the log as it is, or as it was."""
        if expected is None:
            expected = self.ask("/digest")[1]["digest"]
        return self.ask("/decide", {"decisions": list(decisions), "expected": expected})[:2]


@contextmanager
def served(folder: Path, author: str = "Ada") -> Iterator[Served]:
    """Serve the review of a run folder while the block runs."""
    session = Session(folder, author)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        config = uvicorn.Config(make_app(session, TOKEN, port), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(session, port)
        finally:
            server.should_exit = True
            thread.join()
