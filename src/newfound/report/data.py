"""Prepare the data of the page, within a size limit."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from newfound.checking.check import Check
from newfound.report.columns import time_and_columns
from newfound.report.expectation import expectation
from newfound.report.findings import UNSURE, Finding, findings
from newfound.report.overview import overview
from newfound.report.recorded import estimate_curve, matching_table, settings, training_curves
from newfound.report.sample import map_sample
from newfound.report.shown import NAME, SENTENCE, embedded_size, shown
from newfound.result import Result

# Characters shown of a text and of an example; the largest limit that fits the size is used.
TEXT_LIMITS = (300, 220, 160, 120, 80, 40, 20)
EXAMPLE_LIMITS = (600, 300, 150, 80)
BYTES = 7_500_000  # size of the data; the rest of the page adds little
BYTES_PER_TEXT = 350  # larger limit for more than 20,000 texts,
BYTES_MOST = 14_000_000  # up to this size
EXAMPLE_BYTES = 2_500_000
GRID = 65_535  # map coordinates are integers from 0 to this


def prepare(
    result: Result,
    name: str = "RUN",
    check: Check | None = None,
    rows: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the data of the page; every string in it is ready to be shown.

    `name` is the name of the run folder in the commands on the page, `check` the result of
    `newfound check`, `rows` the texts on the map (default: `page_rows`).
    """
    rows = page_rows(result) if rows is None else rows
    found = findings(result)
    page = {
        **overview(result, found, name),
        "categories": _fitting(lambda n: _categories(result, n), EXAMPLE_LIMITS, EXAMPLE_BYTES),
        "findings": [_finding(finding) for finding in found],
        "check": None if check is None else expectation(check),
        "estimate": estimate_curve(result),
        "matching": matching_table(result),
        "curves": training_curves(result),
        "settings": settings(result, name),
    }
    room = max(BYTES, min(BYTES_MOST, BYTES_PER_TEXT * len(result.corpus))) - embedded_size(page)
    page["texts"] = _fitting(lambda n: _texts(result, rows, n), TEXT_LIMITS, room)
    return page


def changing(result: Result, rows: np.ndarray) -> dict[str, Any]:
    """Return the part of the data that changes with decisions, for a page with these texts."""
    rows = _placed(result, rows)
    return {
        "title": overview(result, [], "")["title"],
        "categories": _categories(result, EXAMPLE_LIMITS[1]),
        "category": result.assigned[rows].tolist(),
        "outside": _outside(result, rows),
    }


def page_rows(result: Result) -> np.ndarray:
    """Return the rows of the texts on the page: all, or a sample of very many.

    If the method was fitted on a sample, only its texts have a position on the map.
    """
    rows = np.arange(len(result.corpus))
    rows = rows if result.sample is None else _placed(result, rows)
    sample = map_sample(result.assigned[rows], int(result.config.get("seed") or 0))
    return rows if sample is None else rows[sample]


def _placed(result: Result, rows: np.ndarray) -> np.ndarray:
    """Return those of the rows that have a position on the map."""
    return rows[np.isfinite(result.map_positions[rows]).all(axis=1)]


def _outside(result: Result, rows: np.ndarray) -> list[int]:
    """Return the positions among `rows` of the texts that fit nowhere."""
    if result.fits_nowhere is None:
        return []
    found: list[int] = np.flatnonzero(result.fits_nowhere[rows]).tolist()
    return found


def _fitting(build: Callable[[int], Any], limits: tuple[int, ...], room: int) -> Any:
    """Return `build(limit)` for the first limit whose result takes at most `room` bytes."""
    for limit in limits[:-1]:
        value = build(limit)
        if embedded_size(value) <= room:
            return value
    return build(limits[-1])


