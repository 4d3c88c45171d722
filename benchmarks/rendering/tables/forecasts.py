"""The table in docs/check.md: forecasts of `newfound check` beside what a discovery reached."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown
from newfound.bench.wild.grid import DESIGN_TITLES

SCORES = {"all": "All", "known": "Known", "novel": "Novel", "exact_known": "exact known"}
CLOSE = 5.0  # points


def forecasts_table(lines: Sequence[Line]) -> str:
    """Return one row per table, forecast and truth, and how often they are close."""
    found = [line for line in lines if line.get("kind") == "forecast"]
    if not found:
        return "No measurements yet.\n"
    body = []
    for line in found:
        table = line["table"]
        kind = [line["data_set"], DESIGN_TITLES[table["design"]], table["sizes"]]
        body.append([*kind, *(_cell(line, score) for score in SCORES)])
    close = [_closeness(found, score) for score in SCORES]
    body.append([f"within {CLOSE:.0f} points", "", "", *close])
    header = ["data set", "labelled", "sizes", *SCORES.values()]
    return markdown(header, body)


def _cell(line: Line, score: str) -> str:
    """Return forecast and truth, such as "81.2 / 79.5"."""
    forecast, truth = line["forecast"][score], line["truth"][score]
    shown = [NONE if value is None else f"{value:.1f}" for value in (forecast, truth)]
    return " / ".join(shown)


def _closeness(lines: Sequence[Line], score: str) -> str:
    """Return on how many tables a forecast is close to the truth."""
    pairs = [(line["forecast"][score], line["truth"][score]) for line in lines]
    both = [(forecast, truth) for forecast, truth in pairs if None not in (forecast, truth)]
    return f"{sum(abs(a - b) <= CLOSE for a, b in both)} of {len(both)}"
