"""Where the work runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from newfound.errors import InputError

PLAIN_VARIABLE = "NEWFOUND_PLAIN"


def find_device(name: str | None) -> torch.device:
    """The named device, or the best there is."""
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
            raise InputError("the device cuda was asked for, but torch sees none; choose cpu")
        if device.index is not None and device.index >= count:
            raise InputError(f"the device {name!r} does not exist: torch sees {count} of them")
    return device


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """A block whose random numbers come from `seed`; outside of it nothing is different after."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def plain() -> bool:
    """Whether to compute the plain way, to compare with: NEWFOUND_PLAIN=1 in the environment.

    A text a row, nothing recorded and replayed, full precision on a GPU, too.
    """
    return os.environ.get(PLAIN_VARIABLE, "0") not in ("", "0")


@contextmanager
def plainly() -> Iterator[None]:
    """A block that computes the plain way."""
    before = os.environ.get(PLAIN_VARIABLE)
    os.environ[PLAIN_VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[PLAIN_VARIABLE]
        if before is not None:
            os.environ[PLAIN_VARIABLE] = before


def describe_device(device: torch.device) -> str:
    """A name for result files: the GPU's own, or the number of CPU threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
