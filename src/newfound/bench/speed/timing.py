"""Timing of functions in this process: medians over runs that take turns."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Measures = dict[str, dict[str, Any]]  # by the name of what was measured


def time_in_turns(work: Mapping[str, Callable[[], Any]], repeats: int) -> Measures:
    """Return the median seconds of each function.

    Parameters
    ----------
    work : mapping of str to callable
        Functions by the name of their measurement. They take turns, so that other load on the
        machine affects all of them.
    repeats : int
        Number of runs per function.

    Returns
    -------
    dict
        For each name the median ``seconds`` and the seconds of all ``runs``.

    Examples
    --------
    >>> sorted(time_in_turns({"sum": lambda: sum(range(10))}, repeats=3)["sum"])
    ['runs', 'seconds']
    """
    runs: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, function in work.items():
            start = time.perf_counter()
            function()
            runs[name].append(time.perf_counter() - start)
    return {
        name: {"seconds": statistics.median(taken), "runs": [round(s, 4) for s in taken]}
        for name, taken in runs.items()
    }


def with_rates(measures: Measures, texts: int) -> Measures:
    """Add texts per second to measurements of `texts` texts each."""
    for measure in measures.values():
        measure["texts_per_second"] = round(texts / measure["seconds"], 1)
    return measures
