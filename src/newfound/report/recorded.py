"""What was recorded during the run: curves, the matching, and the settings."""

import json
import math
import shlex
from typing import Any

import numpy as np

from newfound.report.run import Run
from newfound.report.shown import NAME, SENTENCE, shown

POINTS = 400  # of a curve; more cannot be told apart on a screen
CELLS = 250_000  # of the heat map
SETTINGS = 50_000  # characters
NOT_MEASURED = {"stage", "epoch", "round", "run"}


def _finite(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


def estimate_curve(run: Run) -> dict[str, Any] | None:
    """Return the curve behind the number of categories, or None where there is none."""
    estimate = run.info.get("estimate")
    if not estimate:
        return None
    points = [
        [_finite(x), _finite(y)]
        for x, y in zip(
            estimate.get("candidates") or [], estimate.get("scores") or [], strict=False
        )
    ]
    return {
        "estimate": _finite(estimate.get("estimate")),
        "low": _finite(estimate.get("low")),
        "high": _finite(estimate.get("high")),
        "how": _sentence(shown(str(estimate.get("how") or ""), SENTENCE)),
        "points": sorted(point for point in points if None not in point),
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def training_curves(run: Run) -> list[dict[str, Any]]:
    """Return one curve for each stage and measure, in the order in which they appear."""
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for at, row in enumerate(run.history, start=1):
        stage = str(row.get("stage") or "training")
        epoch = _finite(row.get("epoch")) or at
        for name, value in row.items():
            number = _finite(value)
            if name not in NOT_MEASURED and number is not None:
                curves.setdefault((stage, name), []).append([epoch, number])
    return [
        {"stage": shown(stage, NAME), "name": shown(name, NAME), "points": _thinned(points)}
        for (stage, name), points in curves.items()
        # With a single term, the loss and its term are one curve.
        if name == "loss" or points != curves.get((stage, "loss"))
    ]


def _thinned(points: list[list[float]]) -> list[list[float]]:
    if len(points) <= POINTS:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, POINTS).round().astype(int))
    return [points[at] for at in kept]


def matching_table(run: Run) -> dict[str, Any] | None:
    """Return the distances of labelled (rows) to aligned unlabelled prototypes (columns)."""
    matching = run.info.get("matching")
    if not matching or not matching.get("distances"):
        return None
    distances = np.array(matching["distances"], dtype=np.float64)  # [M, K]
    rows, columns = distances.shape
    kept_rows, kept_columns = rows, columns
    if rows * columns > CELLS:
        side = math.isqrt(CELLS)
        kept_rows, kept_columns = min(rows, side), min(columns, side)
    finite = distances[np.isfinite(distances)]
    positions = {(c.kind, c.name): position for position, c in enumerate(run.categories)}
    return {
        "rows": [shown(name, NAME) for name in matching["labelled"][:kept_rows]],
        "columns": [shown(name, NAME) for name in matching["prototypes"][:kept_columns]],
        "categories": [
            positions.get(("known" if at < rows else "novel", name), -1)
            for at, name in enumerate(matching["prototypes"][:kept_columns])
        ],
        "distances": [
            [_rounded(value) for value in row] for row in distances[:kept_rows, :kept_columns]
        ],
        "low": _rounded(finite.min()) if len(finite) else 0.0,
        "high": _rounded(finite.max()) if len(finite) else 1.0,
        "left": [rows - kept_rows, columns - kept_columns],
    }


def _rounded(value: float) -> float | None:
    return round(float(value), 3) if math.isfinite(value) else None


def settings(run: Run) -> dict[str, Any]:
    """Return what is needed to make the same run, and the same report, again."""
    info = run.info
    recorded = {
        name: info[name] for name in ("settings", "seed", "device", "versions") if name in info
    }
    text = json.dumps(recorded, indent=2, ensure_ascii=False)
    cut = text[:SETTINGS] + "\n\u2026" if len(text) > SETTINGS else text
    seconds = [
        [shown(str(name), NAME), number]
        for name, value in (info.get("seconds") or {}).items()
        if (number := _finite(value)) is not None
    ]
    command = info.get("command")
    if isinstance(command, list):
        command = shlex.join(str(part) for part in command)
    return {
        "command": shown(str(command), SENTENCE) if command else None,
        "report": f"newfound report {shlex.quote(shown(run.name, NAME))}",
        "newfound": shown(str(info.get("newfound", "")), NAME),
        "json": [shown(line, SENTENCE) for line in cut.split("\n")],
        "seconds": seconds,
        "folder": shown(run.name, NAME),
    }
