"""Call a function with many items in worker processes of Ray, on this machine or on a cluster.

Each worker is a Ray actor with one core (or one GPU), which holds the function and so loads what it
needs once. An item whose worker ends without an answer (killed, out of memory, machine lost) is
given to another worker. The address of a cluster is in RAY_ADDRESS; without it, Ray is started on
this machine, reachable only from it, and stopped at the end.
"""

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import stat
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from newfound.errors import InputError, reason
from newfound.files.locks import folder_lock

ADDRESS = "RAY_ADDRESS"
ATTEMPTS = 5  # workers that an item may cost
CONNECTING = 10  # seconds in which the head of a cluster must answer
PREFIX = "newfound-ray-"  # of names of folders
OBJECTS = 100 * 2**20  # bytes of Ray's object store: items and results are small
Item = TypeVar("Item")
Result = TypeVar("Result")
Given = TypeVar("Given", contravariant=True)
Returned = TypeVar("Returned", covariant=True)


class Work(Protocol[Given, Returned]):
    """What workers call; it must be picklable."""

    def load(self) -> None:
        """Prepare a worker, before its first item; an InputError ends the whole call."""

    def __call__(self, item: Given, /) -> Returned:
        """Return the result of an item."""


@dataclass(frozen=True)
class Lost:
    """In place of a result: several workers ended without an answer."""

    attempts: int

    def __str__(self) -> str:
        return (
            f"{self.attempts} workers ended without an answer (killed, out of memory, or a fault "
            "of a library)"
        )


def call_on_ray(
    work: Work[Item, Result],
    items: Sequence[Item],
    *,
    workers: int | None = None,
    gpu: bool | None = None,
) -> Generator[tuple[int, Result | Lost], None, None]:
    """Yield the position of each item and its result, in the order in which they are ready.

    Parameters
    ----------
    work : callable
        Called with one item; see `Work`.
    items : sequence
        Few megabytes each, better less: they travel to the workers.
    workers : int, optional
        Number of worker processes; by default one per GPU, or else one per core, of the cluster.
    gpu : bool, optional
        Whether each worker has a GPU of its own; by default, if the cluster has GPUs.

    Yields
    ------
    position : int
    result : object
        What `work` returned, or `Lost`. An exception of `work` is raised here.

    Raises
    ------
    InputError
        If Ray is not installed or does not start, or no worker could be prepared.
    """
    if not items:
        return
    # Ray prints what becomes of workers, also to standard output, which has the results.
    with redirect_stdout(sys.stderr), cluster(workers) as ray:
        yield from _Pool(ray, work, items, workers, gpu).results()


def check_ray() -> None:
    """Raise InputError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise InputError(
            "--engine ray needs the package ray; install newfound with the extra ray: "
            "pip install 'newfound[ray]'"
        )


class _Worker:
    """A Ray actor: holds the work, and calls it with one item after another."""

    def __init__(self, work: Any) -> None:
        import torch

        torch.set_num_threads(1)  # the others use the other cores
        self.work = work

    def load(self) -> None:
        self.work.load()

    def call(self, item: Any) -> Any:
        return self.work(item)


class _Pool:
    """Gives items to workers, and replaces workers that end."""

    def __init__(
        self,
        ray: Any,
        work: Any,
        items: Sequence[Any],
        workers: int | None,
        gpu: bool | None,
    ) -> None:
        self.ray, self.items = ray, items
        available = ray.cluster_resources()
        gpus = int(available.get("GPU", 0))
        self.gpu = gpus > 0 if gpu is None else gpu
        count = workers or (gpus if self.gpu else int(available.get("CPU", 1))) or 1
        self.count = min(count, len(items))
        needs: dict[str, Any] = {"num_cpus": 1, "num_gpus": 1 if self.gpu else 0}
        self.actor = ray.remote(max_restarts=0, **needs)(_Worker)
        self.work = ray.put(work)
        self.waiting = deque(range(len(items)))
        self.losses: Counter[int] = Counter()
        self.loading_losses = 0
        self.running: dict[Any, tuple[Any, int | None]] = {}  # item None: loading
        for _ in range(self.count):
            self._start()

    def results(self) -> Iterator[tuple[int, Any]]:
        """Yield positions and results until there is none left."""
        while self.waiting or any(at is not None for _, at in self.running.values()):
            ready, _ = self.ray.wait(list(self.running), num_returns=1)
            worker, position = self.running.pop(ready[0])
            try:
                result = self.ray.get(ready[0])
            except self.ray.exceptions.RayTaskError as error:
                raise _cause(error) from error
            except self.ray.exceptions.RayError as error:  # the worker or its machine is lost
                lost = self._lost(position, error)
                self._start()
                if lost is not None and position is not None:
                    yield position, lost
                continue
            self._give(worker)
            if position is None:
                self.loading_losses = 0
            else:
                yield position, result

    def _start(self) -> None:
        """Start a worker, which is given items when it is ready."""
        worker = self.actor.remote(self.work)
        self.running[worker.load.remote()] = (worker, None)

    def _give(self, worker: Any) -> None:
        """Give the next item to a worker that is ready."""
        if self.waiting:
            position = self.waiting.popleft()
            self.running[worker.call.remote(self.items[position])] = (worker, position)

    def _lost(self, position: int | None, error: Exception) -> Lost | None:
        """Let another worker take the item of a lost one; return Lost if it cost too many."""
        if position is None:
            self.loading_losses += 1
            if self.loading_losses > ATTEMPTS * self.count:
                raise InputError(
                    f"workers of Ray end while they load the model ({reason(error)}); start fewer "
                    "with --workers, or give them more memory"
                ) from error
            return None
        self.losses[position] += 1
        if self.losses[position] < ATTEMPTS:
            self.waiting.append(position)  # last: if it is to blame, the others come first
            return None
        return Lost(ATTEMPTS)


def _cause(error: Any) -> Exception:
    """Return the exception of the work in an error of Ray."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, Exception) else error


