"""Volume over time: how many texts of each category are in each period."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newfound.category import Category
from newfound.data.corpus import Corpus
from newfound.data.times import periods


def with_volumes(
    categories: Sequence[Category], corpus: Corpus, assigned: np.ndarray
) -> tuple[Category, ...]:
    """Return the categories with their volume over time.

    Parameters
    ----------
    categories : sequence of Category
    corpus : Corpus
        Without a time column, the categories have no volume.
    assigned : ndarray of int64, shape (N,)
        Index of each text's category, or -1.

    Returns
    -------
    tuple of Category
    """
    divided = periods(corpus)
    if divided is None:
        return tuple(replace(category, volume=()) for category in categories)
    # Texts without a category count in a last row that is not read.
    counts = divided.counts(assigned % (len(categories) + 1), len(categories) + 1)
    return tuple(
        replace(category, volume=tuple(zip(divided.names, row, strict=True)))
        for category, row in zip(categories, counts.tolist(), strict=False)
    )
