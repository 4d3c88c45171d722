"""Texts that fit nowhere: the least fitting ones, for a person to read."""

import numpy as np

from newfound.report.finding import Finding, Item, percent
from newfound.report.shown import NAME, shown
from newfound.result import Result
from newfound.wording import plural

LISTED = 10  # least fitting texts shown
TEXT = 200  # characters shown of each
CATEGORIES = 10  # with the most marked texts


def fits_nowhere(result: Result) -> Finding | None:
    """Return the texts marked as fitting nowhere, or the least fitting ones if none was asked for.

    Only texts without a label are listed: the others have the category that the user gave.
    """
    rows = least_fitting(result, LISTED)
    if not len(rows):
        return None
    lines = tuple(_line(result, row) for row in rows)
    if result.fits_nowhere is None:
        return Finding(
            "outside",
            "note",
            "The texts that fit their category least",
            "Every text gets a category, also one that fits nowhere. These have the lowest fit "
            "scores of those without a label:",
            "If they belong nowhere, run again with a share of texts to mark (--outside) or with a "
            "rate of false alarms that you accept (--false-alarms).",
            lines=lines,
        )
    marked = int(result.fits_nowhere.sum())
    pile = int((~result.labelled).sum())
    return Finding(
        "outside",
        "check" if marked else "note",
        f"{plural(marked, 'text fits', 'texts fit')} nowhere",
        f"They are {percent(marked / pile)} of the texts without a label. Each keeps the category "
        "that it is nearest to, and the table of texts says which they are. The lowest fit scores:",
        "Read them: they may be noise, or the first texts of categories that are still missing.",
        items=_items(result),
        lines=lines,
    )


def least_fitting(result: Result, count: int) -> np.ndarray:
    """Return the rows of texts without a label that have the lowest fit scores."""
    if result.fit is None:
        return np.empty(0, np.int64)
    rows = np.flatnonzero(~result.labelled & np.isfinite(result.fit))
    return rows[np.argsort(result.fit[rows], kind="stable")][:count]


def _line(result: Result, row: int) -> str:
    """Return a text with its score, its category and the best known one."""
    assert result.fit is not None
    category = int(result.assigned[row])
    told = f"fit {result.fit[row]:.2f}, in {shown(str(result.names[category]), NAME)}"
    if not result.is_known[category] and result.best_known is not None:
        known = int(result.best_known[row])
        if known >= 0 and result.best_known_probability is not None:
            chance = percent(float(result.best_known_probability[row]))
            told += f"; best known: {shown(str(result.names[known]), NAME)}, {chance}"
    return f"{shown(result.corpus.texts[row], TEXT)} ({told})"


def _items(result: Result) -> tuple[Item, ...]:
    """Return the categories with the most marked texts."""
    assert result.fits_nowhere is not None
    counts = np.bincount(result.assigned[result.fits_nowhere], minlength=len(result.categories))
    order = np.argsort(-counts, kind="stable")[:CATEGORIES]
    return tuple(
        Item(int(i), None, f"{plural(int(counts[i]), 'text')} of {result.categories[i].size:,}")
        for i in order
        if counts[i]
    )
