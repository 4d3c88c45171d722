"""The summary table of the README: our method by effort, and the closest other methods."""

import statistics
from collections.abc import Sequence

from benchmarks.rendering.paper_numbers import NAMES
from benchmarks.rendering.titles import TITLES, in_order
from newfound.bench.lines import Line
from newfound.bench.rows import NONE, SCORES, Row, markdown, select_runs
from newfound.config import EFFORTS

OURS = "newfound"
ENCODER = "minilm"
CLOSEST = ("laskm", "dpn", "self-labeling")


def summary_table(lines: Sequence[Line]) -> str:
    """Return All / Known / Novel per data set; one row per method and effort."""
    cells: dict[str, dict[str, str]] = {}
    for data_set in TITLES:
        rows = [row for row in select_runs(lines, data_set=data_set) if _shown(row)]
        for row in sorted(in_order(rows), key=_place):
            same = [other for other in rows if _name(other) == _name(row)]
            # Table 2 has the other settings of a method.
            most = max(same, key=lambda other: len(other.lines))
            cells.setdefault(_name(row), {})[data_set] = _accuracy(most)
    if not cells:
        return "No runs yet.\n"
    body = [
        [name, *(found.get(data_set, NONE) for data_set in TITLES)] for name, found in cells.items()
    ]
    return (
        "Accuracy on test texts in %, All / Known / Novel: mean over seeds, K given, encoder "
        f"MiniLM. `{OURS}` is scored by the nearest prototype, as a saved model predicts; the "
        "others in the same way or by k-means on the test texts, whichever is higher.\n\n"
        + markdown(["method", *TITLES.values()], body)
    )


def _shown(row: Row) -> bool:
    """Return True for our method and for the closest ones with effort best."""
    if row.encoder != ENCODER:
        return False
    return row.method == OURS or (row.method in CLOSEST and row.effort == "best")


def _place(row: Row) -> int:
    """Return the position of a row among the efforts of our method; other methods come first."""
    return 1 + EFFORTS.index(row.effort) if row.method == OURS else 0


def _name(row: Row) -> str:
    """Return what the table calls a row."""
    if row.method == OURS:
        return f"`{OURS}`, {row.effort}"
    return NAMES[row.method]


def _accuracy(row: Row) -> str:
    """Return the accuracy by the nearest prototype, or for other methods by the better way."""
    readings = [
        [statistics.fmean(line["scores"][by][score] for line in row.lines) for score in SCORES]
        for by in (("prototype",) if row.method == OURS else ("prototype", "kmeans"))
    ]
    return " / ".join(f"{value:.1f}" for value in max(readings))
