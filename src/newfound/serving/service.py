"""The run that is served: its model, the queue of requests, and reloading."""

import asyncio
import json
import math
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from threadpoolctl import threadpool_limits

from newfound.data.tables.streaming import TableChunk
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.files import read_steadily, without_nan
from newfound.prediction import ModelOptions, load_for_prediction, model_digest, predicted
from newfound.serving.batcher import Batcher, QueueFullError
from newfound.serving.bodies import RefusedError
from newfound.serving.metrics import Metrics

if TYPE_CHECKING:
    from newfound.model import Model

NOT_ANSWERED = ("id", "text")  # columns of predictions that a client knows
ENDING = 5.0  # seconds in which predictions must end when the service does
CLOSED = 499  # status of a request whose client has gone; nobody receives it


@dataclass(frozen=True)
class Limits:
    """Limits of a service.

    Attributes
    ----------
    queue : int
        Most texts that wait; further requests are refused.
    body : int
        Most bytes of the body of a request.
    text : int
        Most characters of a text.
    seconds : float
        Longest time until a request is answered, from the end of its headers.
    connections : int
        Most connections at a time.
    head : int
        Most bytes of the address and the headers of a request.
    head_seconds : float
        Longest time in which they must arrive.
    idle_seconds : float
        Most seconds until a connection sends its first request, or the next one.
    """

    queue: int = 4096
    body: int = 4 * 2**20
    text: int = 100_000
    seconds: float = 30.0
    connections: int = 1024
    head: int = 32 * 2**10
    head_seconds: float = 10.0
    idle_seconds: float = 75.0


