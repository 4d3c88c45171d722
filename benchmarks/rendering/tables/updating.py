"""The table of updates: accuracy and stability after each batch."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from newfound.bench.lines import Line
from newfound.bench.rows import markdown

NAMES = {"banking": "BANKING", "clinc": "CLINC", "massive": "MASSIVE"}
MISSING = "-"
HEADINGS = (
    "data set",
    "batch",
    "texts",
    "All, update",
    "All, scratch",
    "kept",
    "novel categories found",
    "by scratch",
    "within one batch",
    "seeds",
)


def updating_table(lines: Sequence[Line]) -> str:
    """Return the table of the lines that `benchmarks.updating` wrote: means over seeds."""
    groups: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        if line.get("kind") == "updating":
            groups.setdefault((_name(line), line["table"]["batch"]), []).append(line)
    if not groups:
        return "No measurements yet.\n"
    rows = [
        [
            name,
            str(batch),
            _mean([line["texts"] for line in own], ",.0f"),
            _mean([line["update"]["all"] for line in own], ".1f"),
            _mean([line["scratch"]["all"] for line in own if "scratch" in line], ".1f"),
            _mean([line["kept"] for line in own if "kept" in line], ".1f", "%"),
            _counts([line["proposed"] for line in own if "proposed" in line]),
            _counts([line["proposed_by_scratch"] for line in own if "proposed_by_scratch" in line]),
            _counts([line["proposed_in_time"] for line in own if "proposed_in_time" in line]),
            str(len(own)),
        ]
        for (name, batch), own in groups.items()
    ]
    return markdown(list(HEADINGS), rows)


def _name(line: Line) -> str:
    """Return the data set, and what is not as usual."""
    name = NAMES.get(str(line["data_set"]), str(line["data_set"]))
    effort = line["config"]["effort"]
    return name if effort == "fast" else f"{name}, {effort}"


def _mean(values: Sequence[float], form: str, unit: str = "") -> str:
    """Return the mean of some values, formatted."""
    return f"{fmean(values):{form}}{unit}" if values else MISSING


def _counts(counts: Sequence[dict[str, Any]]) -> str:
    """Return how many of the wanted categories were found, over all seeds."""
    if not counts:
        return MISSING
    return f"{sum(c['found'] for c in counts)} of {sum(c['wanted'] for c in counts)}"