@contextmanager
def cluster(workers: int | None) -> Iterator[Any]:
    """Connect to the cluster in RAY_ADDRESS, or start Ray on this machine for the block."""
    address = os.environ.get(ADDRESS)
    # Ray reads these variables when it is imported, and so do the processes that it starts.
    os.environ.update({"RAY_USAGE_STATS_ENABLED": "0"} if address else alone())
    check_ray()
    import ray

    if ray.is_initialized():  # the caller's own connection stays open
        yield ray
        return
    if address:
        _check_reachable(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with ExitStack() as stack:
        if not address:
            options |= {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "object_store_memory": OBJECTS,
                "_temp_dir": str(stack.enter_context(private_folder())),
            }
        stack.callback(ray.shutdown)
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, TimeoutError, ValueError, OSError) as error:
            place = f"the cluster at {ADDRESS}={address}" if address else "Ray"
            raise InputError(
                f"{place} cannot be reached or started ({reason(error)}); `ray status` tells more"
            ) from error
        finally:
            _restore(handlers)
        yield ray


@contextmanager
def private_folder(place: Path | None = None) -> Iterator[Path]:
    """Yield a folder for the files of Ray, in one that only this user can enter.

    It is removed afterwards. What killed processes left there is removed first.

    Parameters
    ----------
    place : Path, optional
        By default /tmp, not the folder of the user's temporary files: paths of sockets must be
        short.
    """
    if place is None:
        place = Path(tempfile.gettempdir() if os.name == "nt" else "/tmp")
    for left in place.glob(f"{PREFIX}*"):
        # Ray's own processes live on for a moment, and another container has processes of its own:
        # whoever uses a folder holds its lock.
        if _is_own(left):
            with folder_lock(left) as held:
                if held:
                    shutil.rmtree(left, ignore_errors=True)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))  # mode 700
        try:
            with folder_lock(folder) as held:
                if held is False:  # another process took it for a left-over
                    continue
                inner = folder / "r"  # Ray lets everybody write into its folder
                inner.mkdir()
                yield inner
                return
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_own(folder: Path) -> bool:
    """Return whether a path is a folder of this user, and not a link."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (os.name == "nt" or found.st_uid == os.getuid())


def _check_reachable(address: str) -> None:
    """Raise InputError if nothing answers at HOST:PORT, for which Ray would wait for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or "/" in host or not port.isdigit():  # "auto", or ray://HOST:PORT
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECTING):
            return
    except OSError as error:
        raise InputError(
            f"the cluster at {ADDRESS}={address} cannot be reached ({error}); check the address "
            "with `ray status`, or unset the variable to use this machine alone"
        ) from error


def alone() -> dict[str, str]:
    """Return environment variables for Ray on this machine only."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to Ray's authors
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on 127.0.0.1, on every system
        "RAY_AUTH_MODE": "token",
        # Without one, Ray keeps it in the home folder. A process cannot change it.
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32),
    }


def _restore(handlers: dict[signal.Signals, Callable[..., Any] | int | None]) -> None:
    """Put signal handlers back, which Ray replaces; only the main thread can."""
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)
