"""The families of faults: how many trials each has, in full and in the short form."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.torture.browsers import browser
from benchmarks.torture.disks import full_disk
from benchmarks.torture.folders import odd_places, readers, removed, two_writers
from benchmarks.torture.ground import Ground
from benchmarks.torture.naming import naming
from benchmarks.torture.signals import signals
from benchmarks.torture.sizes import sizes
from benchmarks.torture.tables import tables
from benchmarks.torture.tallies import Tally
from benchmarks.torture.tampering import tampering


@dataclass(frozen=True)
class Family:
    """A family of faults.

    Attributes
    ----------
    name : str
        As the table shows it.
    run : callable
        Called with the ground, a number of trials and a seed.
    trials : int
        In the full form.
    short : int
        In the short form; 0: not part of it.
    parts : int
        How many parts can run at the same time.
    """

    name: str
    run: Callable[[Ground, int, int], Tally]
    trials: int
    short: int
    parts: int = 1


def _signal(name: str) -> Callable[[Ground, int, int], Tally]:
    return lambda ground, trials, seed: signals(ground, name, trials, seed)


def _tampered(target: str) -> Callable[[Ground, int, int], Tally]:
    return lambda ground, trials, seed: tampering(ground, target, trials, seed)


# Those that take longest come first.
FAMILIES = (
    Family("large tables with 2 GB of memory", sizes, 7, 0),
    Family("mutated tables", tables, 600, 12, parts=6),
    Family("SIGKILL, then the same command", _signal("SIGKILL"), 100, 3, parts=2),
    Family("SIGTERM, then the same command", _signal("SIGTERM"), 50, 2),
    Family("Ctrl-C, then the same command", _signal("Ctrl-C"), 50, 2),
    Family("full disk", full_disk, 60, 4),
    Family("removed or created folders", removed, 48, 6),
    Family("read-only and odd places", odd_places, 1, 1),
    Family("two writers", two_writers, 30, 2),
    Family("readers while a run is replaced", readers, 200, 10),
    Family("tampered models", _tampered("model"), 100, 8),
    Family("tampered runs", _tampered("run"), 100, 4),
    Family("tampered caches", _tampered("cache"), 100, 3),
    Family("tampered encoders", _tampered("encoder"), 100, 4),
    Family("endpoints that misbehave", naming, 13, 2),
    Family("hostile texts in Chromium, clicks", browser, 400, 0),
)
