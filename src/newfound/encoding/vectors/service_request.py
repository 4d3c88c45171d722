"""One request to an embedding service: what is sent, the faults, and the vectors answered."""

import json
import math
import time
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any

import numpy as np

from newfound.encoding.vectors.address import KEY, Address
from newfound.timed_request import TooLongError, post
from newfound.wording import plural

SECONDS = 120.0  # limit on one request
LONGEST_PAUSE = 300.0  # seconds that a service may ask to wait
BYTES_PER_NUMBER = 40  # of an answer, at most
WIDEST = 20_000  # dimensions of a vector
LONGEST_DETAIL = 200  # characters of the service's own message
TOO_MUCH = (400, 413, 422)  # what services answer to too many or too long texts
AGAIN = (408, 409, 425, 429)  # and all from 500 on
UNEVEN = "the vectors of an answer are not lists of equally many numbers"


class FaultError(Exception):
    """A request failed; the message gives the reason."""

    def __init__(
        self, reason: str, *, pause: float | None = None, again: bool = True, alive: bool = False
    ) -> None:
        super().__init__(reason)
        self.pause = pause  # seconds that the service asks to wait
        self.again = again  # whether another try may succeed
        self.alive = alive  # whether the service answered at all


class RefusedError(Exception):
    """The service refused the texts of a request, perhaps because they are too many or too long."""


@dataclass(frozen=True)
class Answer:
    """The vectors of a batch [B, width], and the tokens that the service counted."""

    vectors: np.ndarray
    tokens: int
    cut: int = 0  # texts that were cut


def request_vectors(address: Address, texts: Sequence[str], width: int | None = None) -> Answer:
    """Return the vectors that a service answers to one request.

    Parameters
    ----------
    address : Address
    texts : sequence of str
    width : int, optional
        Dimensions that the vectors are expected to have.

    Returns
    -------
    Answer

    Raises
    ------
    FaultError
        If the service or the network fails.
    RefusedError
        If the service refuses the texts.
    """
    # A text may contain a lone surrogate, which UTF-8 cannot encode, so everything is escaped.
    body = {"model": address.model, "input": list(texts), "encoding_format": "float"}
    data = json.dumps(body, ensure_ascii=True).encode("ascii")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    key = address.key()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    most = len(texts) * (width or WIDEST) * BYTES_PER_NUMBER + 100_000
    try:
        content = post(address.url, data, headers, seconds=SECONDS, most_bytes=most)
    except TooLongError as error:
        raise FaultError("the answer is too long", again=False) from error
    except urllib.error.HTTPError as error:
        raise _http_fault(address, error, key) from None
    except TimeoutError as error:
        raise FaultError(f"no answer within {SECONDS:g} seconds") from error
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        if isinstance(cause, TimeoutError):
            raise FaultError(f"no answer within {SECONDS:g} seconds") from error
        raise FaultError(f"no connection ({type(cause).__name__})") from error
    except ValueError:
        # The message of the error may contain the key.
        raise FaultError(f"the key in {KEY} cannot be sent", again=False) from None
    return _parse(content, len(texts))


def _http_fault(address: Address, error: urllib.error.HTTPError, key: str | None) -> Exception:
    """Return the exception for an HTTP error."""
    code = error.code
    detail = _detail(error.read(), key)
    if code in TOO_MUCH:
        return RefusedError(f"HTTP error {code}{detail}")
    if code in (401, 403):
        fault = f"the key in {address.key_name()} is not accepted"
        if not key:
            fault = f"it needs a key, and there is none in {address.key_name()}"
        return FaultError(f"HTTP error {code}, {fault}", again=False)
    if 300 <= code < 400:
        return FaultError(
            f"it redirects to another address (HTTP {code}), which is not followed; give that "
            "address",
            again=False,
        )
    if code not in AGAIN and code < 500:
        return FaultError(
            f"HTTP error {code}{detail}; check the address and the model", again=False
        )
    pause = _retry_after(error.headers.get("Retry-After"))
    if pause is not None and pause > LONGEST_PAUSE:
        return FaultError(
            f"HTTP error {code}, and it asks to wait {pause:,.0f} seconds; try again later",
            again=False,
        )
    return FaultError(f"HTTP error {code}{detail}", pause=pause, alive=True)


def _parse(content: bytes, count: int) -> Answer:
    """Return the vectors in an answer, in the order of their texts, or raise FaultError."""
    try:
        answer = json.loads(content)
        items = answer["data"]
        vectors: list[Any] = [None] * count
        for place, item in enumerate(items):
            vectors[int(item.get("index", place))] = item["embedding"]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise FaultError("the answer is not a list of embeddings") from error
    if len(items) != count or any(vector is None for vector in vectors):
        raise FaultError(f"it answered {len(items):,} vectors to {plural(count, 'text')}")
    try:
        found = np.array(vectors, np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise FaultError(UNEVEN) from error
    if found.ndim != 2 or not found.shape[1]:
        raise FaultError(UNEVEN)
    if not np.isfinite(found).all() or not found.any(1).all():
        raise FaultError("a vector of its answer is zero or not finite")
    usage = answer.get("usage")
    tokens = usage.get("total_tokens", usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
    return Answer(found, tokens if type(tokens) is int and tokens > 0 else 0)


def _retry_after(header: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, None without a valid one."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _detail(body: bytes, key: str | None) -> str:
    """Return the service's own message for a sentence, without the key; empty without one."""
    try:
        value = json.loads(body)
        value = value.get("error", value.get("message", value.get("detail")))
        if isinstance(value, dict):
            value = value.get("message")
    except (ValueError, AttributeError, RecursionError):
        return ""
    if not isinstance(value, str) or not value.strip():
        return ""
    text = " ".join(value.split())
    if key:
        text = text.replace(key, "***")
    return f" ({text[:LONGEST_DETAIL]})"
