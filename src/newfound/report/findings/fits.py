"""The finding on texts that fit nowhere: those with the lowest fit scores, to read."""

import numpy as np

from newfound.report.findings.finding import Finding, Item, percent
from newfound.report.shown import NAME, shown
from newfound.result import Result
from newfound.wording import plural

LISTED = 10  # texts shown
TEXT = 200  # characters shown of each
CATEGORIES = 10  # categories shown, those with the most marked texts


def fits_nowhere(result: Result) -> Finding | None:
    """Return a finding on the texts that fit nowhere, or a note with the lowest fit scores.

    Only unlabelled texts are listed: a labelled text has the category that the user gave it.
    """
    rows = least_fitting(result, LISTED)
    if not len(rows):
        return None
    lines = tuple(_line(result, row) for row in rows)
    if result.fits_nowhere is None:
        return Finding(
            "outside",
            "note",
            "Texts with the lowest fit scores",
            "Every text gets a category, even if it fits nowhere. These unlabelled texts fit their "
            "category least:",
            "If they belong to no category, run again with a share of texts to mark (--outside) or "
            "a false-alarm rate (--false-alarms).",
            lines=lines,
        )
    marked = int(result.fits_nowhere.sum())
    pile = int((~result.labelled).sum())
    return Finding(
        "outside",
        "check" if marked else "note",
        f"{plural(marked, 'text fits', 'texts fit')} nowhere",
        f"They are {percent(marked / pile)} of the unlabelled texts. They keep their category; the "
        "column fits_nowhere of the assignments marks them. The texts with the lowest fit scores:",
        "Read them: they may be noise, or belong to categories that were not found.",
        items=_items(result),
        lines=lines,
    )


def least_fitting(result: Result, count: int) -> np.ndarray:
    """Return the rows of the unlabelled texts with the lowest fit scores."""
    if result.fit is None:
        return np.empty(0, np.int64)
    rows = np.flatnonzero(~result.labelled & np.isfinite(result.fit))
    return rows[np.argsort(result.fit[rows], kind="stable")][:count]


def _line(result: Result, row: int) -> tuple[str, str]:
    """Return a text, and in brackets its fit score, its category and its best known category."""
    assert result.fit is not None
    category = int(result.assigned[row])
    told = f"fit {result.fit[row]:.2f}, in {shown(str(result.names[category]), NAME)}"
    if not result.is_known[category] and result.best_known is not None:
        known = int(result.best_known[row])
        if known >= 0 and result.best_known_probability is not None:
            chance = percent(float(result.best_known_probability[row]))
            told += f"; best known: {shown(str(result.names[known]), NAME)}, {chance}"
    return shown(result.corpus.texts[row], TEXT), f" ({told})"


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
