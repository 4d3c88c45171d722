"""The result of `newfound check`, as sentences and a table for the page."""

import math
from typing import Any

from newfound.checking.check import MEASURES, Check, MethodCheck
from newfound.report.shown import NAME, shown
from newfound.wording import plural


def expectation(check: Check) -> dict[str, Any]:
    """Return the sentences and the table of a check."""
    meanings = (f"{heading}: {meaning}." for heading, meaning in MEASURES.values())
    return {
        "sentences": _sentences(check),
        "columns": ["Method", "Expected", *(heading for heading, _ in MEASURES.values())],
        "rows": [
            [
                shown(each.method, NAME),
                each.expected(),
                *(each.shown(measure) for measure in MEASURES),
            ]
            for each in check.methods
        ],
        "how": [
            "Expected: unlabelled texts of the whole table in the right category, in percent.",
            "Other columns: mean and standard deviation over draws, in percent.",
            *meanings,
        ],
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
    sentences = [*_expected(first), told]
    return [*sentences, f"{method} assigned {' and '.join(right)}."] if right else sentences


def _expected(method: MethodCheck) -> list[str]:
    """Return a sentence on the accuracy to expect on the whole table."""
    found = method.forecast
    if found is None or math.isnan(found.all):
        return []
    return [
        f"About {found.all:.0f}% of the unlabelled texts of this table are expected in their right "
        "category: the probabilities of a discovery with all labels, corrected by the draws."
    ]