@dataclass(frozen=True, eq=False)
class ServedRun:
    """A run as it was loaded.

    Attributes
    ----------
    model : Model
    digest : str
        sha256 of the model, by which clients tell which model answered.
    notes : tuple of str
        Notes on the model, such as the agreement of int8.
    categories : str
        The categories as JSON.
    """

    model: "Model"
    digest: str
    notes: tuple[str, ...]
    categories: str
    _lock: Lock = field(default_factory=Lock)

    @property
    def parallel(self) -> bool:
        """Whether several threads may predict: the encoder is ours, and runs on a CPU."""
        return self.model.features.kind == EncoderFeatures.kind and self.model.device == "cpu"

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the prediction of each text as a JSON object, as `newfound predict` has it."""
        chunk = TableChunk([""] * len(texts), list(texts))
        with nullcontext() if self.parallel else self._lock:
            (columns,) = predicted(self.model, [chunk])
        names = [name for name in columns if name not in NOT_ANSWERED]
        rows = zip(*(columns[name] for name in names), strict=True)
        return [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]


def load_run(folder: Path, options: ModelOptions) -> ServedRun:
    """Read a run folder or a saved model.

    Parameters
    ----------
    folder : Path
    options : ModelOptions

    Returns
    -------
    ServedRun
    """

    def read() -> ServedRun:
        digest = model_digest(folder)
        model, notes = load_for_prediction(folder, options)
        model.predict(["a text"])  # refused by a model that was fitted on vectors of the user
        listed = [without_nan(asdict(category)) for category in model.categories]
        categories = json.dumps({"model": digest, "categories": listed}, ensure_ascii=False)
        return ServedRun(model, digest, tuple(notes), categories)

    return read_steadily(folder, read, unchanged=True)


class Service:
    """A run that answers requests, until another takes its place.

    Parameters
    ----------
    folder : Path
        Run folder or saved model; `reload` reads it again.
    options : ModelOptions
    limits : Limits
    report : callable, optional
        Called with a sentence about every reload.
    """

    def __init__(
        self,
        folder: Path,
        options: ModelOptions,
        limits: Limits,
        report: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.folder, self.options, self.limits, self._report = folder, options, limits, report
        self.metrics = Metrics()
        self.last_reload = "none"  # or "done", "failed"
        self.ended = False  # whether all predictions have ended
        self.run = load_run(folder, options)
        self._predict = self.run.predict  # one object, by which the queue tells models apart
        self._count_model()

    def open(self) -> None:
        """Start the threads that predict; called in the loop of the requests."""
        self._threads = workers = torch.get_num_threads()
        self._limits: threadpool_limits | None = None
        if self.run.parallel:
            # Every batch is computed by one thread, so that no thread waits for another. NumPy's
            # own threads would wake up, and wait for each other, in the middle of a batch.
            torch.set_num_threads(1)
            self._limits = threadpool_limits(1, user_api="blas")
        else:
            workers = 1
        self._reloading = asyncio.Lock()
        self._batcher = Batcher(
            asyncio.get_running_loop(),
            workers=workers,
            limit=self.limits.queue,
            batched=self.metrics.batches.observe,
        )
        self.metrics.waiting.set_function(lambda: self._batcher.waiting)

    async def close(self) -> None:
        """Answer what was taken, and end the threads; predictions that take too long are left."""
        self.ended = await asyncio.to_thread(self._batcher.close, ENDING)
        torch.set_num_threads(self._threads)
        if self._limits is not None:
            self._limits.restore_original_limits()

    async def answer(
        self, texts: list[str], deadline: float, gone: Callable[[], Awaitable[object]]
    ) -> str:
        """Return the predictions of texts, and the model that made them, as JSON.

        Parameters
        ----------
        texts : list of str
        deadline : float
            Time of the loop until which they are predicted.
        gone : callable
            Waits until the client has closed the connection; its texts are then not predicted.

        Raises
        ------
        RefusedError
        """
        if len(texts) > self.limits.queue:  # at no time would there be room for them
            raise RefusedError(
                413,
                f"the request has {len(texts):,} texts, and {self.limits.queue:,} may wait; send "
                "fewer texts per request",
            )
        run, begun = self.run, time.perf_counter()
        try:
            future = self._batcher.submit(self._predict, texts)
        except QueueFullError:
            raise self._refused(f"{self.waiting:,} texts are waiting already") from None
        watch: asyncio.Future[Any] = asyncio.ensure_future(gone())
        left = deadline - asyncio.get_running_loop().time()
        try:
            either: set[asyncio.Future[Any]] = {future, watch}
            await asyncio.wait(either, timeout=left, return_when=FIRST_COMPLETED)
        finally:
            watch.cancel()
            future.cancel()  # unless it is done
        if future.cancelled():
            if watch.done():
                raise RefusedError(CLOSED, "the connection was closed before the answer")
            raise self._refused(f"the texts were not predicted in {self.limits.seconds:g} s")
        rows = future.result()
        self.metrics.seconds.observe(time.perf_counter() - begun)
        self.metrics.texts.inc(len(texts))
        return f'{{"model": "{run.digest}", "predictions": [{", ".join(rows)}]}}'

    async def reload(self) -> ServedRun:
        """Read the run again, and let it take the place of the old one.

        Requests that wait are answered by the old one. If the new run cannot be used, the old one
        stays, and the error is raised.
        """
        async with self._reloading:
            try:
                run = await asyncio.to_thread(load_run, self.folder, self.options)
            except Exception as error:
                self.last_reload = "failed"
                self.metrics.reloads.labels("failed").inc()
                self._report(f"the new run cannot be used, the old one stays: {error}")
                raise
            self.run, self._predict, self.last_reload = run, run.predict, "done"
        self.metrics.reloads.labels("done").inc()
        self._count_model()
        self._report(f"{self.folder} was loaded again: model {run.digest[:12]}")
        return run

    @property
    def waiting(self) -> int:
        """Number of texts in the queue."""
        return self._batcher.waiting

    def _refused(self, sentence: str) -> RefusedError:
        """Return the answer to a request for which there is no time now."""
        wait = max(1, math.ceil(self._batcher.seconds_to_empty))
        return RefusedError(503, f"{sentence}; try again later", {"Retry-After": str(wait)})

    def _count_model(self) -> None:
        """Name the model in the metrics."""
        self.metrics.model.clear()
        self.metrics.model.labels(self.run.digest, self.run.model.precision).set(1)
