"""Mark the texts that fit nowhere, and count them by category."""

import math
from dataclasses import replace

import numpy as np

from newfound.category import Category
from newfound.model import Model
from newfound.wording import plural


def mark_outside(
    model: Model, fit: np.ndarray, labelled: np.ndarray
) -> tuple[np.ndarray | None, list[str]]:
    """Return which texts fit nowhere, bool [N] or None if no text is to be marked, and notes."""
    threshold = model.fit_threshold
    if threshold is None:
        return None, []
    outside = (fit < threshold) & ~labelled
    rate, given = model.config.get("false_alarms"), int(labelled.sum())
    if rate and not np.isfinite(threshold) and threshold < 0:
        return outside, [
            f"{plural(given, 'labelled text is', 'labelled texts are')} too few for a false-alarm "
            f"rate of {rate:g}, so no text is marked; label at least {math.ceil(1 / rate) - 1:,} "
            "texts, or give a higher rate"
        ]
    return outside, []


def with_fits(
    categories: tuple[Category, ...],
    assigned: np.ndarray,
    fit: np.ndarray,
    outside: np.ndarray | None,
) -> tuple[Category, ...]:
    """Return the categories with the mean fit score of their texts, and how many fit nowhere."""
    total = len(categories)
    sizes = np.bincount(assigned, minlength=total)
    means = np.bincount(assigned, weights=fit, minlength=total) / np.maximum(sizes, 1)
    counts = None if outside is None else np.bincount(assigned[outside], minlength=total)
    return tuple(
        replace(
            category,
            fit=round(float(means[i]), 4) if sizes[i] else None,
            fits_nowhere=None if counts is None else int(counts[i]),
        )
        for i, category in enumerate(categories)
    )
