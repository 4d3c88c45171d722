"""Read and check the bodies of requests."""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

MOST_TEXTS = 1000  # of one request
USAGE = '{"text": "..."} or {"texts": ["...", "..."]}'


class RefusedError(Exception):
    """A request that is not answered, with a status and one sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """Return the body of a request, of at most `limit` bytes."""
    too_large = RefusedError(
        413,
        f"the body is larger than {limit:,} bytes; send fewer texts per request",
        {"Connection": "close"},
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise RefusedError(
            408,
            f"the body did not arrive in {seconds:g} s; send it at once",
            {"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RefusedError(400, "the connection was closed before the body was complete") from None
    return b"".join(parts)


def parse_texts(content_type: str, body: bytes, longest: int) -> list[str]:
    """Return the texts in a body, of at most `longest` characters; refuse anything else."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(415, "the body must be JSON: send Content-Type: application/json")
    try:
        value: Any = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RefusedError(400, f"the body is not valid JSON{where}; send {USAGE}") from None
    if not isinstance(value, dict) or set(value) not in ({"text"}, {"texts"}):
        raise RefusedError(422, f"the body must be an object with one field; send {USAGE}")
    if "text" in value:
        texts, names = [value["text"]], ["text"]
    else:
        texts = value["texts"]
        if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TEXTS:
            raise RefusedError(422, f"texts must be a list of 1 to {MOST_TEXTS:,} texts")
        names = [f"texts[{i}]" for i in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        if not isinstance(text, str):
            raise RefusedError(422, f"{name} is not a string; send each text as a string")
        if len(text) > longest:
            raise RefusedError(
                413,
                f"{name} has {len(text):,} characters, and a text may have {longest:,}; send "
                "shorter texts",
            )
    return texts


def _no_constant(name: str) -> None:
    """Refuse NaN and infinity, which Python reads and JSON does not have."""
    raise ValueError(name)