def _number(value: float | None, digits: int = 3) -> float | None:
    """Return a rounded number, or None for NaN and infinity, which JSON lacks."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def _categories(result: Result, limit: int) -> list[dict[str, Any]]:
    nearest = [result.position.get(c.nearest or "", -1) for c in result.categories]
    total = len(result.categories)
    members = np.bincount(result.assigned, minlength=total)
    unsure = np.bincount(result.assigned[result.probability < UNSURE], minlength=total)
    pile = result.unlabelled_sizes
    moved = _moved(result)
    return [
        {
            "id": c.id,
            "name": shown(c.name, NAME) or "(no name)",
            "kind": c.kind,
            "status": c.status,
            "size": c.size,
            "share": _number(c.share, 5),
            "labelled": c.labelled,
            "pile": int(pile[position]),
            "confidence": _number(c.confidence),
            "fit": _number(c.fit, 2),
            "fitsNowhere": c.fits_nowhere,
            "unsure": round(float(unsure[position] / max(members[position], 1)), 3),
            "keywords": [shown(word, NAME) for word in c.keywords],
            "examples": [_example(text, limit) for text in c.examples],
            "border": [_example(text, limit) for text in c.border],
            "nearest": nearest[position],
            "nearestDistance": _number(c.nearest_distance),
            "distance": _number(c.distance),
            "near": [other for other, near in enumerate(nearest) if near == position],
            "moved": moved.get(position, []),
            "volume": [count for _, count in c.volume],
            "groups": [shown(name, NAME) for name in c.groups],
        }
        for position, c in enumerate(result.categories)
    ]


def _moved(result: Result) -> dict[int, list[list[int]]]:
    """Return for each label the most frequent other predictions, as [position, texts]."""
    differs = result.labelled & (result.predicted != result.assigned)
    pairs, counts = np.unique(
        np.stack([result.assigned[differs], result.predicted[differs]], axis=1),
        axis=0,
        return_counts=True,
    )
    moved: dict[int, list[list[int]]] = {}
    for at in np.argsort(-counts, kind="stable"):
        others = moved.setdefault(int(pairs[at, 0]), [])
        if len(others) < 3:
            others.append([int(pairs[at, 1]), int(counts[at])])
    return moved


def _example(text: str, limit: int) -> str | list[Any]:
    """Return a text, or the part that is shown and the length of the whole text."""
    return shown(text, limit) if len(text) <= limit else [shown(text, limit), len(text)]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "level": finding.level,
        "title": finding.title,
        "text": finding.text,
        "lines": [
            shown(line, SENTENCE)
            if isinstance(line, str)
            else [shown(part, SENTENCE) for part in line]
            for line in finding.lines
        ],
        "advice": finding.advice,
        "items": [[item.category, item.other, item.text] for item in finding.items],
    }


def _texts(result: Result, rows: np.ndarray, limit: int) -> dict[str, Any]:
    """Return the texts on the map, column by column."""
    placed = _placed(result, rows)
    x, y = _grid(result.map_positions[placed])
    probability = result.probability[placed]
    percents = np.where(np.isfinite(probability), np.round(probability * 100), -1)
    differs = np.flatnonzero(result.predicted[placed] != result.assigned[placed])
    texts = [result.corpus.texts[at] for at in placed]
    ids = [result.corpus.ids[at] for at in placed]
    return {
        **time_and_columns(result, placed),
        "text": [shown(text, limit) for text in texts],
        # Row numbers need no list.
        "ids": None if ids == [str(at + 1) for at in range(len(ids))] else ids,
        "limit": limit if any(len(text) > limit for text in texts) else None,
        "category": result.assigned[placed].tolist(),
        "x": x.tolist(),
        "y": y.tolist(),
        "probability": percents.astype(int).tolist(),
        "given": "".join("01"[given] for given in result.labelled[placed].astype(int)),
        "predicted": {int(at): int(result.predicted[placed[at]]) for at in differs},
        "total": len(result.corpus),
        "outside": _outside(result, placed),
        "sampled": len(rows) < len(result.corpus),
        "unplaced": len(rows) - len(placed),
    }


def _grid(xy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return integer coordinates, with the same scale on both axes and y pointing down."""
    if not len(xy):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    low, high = xy.min(axis=0), xy.max(axis=0)
    span = float((high - low).max()) or 1.0
    offset = (span - (high - low)) / 2  # [2], centres the shorter axis
    placed = np.round((xy - low + offset) / span * GRID).astype(np.int64)
    return placed[:, 0], GRID - placed[:, 1]
