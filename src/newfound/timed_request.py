"""One HTTP request with a limit on its whole duration.

A timeout of `urllib` limits each wait for the next bytes, so a server that sends a byte now and
then holds a request for hours. Here name lookup, connection, request, headers and body together
must end in time. Redirects are not followed: that would send texts and key to another host.
"""

import base64
import functools
import io
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

PART = 65_536  # bytes read at a time


class TooLongError(Exception):
    """The answer has more bytes than allowed."""


def post(
    address: str, data: bytes, headers: Mapping[str, str], *, seconds: float, most_bytes: int
) -> bytes:
    """Send a POST request and return the body of the answer.

    Parameters
    ----------
    address : str
        A user name and a password in it are sent as basic authentication, unless `headers` has an
        authorization.
    data : bytes
    headers : mapping of str to str
    seconds : float
        Limit on the whole request.
    most_bytes : int
        Limit on the body of the answer.

    Returns
    -------
    bytes

    Raises
    ------
    TimeoutError
        If the answer is not complete in time.
    TooLongError
        If the answer is too long.
    OSError, HTTPException, ValueError
        As raised by `urllib`.
    """
    connections: list[HTTPConnection] = []
    request = _request(address, data, headers)
    opener = urllib.request.build_opener(_NoRedirect, _Http(connections), _Https(connections))
    until = time.monotonic() + seconds

    def answer() -> bytes:
        try:
            response = opener.open(request, timeout=seconds)
        except urllib.error.HTTPError as error:  # its body is read within the limit, too
            with error:
                body = error.read(PART) if error.fp is not None else b""
            raise urllib.error.HTTPError(
                request.full_url, error.code, error.msg, error.headers, io.BytesIO(body)
            ) from None
        body = b""
        with response:
            while part := response.read1(PART):
                body += part
                if len(body) > most_bytes:
                    raise TooLongError
                if time.monotonic() > until:
                    raise TimeoutError
        return body

    try:
        return _within(seconds, answer)
    except TimeoutError:
        for connection in connections:  # ends the wait of the abandoned thread
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        raise


def _request(address: str, data: bytes, headers: Mapping[str, str]) -> urllib.request.Request:
    """Return the request, with the credentials of the address as a header."""
    parts = urlsplit(address)
    user, at, host = parts.netloc.rpartition("@")
    sent = dict(headers)
    if at:
        plain = unquote(user).encode()
        sent.setdefault("Authorization", f"Basic {base64.b64encode(plain).decode()}")
    bare = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    return urllib.request.Request(bare, data=data, headers=sent, method="POST")


def _within(seconds: float, function: Callable[[], bytes]) -> bytes:
    """Return the value of a function, or raise TimeoutError after so many seconds.

    The function runs in a thread of its own: a name lookup cannot be interrupted.
    """
    outcome: list[bytes | BaseException] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as an error."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    """Opens connections and keeps them in a list."""

    def __init__(self, opened: list[HTTPConnection]) -> None:
        super().__init__()
        self._opened = opened

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(functools.partial(_kept, self._opened, HTTPConnection), req)


class _Https(urllib.request.HTTPSHandler):
    """Opens encrypted connections and keeps them in a list."""

    def __init__(self, opened: list[HTTPConnection]) -> None:
        super().__init__()
        self._opened = opened

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(functools.partial(_kept, self._opened, HTTPSConnection), req)


def _kept(
    opened: list[HTTPConnection], kind: type[HTTPConnection], host: str, **options: Any
) -> HTTPConnection:
    """Return a new connection after adding it to a list."""
    connection = kind(host, **options)
    opened.append(connection)
    return connection
