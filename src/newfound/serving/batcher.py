"""Predict the texts of requests that arrive together in common batches, in worker threads.

1. A request waits in a queue that holds a limited number of texts.
2. A free worker takes texts of the waiting requests in turn, so that a long request does not hold
   up short ones, and shares them out in one batch per worker. Nobody waits for a batch to fill.
3. The texts of a batch are of similar length: those of the same length are encoded together.
4. A request is answered when its last text is. All its texts are predicted by one model, the one
   that was current when it arrived.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

BATCH = 64  # most texts of a batch; larger ones are hardly faster, and the next ones wait longer
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


Item = tuple[Waiting, int]  # a request, and the position of one of its texts


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
        self._batches: deque[list[Item]] = deque()  # that the next workers take
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
                while not self._requests and not self._batches and not self._closed:
                    self._changed.wait()
                if not self._batches:
                    if not self._requests:
                        return
                    self._batches.extend(self._share_out(self._take()))
                    self._changed.notify(len(self._batches))
                batch = self._batches.popleft() if self._batches else []
                self.waiting -= len(batch)
            if batch:
                self._answer(batch)

    def _take(self) -> list[Item]:
        """Take texts of waiting requests in turn, all for one model; the lock is held."""
        room = BATCH * len(self._threads)
        items: list[Item] = []
        later: list[Waiting] = []  # for another model
        while room and self._requests:
            request = self._requests.popleft()
            if request.future.cancelled():
                self.waiting -= len(request.texts) - request.taken
                continue
            if items and request.predict is not items[0][0].predict:
                later.append(request)
                continue
            start = request.taken
            request.taken = min(len(request.texts), start + min(room, TURN))
            room -= request.taken - start
            items += [(request, position) for position in range(start, request.taken)]
            if request.taken < len(request.texts):
                self._requests.append(request)
        self._requests.extendleft(reversed(later))
        return items

    def _share_out(self, items: list[Item]) -> list[list[Item]]:
        """Return batches of texts of similar length, one for each worker."""
        ordered = sorted(items, key=lambda item: len(item[0].texts[item[1]]))
        size = -(-len(ordered) // len(self._threads))
        return [ordered[i : i + size] for i in range(0, len(ordered), max(size, 1))]

    def _answer(self, batch: list[Item]) -> None:
        """Predict the texts of a batch and hand the answers to the loop of the requests."""
        texts = [request.texts[position] for request, position in batch]
        self._batched(len(texts))
        begun = time.perf_counter()
        found: Sequence[str] | Exception
        try:
            found = batch[0][0].predict(texts)
        except Exception as error:  # of this batch only; its requests report it
            found = error
        pace = (time.perf_counter() - begun) / len(texts)
        self._pace = 0.8 * self._pace + 0.2 * pace if self._pace else pace
        # One call for all requests, because each one wakes up the loop.
        self._loop.call_soon_threadsafe(_deliver, batch, found)


def _deliver(batch: list[Item], found: Sequence[str] | Exception) -> None:
    """Hand the answers of a batch, or its error, to its requests; runs in their loop."""
    for place, (request, position) in enumerate(batch):
        if request.future.done():  # refused because of its time, or failed
            continue
        if isinstance(found, Exception):
            request.future.set_exception(found)
            continue
        request.answers[position] = found[place]
        request.missing -= 1
        if not request.missing:
            request.future.set_result(request.answers)
