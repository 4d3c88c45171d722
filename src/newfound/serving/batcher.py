"""Predict the texts of requests that arrive together in common batches, in worker threads.

1. A request waits in a queue that holds a limited number of texts.
2. A free worker takes texts of the waiting requests in turn, so that a long request does not hold
   up short ones. Workers share what waits, and nobody waits for a batch to fill.
3. A request is answered when its last text is. All its texts are predicted by one model, the one
   that was current when it arrived.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

BATCH = 256  # most texts of a batch; larger ones are hardly faster, and the next ones wait longer
TURN = 16  # texts of a request that are taken before it is the next one's turn

Predict = Callable[[Sequence[str]], Sequence[str]]  # texts to their answers


class QueueFullError(Exception):
    """The texts of a request do not fit into the queue."""


class Waiting:
    """A request whose texts wait for their answers.

    Attributes
    ----------
    future : asyncio.Future
        Receives the answers, or the error of the prediction. Texts of a request whose future was
        cancelled are not predicted.
    """

    def __init__(
        self, predict: Predict, texts: Sequence[str], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.predict, self.texts = predict, texts
        self.answers: list[str] = [""] * len(texts)
        self.taken = 0  # texts that a worker has taken
        self.missing = len(texts)  # answers
        self.future: asyncio.Future[list[str]] = loop.create_future()


Piece = tuple[Waiting, int, int]  # a request, and the first and the last row (not included)


class Batcher:
    """A queue of requests, and the threads that answer them.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        The loop of the requests. `submit` must be called in it.
    workers : int
        Number of threads.
    limit : int
        Most texts that wait.
    batched : callable, optional
        Called with the number of texts of every batch.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        workers: int,
        limit: int,
        batched: Callable[[int], Any] = lambda size: None,
    ) -> None:
        self._loop, self._limit, self._batched = loop, limit, batched
        self._requests: deque[Waiting] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.waiting = 0  # texts
        self._pace = 0.0  # seconds of a worker per text, of late
        self._threads = [
            threading.Thread(target=self._work, name=f"predict-{i}", daemon=True)
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, predict: Predict, texts: Sequence[str]) -> "asyncio.Future[list[str]]":
        """Add a request of at least one text to the queue.

        Parameters
        ----------
        predict : callable
            Returns the answers of texts. Requests with the same one may share a batch.
        texts : sequence of str

        Returns
        -------
        asyncio.Future
            Of the answers, in the order of the texts.

        Raises
        ------
        QueueFullError
        """
        request = Waiting(predict, texts, self._loop)
        with self._changed:
            if self._closed or self.waiting + len(texts) > self._limit:
                raise QueueFullError
            self._requests.append(request)
            self.waiting += len(texts)
            self._changed.notify()
        return request.future

    @property
    def seconds_to_empty(self) -> float:
        """Seconds in which what waits should be answered, by the speed of the last batches."""
        return self.waiting * self._pace / len(self._threads)

    def close(self) -> None:
        """Answer what waits, and end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """Answer batches until the queue is closed and empty."""
        while True:
            with self._changed:
                while not self._requests and not self._closed:
                    self._changed.wait()
                if not self._requests:
                    return
                pieces = self._take()
            if pieces:
                self._answer(pieces)

    def _take(self) -> list[Piece]:
        """Take texts of waiting requests in turn, all for one model; the lock is held."""
        room = min(BATCH, -(-self.waiting // len(self._threads)))
        pieces: list[Piece] = []
        later: list[Waiting] = []  # for another model
        while room and self._requests:
            request = self._requests.popleft()
            if request.future.cancelled():
                self.waiting -= len(request.texts) - request.taken
                continue
            if pieces and request.predict is not pieces[0][0].predict:
                later.append(request)
                continue
            start = request.taken
            stop = min(len(request.texts), start + min(room, TURN))
            request.taken = stop
            room -= stop - start
            pieces.append((request, start, stop))
            if stop < len(request.texts):
                self._requests.append(request)
        self._requests.extendleft(reversed(later))
        self.waiting -= sum(stop - start for _, start, stop in pieces)
        if self._requests:
            self._changed.notify()  # another worker has work to do
        return pieces

    def _answer(self, pieces: list[Piece]) -> None:
        """Predict the texts of a batch and hand the answers to the loop of the requests."""
        texts = [text for request, start, stop in pieces for text in request.texts[start:stop]]
        self._batched(len(texts))
        begun = time.perf_counter()
        found: Sequence[str] | Exception
        try:
            found = pieces[0][0].predict(texts)
        except Exception as error:  # of this batch only; its requests report it
            found = error
        pace = (time.perf_counter() - begun) / len(texts)
        self._pace = 0.8 * self._pace + 0.2 * pace if self._pace else pace
        # One call for all requests, because each one wakes up the loop.
        self._loop.call_soon_threadsafe(_deliver, pieces, found)


def _deliver(pieces: list[Piece], found: Sequence[str] | Exception) -> None:
    """Hand the answers of a batch, or its error, to its requests; runs in their loop."""
    position = 0
    for request, start, stop in pieces:
        if isinstance(found, Exception):
            if not request.future.done():
                request.future.set_exception(found)
            continue
        request.answers[start:stop] = found[position : position + stop - start]
        position += stop - start
        request.missing -= stop - start
        if not request.missing and not request.future.done():
            request.future.set_result(request.answers)
