"""HTTP/1.1 as uvicorn speaks it, with limits on connections and on what comes before a body."""

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from newfound.serving.service import Limits

SLACK = 8  # bytes on the wire per byte of a body, at most: chunks of one byte take six


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose headers are limited in size and in time.

    A client that sends nothing, sends its headers slowly or without end, or goes on sending a body
    that nobody reads, or does not read its answer, would otherwise hold a connection or memory for
    ever.

    Parameters
    ----------
    limits : Limits
    refused : callable
        Called with the status of a request that is refused here.
    """

    def __init__(
        self, *args: Any, limits: Limits, refused: Callable[[int], Any], **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._limits, self._refused = limits, refused
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._in_body = False  # the headers are complete, and the request is not
        self._any = False  # whether a byte has arrived since the last request
        self._head = self._wire = 0  # bytes of the headers, and of the request, so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; refuse a connection too many."""
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._refuse(503, "too many connections are open; try again later", "retry-after: 1")
            return
        self._wait(self._limits.idle_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_no_more()
        self._reads()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived, within the limits."""
        if self.transport.is_closing():
            return
        if not self._in_body and not self._any:
            self._any = True
            self._wait()
        self._wire += len(data)
        most = self._limits.head + (SLACK * self._limits.body if self._in_body else 0)
        # Before it is parsed: what has not come to an end is not in `_head` yet.
        if self._wire - len(data) > most:
            if self._in_body:
                self.transport.close()
            else:
                self._refuse_headers()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head = 0
        self._wait()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        if self._fits(len(url)):
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or one that follows a body in chunks."""
        if self._fits(len(name) + len(value)):
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._wait_no_more()
        if self.transport.is_closing():  # refused
            return
        self._in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_body = self._any = False
        self._wire = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer; a request that is still being sent is not read to its end."""
        if self._in_body and not self.pipeline:  # otherwise it is a later request
            self.transport.close()
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection without requests; what its client has not read by now is discarded."""
        self.transport.abort()

    def pause_writing(self) -> None:
        """Wait until the client reads its answer, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        self._reads()
        super().resume_writing()

    def _reads(self) -> None:
        """Note that the client reads its answer."""
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _fits(self, size: int) -> bool:
        """Return whether more bytes of headers are allowed; otherwise, refuse the request."""
        self._head += size
        if self._head <= self._limits.head:
            return True
        if not self.transport.is_closing():
            self._refuse_headers()
        return False

    def _wait(self, seconds: float | None = None) -> None:
        """Let the headers be complete in time; by default, in that of the limits."""
        self._wait_no_more()
        seconds = self._limits.head_seconds if seconds is None else seconds
        self._late = self.loop.call_later(seconds, self._is_late)

    def _abort_later(self) -> None:
        """End a closed connection in time, also if its client does not read the answer."""
        self._wait_no_more()
        self._late = self.loop.call_later(self._limits.seconds, self.transport.abort)

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _is_late(self) -> None:
        """Close a connection whose headers are not complete in time."""
        self._late = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait()  # it is our answer to an earlier request that takes time
        elif self._any:
            sentence = f"the headers did not arrive in {self._limits.head_seconds:g} s"
            self._refuse(408, f"{sentence}; send them at once")
        else:
            self.transport.close()

    def _refuse_headers(self) -> None:
        """Refuse headers that are too large."""
        size = f"{self._limits.head:,} bytes"
        self._refuse(431, f"the address and the headers have more than {size}; send fewer headers")

    def _refuse(self, status: int, sentence: str, *headers: str) -> None:
        """Answer with an error, unless an earlier answer is still being sent, and close."""
        self._refused(status)
        body = json.dumps({"error": sentence}).encode()
        if self.cycle is None or self.cycle.response_complete:
            head = [
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
                "content-type: application/json",
                f"content-length: {len(body)}",
                "connection: close",
                *headers,
            ]
            self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()
        self._abort_later()
