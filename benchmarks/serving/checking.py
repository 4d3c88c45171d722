"""Clients that compare every answer with that of `newfound predict`."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Counts:
    """What clients received."""

    right: int = 0
    wrong: int = 0
    refused: int = 0  # with status 503 and Retry-After
    dropped: int = 0  # no answer, or another status
    models: set[str] = field(default_factory=set)


class Clients:
    """Several connections that send one text after the other until they are stopped.

    Parameters
    ----------
    port : int
    texts : sequence of str
    wanted : mapping of str to list
        The predictions of the texts, by the sha256 of the model.
    """

    def __init__(self, port: int, texts: Sequence[str], wanted: Mapping[str, list[Any]]) -> None:
        self.port, self.texts, self.wanted = port, texts, wanted
        self.counts = Counts()
        self._ended = False

    async def run(self, connections: int) -> None:
        """Send requests until `stop` is called."""
        await asyncio.gather(*(self._ask(start) for start in range(connections)))

    def stop(self) -> None:
        """Let each connection end after its current request."""
        self._ended = True

    async def _ask(self, start: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        place = start * 97  # so that connections send different texts
        while not self._ended:
            place = (place + 1) % len(self.texts)
            body = json.dumps({"text": self.texts[place]}).encode()
            head = (
                "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            try:
                answer = await reader.readuntil(b"\r\n\r\n")
                headers = answer.decode().lower().split("\r\n")
                length = next(h for h in headers if h.startswith("content-length:"))
                content = await reader.readexactly(int(length.split(":")[1]))
            except (OSError, asyncio.IncompleteReadError):
                self.counts.dropped += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                continue
            self._count(place, headers, json.loads(content))
        writer.close()

    def _count(self, place: int, headers: list[str], value: Any) -> None:
        """Count an answer."""
        status = headers[0].split()[1]
        if status == "503" and any(h.startswith("retry-after:") for h in headers):
            self.counts.refused += 1
        elif status != "200":
            self.counts.dropped += 1
        elif value["predictions"] == [self.wanted[value["model"]][place]]:
            self.counts.right += 1
            self.counts.models.add(value["model"])
        else:
            self.counts.wrong += 1
