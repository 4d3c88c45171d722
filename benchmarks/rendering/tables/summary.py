"""The summary table of the README: our efforts beside the closest methods."""

import statistics
from collections.abc import Sequence

from benchmarks.rendering.titles import TITLES, in_order, method_name
from newfound.bench.lines import Line
from newfound.bench.rows import NONE, SCORES, Row, markdown, mean_seconds, select_runs

OURS = "newfound"
CLOSEST = ("bert", "semi-km", "laskm", "dpn", "self-labeling")


def summary_table(lines: Sequence[Line]) -> str:
    """Return All / Known / Novel per data set; one row per method, effort and encoder."""
    cells: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
    for data_set in TITLES:
        rows = [row for row in select_runs(lines, data_set=data_set) if _shown(row)]
        for row in in_order(rows):
            devices = ", ".join(sorted({line["device"] for line in row.lines}))
            key = (method_name(row, rows), row.encoder, devices)
            cells.setdefault(key, {})[data_set] = (_accuracy(row), mean_seconds(row, lines))
    if not cells:
        return "No runs yet.\n"
    header = ["method", "encoder", *TITLES.values(), "seconds", "device"]
    nothing = (NONE, NONE)
    body = []
    for (name, encoder, devices), found in cells.items():
        parts = [found.get(data_set, nothing) for data_set in TITLES]
        seconds = " / ".join(taken for _, taken in parts)
        body.append([name, encoder, *(accuracy for accuracy, _ in parts), seconds, devices])
    return (
        "Accuracy in % on test texts, All / Known / Novel (mean over seeds; K is given): of "
        f"`{OURS}` as a saved model predicts, of the others by k-means on the test texts where "
        "that is better. Where no effort is named it is `best`. Seconds are those of a whole run "
        "on each data set.\n\n" + markdown(header, body)
    )


def _shown(row: Row) -> bool:
    """Return True for our method and for the closest ones with effort best."""
    return row.method == OURS or (row.method in CLOSEST and row.effort == "best")


def _accuracy(row: Row) -> str:
    """Return ours by the nearest prototype; of another method the better way to score."""
    readings = [
        [statistics.fmean(line["scores"][by][score] for line in row.lines) for score in SCORES]
        for by in (("prototype",) if row.method == OURS else ("prototype", "kmeans"))
    ]
    return " / ".join(f"{value:.1f}" for value in max(readings))
