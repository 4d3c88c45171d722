"""Predict the texts of requests that arrive together in common batches, in worker threads.

1. A request waits in a queue that holds a limited number of texts.
2. A free worker takes texts of the waiting requests in turn, so that a long request does not hold
   up short ones, and shares them out in one batch per worker. Nobody waits for a batch to fill.
3. The texts of a batch are of similar length: those of the same length are encoded together. A
   batch has a limited number of characters.
4. A long text is a batch of its own. All workers but one may predict long texts at a time; a single
   worker takes turns between them and the others. So a short text does not wait for a long one, or
   at most for one.
5. Texts of a request that nobody waits for any more (refused because of its time, or its client has
   gone) leave the queue at once.
6. A request is answered when its last text is. All its texts are predicted by one model, the one
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
CHARACTERS = 16_384  # of a batch, at most
LONG = 2048  # characters of a text that gets a batch of its own

Predict = Callable[[Sequence[str]], Sequence[str]]  # texts to their answers


class QueueFullError(Exception):
    """The texts of a request do not fit into the queue."""


class Waiting:
    """A request whose texts wait for their answers.

    Attributes
    ----------
    future : asyncio.Future
        Receives the answers, or the error of the prediction. Texts of a request whose future was
        cancelled leave the queue.
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
        self._long: deque[list[Item]] = deque()  # batches of one long text
        self._long_workers = max(1, workers - 1)  # that may predict long texts at a time
        self._at_long = 0  # workers that do
        self._long_came_last = False  # whether the last batch that was begun was a long text
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
        request.future.add_done_callback(lambda future: self._drop(request))
        return request.future

    @property
    def seconds_to_empty(self) -> float:
        """Seconds in which what waits should be answered, by the speed of the last batches."""
        return self.waiting * self._pace / len(self._threads)

    def close(self, seconds: float | None = None) -> bool:
        """Answer what waits, and end the threads.

        Parameters
        ----------
        seconds : float, optional
            Time after which a thread is left to itself.

        Returns
        -------
        bool
            Whether all threads have ended.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _drop(self, request: Waiting) -> None:
        """Remove what waits of a request that was cancelled or has failed."""
        with self._changed:
            left = len(request.texts) - request.taken
            if left:
                request.taken = len(request.texts)
                self._requests.remove(request)
            if request.missing and self._long:
                kept = [batch for batch in self._long if batch[0][0] is not request]
                left += len(self._long) - len(kept)
                self._long = deque(kept)
            self.waiting -= left
            if self._closed:
                self._changed.notify_all()

    def _work(self) -> None:
        """Answer batches until the queue is closed and empty."""
        while True:
            with self._changed:
                while (batch := self._next()) is None:
                    if self._closed and not self._long:
                        return
                    self._changed.wait()
                self.waiting -= len(batch)
                long = len(batch[0][0].texts[batch[0][1]]) > LONG
                self._at_long += long
                self._long_came_last = long
            wanted = [item for item in batch if not item[0].future.done()]
            if wanted:
                self._answer(wanted)
            if long:
                with self._changed:
                    self._at_long -= 1
                    self._changed.notify_all()

    def _next(self) -> list[Item] | None:
        """Return the batch that a free worker answers, None if there is none; the lock is held."""
        if not self._batches and self._requests:
            self._batches.extend(self._share_out(self._take()))
            self._changed.notify_all()
        turn = not (self._batches and self._long_came_last)
        if self._long and self._at_long < self._long_workers and turn:
            return self._long.popleft()
        return self._batches.popleft() if self._batches else None

    def _take(self) -> list[Item]:
        """Take texts of waiting requests in turn, all for one model; the lock is held.

        Long texts are set apart.
        """
        room, characters = BATCH * len(self._threads), CHARACTERS * len(self._threads)
        items: list[Item] = []
        later: list[Waiting] = []  # for another model
        while room and characters > 0 and self._requests:
            request = self._requests.popleft()
            if items and request.predict is not items[0][0].predict:
                later.append(request)
                continue
            stop = min(len(request.texts), request.taken + min(room, TURN))
            while request.taken < stop and characters > 0:
                item, size = (request, request.taken), len(request.texts[request.taken])
                request.taken += 1
                if size > LONG:
                    self._long.append([item])
                    continue
                items.append(item)
                room -= 1
                characters -= size
            if request.taken < len(request.texts):
                self._requests.append(request)
        self._requests.extendleft(reversed(later))
        return items

    def _share_out(self, items: list[Item]) -> list[list[Item]]:
        """Return batches of texts of similar length, at least one for each worker."""
        ordered = sorted(items, key=lambda item: len(item[0].texts[item[1]]))
        size = -(-len(ordered) // len(self._threads))
        batches: list[list[Item]] = []
        characters = 0
        for item in ordered:
            length = len(item[0].texts[item[1]])
            if not batches or len(batches[-1]) == size or characters + length > CHARACTERS:
                batches.append([])
                characters = 0
            batches[-1].append(item)
            characters += length
        return batches

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
