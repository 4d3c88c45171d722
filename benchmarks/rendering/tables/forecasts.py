"""The table in docs/check.md: how close forecasts of `newfound check` are to the truth."""

import statistics
from collections.abc import Callable, Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown

SCORES = {"all": "All", "known": "Known", "novel": "Novel"}
CLOSE = 5.0  # points


def forecasts_table(lines: Sequence[Line]) -> str:
    """Return one row per data set and one for all: mean errors, and how often they are small."""
    found = [line for line in lines if line.get("kind") == "forecast"]
    if not found:
        return "No measurements yet.\n"
    header = ["data set", "tables"]
    for title in SCORES.values():
        header += [f"{title}, error", f"{title}, close"]
    names = list(dict.fromkeys(line["data_set"] for line in found))
    body = [_row(name, [line for line in found if line["data_set"] == name]) for name in names]
    body.append(_row("all", found))
    body.append(_row("all, draws alone", found, "draws"))
    return markdown(header, body)


def _row(name: str, lines: Sequence[Line], by: str = "forecast") -> list[str]:
    """Return the row of some tables."""
    cells = [name, str(len(lines))]
    for score in SCORES:
        errors = _errors(lines, by, score)
        cells.append(_or_none(errors, lambda found: f"{statistics.fmean(found):.1f}"))
        cells.append(_or_none(errors, _close))
    return cells


def _errors(lines: Sequence[Line], by: str, score: str) -> list[float]:
    """Return the absolute differences of forecast and truth, where both have a value."""
    pairs = [(line[by][score], line["truth"][score]) for line in lines]
    return [abs(told - truth) for told, truth in pairs if None not in (told, truth)]


def _close(errors: Sequence[float]) -> str:
    """Return how often an error is small, in percent."""
    return f"{100 * statistics.fmean(error <= CLOSE for error in errors):.0f}%"


def _or_none(errors: Sequence[float], shown: Callable[[Sequence[float]], str]) -> str:
    """Return a cell; without errors, an empty one."""
    return shown(errors) if errors else NONE
