"""An embedding service: vectors from any OpenAI-compatible `/v1/embeddings`.

1. Look up each text in the store on disk, under the model and the text.
2. Send the others in batches, several at once. A refused batch is split; a text that is refused
   alone is cut in half, because it may be too long.
3. Try again after a fault of the service or of the network, after a growing pause or the one that
   the service asks for.
4. Check each answer and store its vectors at once, so that nothing is paid twice, also after a
   fault.
"""

import hashlib
import json
import queue
import random
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound.encoding.vectors.address import Address, parse_address
from newfound.encoding.vectors.service_request import (
    Answer,
    FaultError,
    RefusedError,
    request_vectors,
)
from newfound.encoding.vectors.vector_store import VectorStore
from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields
from newfound.progress import Advance
from newfound.wording import plural

BATCH = 128  # texts per request
BATCH_CHARACTERS = 100_000  # per request; a longer text is sent alone
AT_ONCE = 4  # parallel requests
TRIES = 6
FIRST_TRIES = 2  # before any answer: an address that nobody listens at is not worth a minute
PAUSE = 1.0  # seconds before the second try; doubled for each further one
SHORTEST = 500  # characters of a text that is not cut any further


class ServiceEncoder:
    """An embedding service as a frozen encoder.

    Parameters
    ----------
    address : Address
    prompt : str, optional
        Put before every text.
    store : Path, optional
        Folder of the stored vectors; by default as `VectorStore` chooses it.
    """

    kind = "service"
    device = torch.device("cpu")
    left_out = None

    def __init__(
        self, address: Address, *, prompt: str | None = None, store: Path | None = None
    ) -> None:
        self.address, self.prompt, self.store = address, prompt or "", store
        self.name = f"{address.model} at {address.host}"
        self.width: int | None = None
        self.tokens = self.sent = self.found = self.cut = 0
        self._answered = False  # whether the service has ever given vectors
        self._stop = threading.Event()  # ends the pauses of requests that nobody waits for

    @property
    def fingerprint(self) -> str:
        """A hash of address, model and prompt."""
        content = json.dumps([self.address.url, self.address.model, self.prompt])
        return hashlib.sha256(content.encode()).hexdigest()

    def encode(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the vectors [N, width] of texts, float32, from the store or from the service."""
        given = [self.prompt + text for text in texts]
        with VectorStore(self.address, self.store) as store:
            known = store.read(given)
            if self.width is None and known:
                self.width = len(next(iter(known.values())))
            missing = [text for text in dict.fromkeys(given) if text not in known]
            self.found += len(given) - len(missing)
            if advance:
                advance(len(given) - len(missing))
            for part, answer in self._ask_all(missing):
                vectors = answer.vectors
                self._check_width(vectors.shape[1], store.path)
                store.write(part, vectors)
                known.update(zip(part, vectors, strict=True))
                self.tokens += answer.tokens
                self.cut += answer.cut
                self.sent += len(part)
                if advance:
                    advance(len(part))
        return np.array([known[text] for text in given], np.float32)

    def _check_width(self, width: int, stored: Path) -> None:
        """Raise InputError if the service gives vectors of other dimensions than before."""
        self.width = self.width or width
        if width != self.width:
            raise InputError(
                f"the embedding service {self.name} now gives vectors of {width:,} dimensions, and "
                f"gave {self.width:,} before: the model behind this name has changed; delete its "
                f"stored vectors ({stored}), and fit again"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs; the key is not part of it."""
        return {"kind": self.kind, "address": str(self.address), "prompt": self.prompt}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "ServiceEncoder":
        """Return the service that `to_dict` describes."""
        check_fields(value, {"address": str, "prompt": str}, "vectors.json, encoder")
        try:
            address = parse_address(value["address"])
        except InputError as error:
            raise DamagedFileError(f"vectors.json: {error}") from error
        return cls(address, prompt=value["prompt"])

    def notes(self) -> list[str]:
        """Return how many texts were sent, and how many tokens the service counted."""
        if not self.sent:
            return []
        cost = f" ({plural(self.tokens, 'token')})" if self.tokens else ""
        notes = [
            f"{plural(self.sent, 'text was', 'texts were')} sent to {self.name}{cost}; "
            f"{plural(self.found, 'vector', 'vectors')} came from the store on disk"
        ]
        if self.cut:
            notes.append(
                f"{plural(self.cut, 'text was', 'texts were')} too long for {self.name}, and only "
                "the beginning was sent"
            )
        return notes

    def _ask_all(self, texts: list[str]) -> Iterator[tuple[list[str], Answer]]:
        """Yield batches of texts with their vectors, in the order in which they arrive."""
        batches, halves = batches_of(texts), deque[list[str]]()
        done: queue.SimpleQueue[tuple[list[str], Answer | BaseException]] = queue.SimpleQueue()
        running, fault = 0, None

        def ask(batch: list[str]) -> None:
            try:
                done.put((batch, self._ask(batch)))
            except BaseException as error:
                done.put((batch, error))

        self._stop.clear()
        try:
            while True:
                # One request first: its faults are those of all.
                most = 0 if fault else AT_ONCE if self._answered else 1
                while running < most:
                    batch = halves.popleft() if halves else next(batches, None)
                    if batch is None:
                        break
                    # Such a thread does not keep an interrupted command alive.
                    threading.Thread(target=ask, args=(batch,), daemon=True).start()
                    running += 1
                if not running:
                    break
                part, answer = done.get()
                running -= 1
                if isinstance(answer, Answer):
                    yield part, answer
                elif isinstance(answer, RefusedError):  # of several texts
                    half = len(part) // 2
                    halves += [part[:half], part[half:]]
                else:  # the answers under way are paid for, and are waited for
                    fault = fault or answer
                    self._stop.set()
        finally:
            self._stop.set()
        if fault is not None:
            raise fault

    def _ask(self, texts: list[str]) -> Answer:
        """Return the vectors of a batch; a single text that is refused is cut."""
        try:
            return self._ask_patiently(texts)
        except RefusedError as error:
            if len(texts) > 1:
                raise
            return self._ask_cut(texts[0], error)

    def _ask_cut(self, text: str, error: RefusedError) -> Answer:
        """Return the vector of the longest beginning of a text that the service takes."""
        beginning = text
        while len(beginning) >= 2 * SHORTEST:
            beginning = beginning[: len(beginning) // 2]
            with suppress(RefusedError):
                answer = self._ask_patiently([beginning])
                return Answer(answer.vectors, answer.tokens, 1)
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InputError(
            f"the embedding service {self.name} refuses the text {shown!r}: {error}; remove it, or "
            "check the address and the model"
        )

    def _ask_patiently(self, texts: list[str]) -> Answer:
        """Return the vectors of a batch, after several tries if need be."""
        tries = 0
        while True:
            try:
                answer = request_vectors(self.address, texts, self.width)
            except FaultError as error:
                tries += 1
                most = TRIES if self._answered or error.alive else FIRST_TRIES
                grown = PAUSE * 2 ** (tries - 1) * random.uniform(0.8, 1.2)
                if not error.again or tries >= most:
                    raise InputError(self._gave_up(str(error), tries)) from error
                if self._stop.wait(grown if error.pause is None else error.pause):
                    raise InputError(self._gave_up(str(error), tries)) from error
            else:
                self._answered = True
                return answer

    def _gave_up(self, reason: str, tries: int) -> str:
        """Return the message on a service that does not answer."""
        often = f" after {tries} tries" if tries > 1 else ""
        kept = "; the vectors so far are stored, and the same command goes on from there"
        return (
            f"the embedding service {self.name} failed{often}: {reason}"
            f"{kept if self._answered else ''}"
        )


def batches_of(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in batches of at most BATCH texts and BATCH_CHARACTERS characters.

    Examples
    --------
    >>> [len(batch) for batch in batches_of(["a"] * 300)]
    [128, 128, 44]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
