"""Data recorded during the run: training curves, estimate, matching and settings."""

import json
import math
import shlex
from typing import Any

import numpy as np

from newfound.files import without_nan
from newfound.report.shown import NAME, SENTENCE, shown
from newfound.result import Result

POINTS = 400  # of a curve; a screen cannot show more
CELLS = 250_000  # of the heat map
SETTINGS = 50_000  # characters shown
NOT_MEASURED = {"stage", "epoch", "round", "run"}


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


def estimate_curve(result: Result) -> dict[str, Any] | None:
    """Return the score of each candidate number of categories, or None if it was given."""
    estimate = result.estimate
    if estimate is None:
        return None
    points = [
        [_finite(x), _finite(y)] for x, y in zip(estimate.candidates, estimate.scores, strict=False)
    ]
    return {
        "estimate": _finite(estimate.n_categories),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
        "how": _sentence(shown(estimate.how, SENTENCE)),
        "points": sorted(point for point in points if None not in point),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def training_curves(result: Result) -> list[dict[str, Any]]:
    """Return one curve per stage and measure, in the order of the history."""
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for at, row in enumerate(result.history, start=1):
        stage = str(row.get("stage") or "training")
        epoch = _finite(row.get("epoch")) or at
        for name, value in row.items():
            number = _finite(value)
            if name not in NOT_MEASURED and number is not None:
                curves.setdefault((stage, name), []).append([epoch, number])
    return [
        {"stage": shown(stage, NAME), "name": shown(name, NAME), "points": _thinned(points)}
        for (stage, name), points in curves.items()
        # A loss with a single term equals that term.
        if name == "loss" or points != curves.get((stage, "loss"))
    ]


def _thinned(points: list[list[float]]) -> list[list[float]]:
    if len(points) <= POINTS:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, POINTS).round().astype(int))
    return [points[at] for at in kept]


def matching_table(result: Result) -> dict[str, Any] | None:
    """Return the distances of labelled prototypes (rows) to all matched prototypes (columns)."""
    distances = result.matching  # [M, K]
    if distances is None or not len(distances):
        return None
    rows, columns = distances.shape
    kept_rows, kept_columns = rows, columns
    if rows * columns > CELLS:
        side = math.isqrt(CELLS)
        kept_rows, kept_columns = min(rows, side), min(columns, side)
    finite = distances[np.isfinite(distances)]
    names = [shown(name, NAME) for name in result.names[:kept_columns]]
    return {
        "rows": names[:kept_rows],
        "columns": names,
        "categories": list(range(kept_columns)),
        "distances": [
            [_rounded(value) for value in row] for row in distances[:kept_rows, :kept_columns]
        ],
        "low": _rounded(finite.min()) if len(finite) else 0.0,
        "high": _rounded(finite.max()) if len(finite) else 1.0,
        "left": [rows - kept_rows, columns - kept_columns],
    }


def _rounded(value: float) -> float | None:
    return round(float(value), 3) if math.isfinite(value) else None


def settings(result: Result, name: str) -> dict[str, Any]:
    """Return the commands, settings and versions that reproduce the run and its report.

    `name` is the name of the run folder in the commands on the page.
    """
    recorded = {
        "settings": dict(result.config),
        "seed": result.config.get("seed"),
        "device": result.device,
        "versions": dict(result.versions),
        "environment": dict(result.environment),
    }
    text = json.dumps(without_nan(recorded), indent=2, ensure_ascii=False)
    cut = text[:SETTINGS] + "\n\u2026" if len(text) > SETTINGS else text
    seconds = {"total": round(sum(result.seconds.values()), 3), **result.seconds}
    timed = [(stage, _finite(value)) for stage, value in seconds.items()]
    return {
        "command": shown(result.command, SENTENCE) if result.command else None,
        "report": f"newfound report {shlex.quote(shown(name, NAME))}",
        "newfound": shown(str(result.versions.get("newfound", "")), NAME),
        "json": [shown(line, SENTENCE) for line in cut.split("\n")],
        "seconds": [[shown(stage, NAME), value] for stage, value in timed if value is not None],
        "folder": shown(name, NAME),
    }
