"""The table of updates: accuracy, stability and time after each batch."""

from collections.abc import Sequence
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
    "seconds, update",
    "seconds, scratch",
)


def updating_table(lines: Sequence[Line]) -> str:
    """Return the table of the lines that `benchmarks.updating` wrote."""
    found = [line for line in lines if line.get("kind") == "updating"]
    if not found:
        return "No measurements yet.\n"
    rows = [
        [
            _name(line),
            str(line["table"]["batch"]),
            f"{line['texts']:,}",
            f"{line['update']['all']:.1f}",
            f"{line['scratch']['all']:.1f}" if "scratch" in line else MISSING,
            f"{line['kept']:.1f}%" if "kept" in line else MISSING,
            _counts(line.get("proposed")),
            _counts(line.get("proposed_by_scratch")),
            f"{line['seconds']['update']:.0f}",
            f"{line['seconds']['scratch']:.0f}" if "scratch" in line["seconds"] else MISSING,
        ]
        for line in found
    ]
    return markdown(list(HEADINGS), rows)


def _name(line: Line) -> str:
    """Return the data set, and what is not as usual."""
    name = NAMES.get(str(line["data_set"]), str(line["data_set"]))
    effort = line["config"]["effort"]
    return name if effort == "fast" else f"{name}, {effort}"


def _counts(counts: dict[str, Any] | None) -> str:
    """Return how many of the wanted categories were found."""
    return MISSING if counts is None else f"{counts['found']} of {counts['wanted']}"
