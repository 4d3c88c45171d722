"""The result of `newfound check`, as sentences and a table for the page."""

import math
from typing import Any

from newfound.checking.check import MEASURES, Check
from newfound.report.shown import NAME, shown
from newfound.wording import plural


def expectation(check: Check) -> dict[str, Any]:
    """Return the sentences and the table of a check."""
    meanings = (f"{heading}: {meaning}." for heading, meaning in MEASURES.values())
    return {
        "sentences": _sentences(check),
        "columns": ["Method", *(heading for heading, _ in MEASURES.values())],
        "rows": [
            [shown(each.method, NAME), *(each.shown(measure) for measure in MEASURES)]
            for each in check.methods
        ],
        "how": ["Mean and standard deviation over draws, in percent.", *meanings],
    }


def _sentences(check: Check) -> list[str]:
    """Return how the scores were measured, and those of the first method."""
    if not check.methods or not check.methods[0].draws:
        return []
    first = check.methods[0]
    told = (
        f"`newfound check` hid {first.mean('n_hidden'):.0f} of {check.n_known:,} known categories "
        f"and a part of the other labels, in {plural(len(first.draws), 'draw')}."
    )
    right = [
        f"{first.mean(measure):.0f}% of {what}"
        for measure, what in (
            ("exact_known", "the texts of known categories to their own category"),
            ("novel", "the texts of hidden categories to the matching novel category"),
        )
        if not math.isnan(first.mean(measure))
    ]
    method = shown(first.method, NAME)
    return [told, f"{method} assigned {' and '.join(right)}."] if right else [told]
