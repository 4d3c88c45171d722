"""A service on a free port of the loopback, in a thread of the test."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newfound.prediction import ModelOptions

JSON = {"Content-Type": "application/json"}


@dataclass
class Answer:
    """The answer to a request."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one sentence of an error."""
        assert self.headers["content-type"] == "application/json"
        assert list(self.value) == ["error"]
        return str(self.value["error"])


@dataclass
class Client:
    """Sends requests to a service."""

    port: int
    reports: list[str] = field(default_factory=list)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            found = connection.getresponse()
            kept = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, kept, found.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers=headers)

    def predict(self, value: Any, **headers: str) -> Answer:
        return self.send("POST", "/predict", json.dumps(value), {**JSON, **headers})


@contextmanager
def serving(
    folder: Path, token: str | None = None, options: ModelOptions | None = None, **limits: Any
) -> Iterator[Client]:
    """Serve a run while the block runs."""
    from newfound.serving.app import make_app
    from newfound.serving.server import Server, listen
    from newfound.serving.service import Limits, Service

    ready = threading.Event()
    with listen("127.0.0.1", 0) as bound:
        client = Client(bound.getsockname()[1])
        chosen = options or ModelOptions(device="cpu")
        service = Service(folder, chosen, Limits(**limits), client.reports.append)
        server = Server(make_app(service, token), service, ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            assert ready.wait(30)
            yield client
        finally:
            server.should_exit = True
            thread.join()
