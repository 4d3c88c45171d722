"""The HTTP interface: routes, the token, and errors as JSON with one sentence."""

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newfound.errors import InputError
from newfound.serving.bodies import RefusedError, parse_texts, read_body
from newfound.serving.metrics import Metrics
from newfound.serving.openapi import answers, body_of_texts, describe
from newfound.serving.service import Service
from newfound.versions import __version__

DESCRIPTION = (
    "Predicts the categories of texts with the model of a run, as `newfound predict` does."
)
# What a browser or a load balancer asks for without a token; it holds nothing of the run.
OPEN = ("/health", "/docs", "/openapi.json")
STATIC = "/docs/static"
COUNTED = ("/predict", "/categories", "/health", "/metrics", "/reload")
BROKEN = "the prediction failed; the log of the server has the details"
LOGGER = logging.getLogger("uvicorn.error")
Answer = Callable[[Request], Awaitable[Response]]
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def make_app(service: Service, token: str | None = None) -> ASGIApp:
    """Return the ASGI application of a service.

    Parameters
    ----------
    service : Service
    token : str, optional
        Required of every request but those for health and documentation.

    Returns
    -------
    ASGIApp
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        yield
        await service.close()

    app = FastAPIOffline(
        docs_url="/docs",
        redoc_url=None,
        static_url=STATIC,
        title="newfound",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        swagger_ui_oauth2_redirect_url="/docs/oauth2-redirect",
    )
    predict = _predict_with(service)
    _add_routes(app, service, predict)
    _add_errors(app)
    described = describe(app, token=token is not None)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return Guard(app, service.metrics, token, predict)


def _predict_with(service: Service) -> Answer:
    """Return the function that answers POST /predict."""
    limits = service.limits

    async def predict(request: Request) -> Response:
        deadline = asyncio.get_running_loop().time() + limits.seconds
        try:
            body = await read_body(request, limits.body, limits.seconds)
            texts = parse_texts(request.headers.get("content-type", ""), body, limits.text)
            return _json(await service.answer(texts, deadline, partial(_until_gone, request)))
        except RefusedError as error:
            return _error(error.status, error.sentence, error.headers)
        except InputError as error:
            return _error(500, str(error))
        except Exception:  # a bug
            LOGGER.exception("a prediction failed")
            return _error(500, BROKEN)

    return predict


async def _until_gone(request: Request) -> None:
    """Return when the client has closed the connection; the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _add_routes(app: FastAPI, service: Service, predict: Answer) -> None:
    """Add the routes of the service."""
    # The body is read and checked by hand: FastAPI would check every text of it twice. The guard
    # calls `predict` itself; this route describes it, and refuses other methods.
    app.post(
        "/predict",
        summary="Predict the categories of one text or of up to 1,000",
        openapi_extra=body_of_texts(),
        **answers("Predictions", "The predictions.", 400, 408, 413, 415, 422, 500, 503),
    )(predict)

    @app.get(
        "/categories",
        summary="List the categories of the run",
        **answers("Categories", "The categories."),
    )
    async def categories() -> Response:
        return _json(service.run.categories)

    @app.get("/health", summary="Tell whether the service works", **answers("Health", "It does."))
    async def health() -> Response:
        value = {
            "status": "ok",
            "model": service.run.digest,
            "precision": service.run.model.precision,
            "waiting": service.waiting,
            "last_reload": service.last_reload,
        }
        return _json(json.dumps(value))

    @app.get(
        "/metrics",
        summary="Metrics in the format of Prometheus",
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        response_class=Response,
    )
    async def metrics() -> Response:
        return Response(service.metrics.page(), headers={"Content-Type": METRICS_TYPE})

    @app.post(
        "/reload",
        summary="Load the run folder again; the new run takes the place of the old one",
        **answers("Loaded", "The new run is served.", 409),
    )
    async def reload() -> Response:
        try:
            run = await service.reload()
        except InputError as error:
            raise RefusedError(
                409, f"the new run cannot be used, so the old one is still served: {error}"
            ) from error
        return _json(json.dumps({"model": run.digest, "notes": run.notes}))


def _add_errors(app: FastAPI) -> None:
    """Let every error be JSON with one sentence."""

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> Response:
        return _error(error.status, error.sentence, error.headers)

    @app.exception_handler(InputError)
    async def failed(request: Request, error: InputError) -> Response:
        return _error(500, str(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        path, method = request.url.path, request.method
        sentences = {
            404: f"there is no {path}; /docs lists what there is",
            405: f"{path} does not take {method}; /docs lists what there is",
        }
        sentence = sentences.get(error.status_code, str(error.detail))
        return _error(error.status_code, sentence, error.headers)

    @app.exception_handler(Exception)  # a bug: the server logs it
    async def broken(request: Request, error: Exception) -> Response:
        return _error(500, BROKEN)


class Guard:
    """Requires the token, counts requests, and hands texts to predict past the routes of FastAPI.

    Routing takes FastAPI longer than everything else that a request needs but its prediction.

    Parameters
    ----------
    app : ASGIApp
    metrics : Metrics
    token : str or None
    predict : callable
        Answers POST /predict.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, token: str | None, predict: Answer) -> None:
        self.app, self.metrics, self.predict = app, metrics, predict
        self.wanted = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        counted = path if path in COUNTED else "other"

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.requests.labels(counted, message["status"]).inc()
            await send(message)

        if self._allowed(path, scope):
            if path == "/predict" and scope["method"] == "POST":
                response = await self.predict(Request(scope, receive))
                await response(scope, receive, count)
            else:
                await self.app(scope, receive, count)
            return
        refused = _error(
            401,
            "the token is missing or wrong; send it as Authorization: Bearer TOKEN",
            {"WWW-Authenticate": "Bearer", "Connection": "close"},
        )
        await refused(scope, receive, count)

    def _allowed(self, path: str, scope: Scope) -> bool:
        """Return whether a request may be answered."""
        if self.wanted is None or path in OPEN or path.startswith(STATIC + "/"):
            return True
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        # The time of the comparison does not depend on how much of the token is right.
        return len(given) == 1 and hmac.compare_digest(given[0], self.wanted)


def _json(content: str, status: int = 200, headers: Any = None) -> Response:
    return Response(content, status, headers, media_type="application/json")


def _error(status: int, sentence: str, headers: Any = None) -> Response:
    return _json(json.dumps({"error": sentence}, ensure_ascii=False), status, headers)
