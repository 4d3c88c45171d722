"""Run the service in this process: the socket, signals, and a clean end."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from newfound.errors import InputError
from newfound.serving.protocol import LimitedProtocol
from newfound.serving.service import Service

BACKLOG = 2048  # connections that wait to be accepted
LAST = 3.0  # seconds beyond the time limit of a request in which its answer is sent
SPARE = 128  # files that are open beside connections


class Server(uvicorn.Server):
    """A uvicorn server that loads the run again at SIGHUP, and ends at SIGINT and SIGTERM.

    Parameters
    ----------
    app : ASGIApp
    service : Service
    ready : callable
        Called when requests are answered.
    hangup : Event, optional
        Set if SIGHUP came before the server runs; the run is then loaded again at once.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        ready: Callable[[], None],
        hangup: threading.Event | None = None,
    ) -> None:
        limits = replace(service.limits, connections=_room_for(service.limits.connections))
        refused = service.metrics.requests
        config = uvicorn.Config(
            app,
            http=partial(  # type: ignore[arg-type]  # called as a class is
                LimitedProtocol,
                limits=limits,
                refused=lambda status: refused.labels("other", status).inc(),
            ),
            ws="none",
            log_config=None,  # warnings and errors go to standard error
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of a client is not used
            backlog=BACKLOG,
            timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]  # any number of seconds
            timeout_graceful_shutdown=round(service.limits.seconds + LAST),
        )
        super().__init__(config)
        self._service, self._ready, self._hangup = service, ready, hangup
        self._reloads: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        if self.started:
            self._ready()
            if self._hangup is not None and self._hangup.is_set():
                self._reload()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs; one that ended it is not raised again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers: dict[int, Callable[..., Any]] = {
            signal.SIGINT: self.handle_exit,
            signal.SIGTERM: self.handle_exit,
        }
        if hasattr(signal, "SIGHUP"):  # a POSIX system
            loop = asyncio.get_running_loop()
            handlers[signal.SIGHUP] = lambda *_: loop.call_soon_threadsafe(self._reload)
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _reload(self) -> None:
        """Load the run again in the background; the service reports how that ended."""

        async def reload() -> None:
            with contextlib.suppress(InputError):
                await self._service.reload()

        task = asyncio.get_running_loop().create_task(reload())
        self._reloads.add(task)  # a task that nobody holds may be discarded
        task.add_done_callback(self._reloads.discard)


def _room_for(connections: int) -> int:
    """Let this process open so many connections; return how many it can."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return max(1, min(connections, soft - SPARE))
    return connections


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Parameters
    ----------
    host : str
        Name or address.
    port : int
        0 chooses a free port.

    Returns
    -------
    socket
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        why = error.strerror or error
        raise InputError(
            f"cannot listen on {host}, port {port}: {why}; choose others with --host and --port"
        ) from error


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback
