"""The web server of the review: on this machine only, for those who have the token.

Every request must name this server as its host, so that no other site can reach it under a name of
its own, and carry the token. A request that changes anything must also come from the page itself
(its Origin), as JSON.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from newfound.decisions import StaleError
from newfound.errors import InputError
from newfound.files import without_nan
from newfound.report.page import page
from newfound.review.page import extension
from newfound.review.session import Session

LARGEST_REQUEST = 20_000_000  # bytes: the ids of some hundred thousand texts
TOKEN = "x-newfound-token"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the rest is in the page
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def make_app(session: Session, token: str, port: int) -> Starlette:
    """Return the application.

    Parameters
    ----------
    session : Session
    token : str
        What the address of the page and the header of other requests must hold.
    port : int
        Port of the server, which the Host header must name.

    Returns
    -------
    Starlette
    """
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
    origins = {f"http://{host}" for host in hosts}

    def refused(request: Request) -> str | None:
        """Return why a request is refused, None if it is not."""
        if request.headers.get("host", "") not in hosts:
            return "the request names another host"
        given = request.headers.get(TOKEN) or request.query_params.get("token") or ""
        if not secrets.compare_digest(given.encode(), token.encode()):
            return "the token is missing or wrong; open the address that the command printed"
        if request.method != "GET" and request.headers.get("origin") not in origins:
            return "the request comes from another page"
        return None

    def guarded(
        answer: Callable[[Request], Awaitable[Response]],
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that refuses requests of others and turns errors into answers."""

        async def handle(request: Request) -> Response:
            reason = refused(request)
            if reason is not None:
                response: Response = _json({"error": reason}, 403)
            else:
                try:
                    response = await answer(request)
                except StaleError as error:
                    state = await run_in_threadpool(session.state)
                    response = _json({"error": str(error), **state}, 409)
                except InputError as error:
                    response = _json({"error": str(error)}, 400)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return handle

    async def show(request: Request) -> Response:
        data = await run_in_threadpool(session.page_data)
        return HTMLResponse(page(data, extension()))

    async def state(request: Request) -> Response:
        return _json(await run_in_threadpool(session.state))

    async def digest(request: Request) -> Response:
        return _json(await run_in_threadpool(session.digest))

    async def decide(request: Request) -> Response:
        value = await _body(request)
        decisions, expected = value.get("decisions"), value.get("expected")
        if not isinstance(decisions, list) or not isinstance(expected, str):
            raise InputError("the request must have 'decisions' and 'expected'")
        return _json(await run_in_threadpool(session.decide, decisions, expected))

    async def split(request: Request) -> Response:
        category = (await _body(request)).get("category")
        return _json(await run_in_threadpool(session.split, str(category)))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> Any:
        session.splitter.start()
        try:
            yield
        finally:
            session.splitter.close()

    return Starlette(
        routes=[
            Route("/", guarded(show)),
            Route("/state", guarded(state)),
            Route("/digest", guarded(digest)),
            Route("/decide", guarded(decide), methods=["POST"]),
            Route("/split", guarded(split), methods=["POST"]),
        ],
        lifespan=lifespan,
    )


async def _body(request: Request) -> Mapping[str, Any]:
    """Return the JSON object in a request."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise InputError("the request must be JSON")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_REQUEST:
            raise InputError("the request is too large; choose fewer texts at a time")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError("the request is not valid JSON") from error
    if not isinstance(value, dict):
        raise InputError("the request must be a JSON object")
    return value


def _json(value: Mapping[str, Any], status: int = 200) -> Response:
    """Return a value as JSON, with null for NaN."""
    return JSONResponse(without_nan(value), status)
