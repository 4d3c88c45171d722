"""The device that a run computes on, its random state, and the plain way to compute."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from newfound.errors import InputError

PLAIN_VARIABLE = "NEWFOUND_PLAIN"


def find_device(name: str | None) -> torch.device:
    """Return a torch device.

    Parameters
    ----------
    name : str or None
        "cpu", "cuda" or "cuda:N"; None chooses a GPU if there is one.

    Returns
    -------
    torch.device

    Raises
    ------
    InputError
        If the device is unknown or not available.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"the device {name!r} is unknown; choose cpu, cuda or cuda:N") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"the device {name!r} is not supported; choose cpu, cuda or cuda:N")
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if count == 0:
            raise InputError("the device cuda is not available: torch finds no GPU; choose cpu")
        if device.index is not None and device.index >= count:
            raise InputError(f"the device {name!r} does not exist; torch finds {count}")
    return device


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block; restore its random state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


_AVAILABLE: ContextVar[int | None] = ContextVar("available threads", default=None)


@contextmanager
def one_thread(if_true: bool = True) -> Iterator[None]:
    """Compute with one thread inside the block, if so wished; restore the number afterwards.

    Threads share a sum in parts, so its last digit depends on their number. Work that each thread
    does whole can use `available_threads` all the same.
    """
    if not if_true:
        yield
        return
    before = torch.get_num_threads()
    token = _AVAILABLE.set(available_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _AVAILABLE.reset(token)


def available_threads() -> int:
    """Return the number of torch's threads, in a block of `one_thread` that outside of it."""
    return _AVAILABLE.get() or torch.get_num_threads()


def plain() -> bool:
    """Return True if NEWFOUND_PLAIN=1 asks for computation without optimisations.

    That is one text per row, no CUDA graphs, and full precision on a GPU. Tests and benchmarks
    compare the optimised computation with it.
    """
    return os.environ.get(PLAIN_VARIABLE, "0") not in ("", "0")


@contextmanager
def plainly() -> Iterator[None]:
    """Compute without optimisations inside the block (see `plain`)."""
    before = os.environ.get(PLAIN_VARIABLE)
    os.environ[PLAIN_VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[PLAIN_VARIABLE]
        if before is not None:
            os.environ[PLAIN_VARIABLE] = before


def describe_device(device: torch.device) -> str:
    """Return the name of the GPU, or the number of CPU threads, for result files."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def instruction_set() -> str:
    """Return the instruction set that torch uses on the CPU, such as "AVX512"."""
    return str(torch.backends.cpu.get_cpu_capability())


def describe_environment(device: torch.device) -> dict[str, Any]:
    """Return what the last digits of a result depend on, beside versions and settings.

    Parameters
    ----------
    device : torch.device
        Device of the run.

    Returns
    -------
    dict
        threads : int
            CPU threads of torch; sums in another order differ in their last digits.
        instruction_set : str
            Instruction set that torch uses, such as "AVX512".
        machine : str
            Architecture, such as "x86_64".
        system : str
            Operating system.
        gpu : str or None
            Name of the GPU, None on a CPU.

    Examples
    --------
    >>> sorted(describe_environment(torch.device("cpu")))
    ['gpu', 'instruction_set', 'machine', 'system', 'threads']
    """
    return {
        "threads": torch.get_num_threads(),
        "instruction_set": instruction_set(),
        "machine": platform.machine(),
        "system": platform.system(),
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
    }
