"""The accuracy to expect on a table: what a discovery believes, corrected by what the draws show.

A draw is harder than the table itself: fewer categories are known, from which the number of
categories is estimated less well, and a hidden category may be small or absent. So the accuracy of
the draws alone is too low. The mean probability of the discovery on the whole table is about the
table itself, but may be too high or too low. The draws tell by how much: their *gap* is the
accuracy on hidden labels less the mean probability of the same texts. A part of it, CARRIED over,
corrects the mean probability.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from newfound.checking.scores import DrawScores
from newfound.result import Result

CARRIED = 0.5  # part of the gap of the draws that is expected on the whole table


@dataclass(frozen=True)
class Whole:
    """What a discovery on the whole table believes of its unlabelled texts.

    Attributes
    ----------
    known, novel : float
        Mean probability, in percent, of the texts that it gives to known and to novel categories;
        NaN without any.
    novel_share : float
        Share of the texts that it gives to novel categories.
    n_categories : int
        Number of its categories, known ones included.
    """

    known: float
    novel: float
    novel_share: float
    n_categories: int


def believed(result: Result) -> Whole:
    """Return what a discovery believes of the unlabelled texts of its table."""
    unlabelled = np.array([label is None for label in result.corpus.labels], bool)
    probability = 100 * result.probability[unlabelled]
    novel = result.predicted[unlabelled] >= len(result.corpus.known)
    return Whole(
        known=_mean(probability[~novel]),
        novel=_mean(probability[novel]),
        novel_share=float(novel.mean()) if len(novel) else 0.0,
        n_categories=len(result.categories),
    )


@dataclass(frozen=True)
class Forecast:
    """The accuracy to expect on a table, in percent; NaN where nothing tells.

    Attributes
    ----------
    all, known, novel : float
        Unlabelled texts in the right category: all, those of known, and those of novel categories.
    """

    all: float
    known: float
    novel: float


def forecast(whole: Whole, draws: Sequence[DrawScores]) -> Forecast:
    """Return the accuracy to expect on the whole table.

    Parameters
    ----------
    whole : Whole
        What a discovery on the table believes.
    draws : sequence of DrawScores
        The scores of the draws.

    Returns
    -------
    Forecast

    Examples
    --------
    >>> whole = Whole(known=90.0, novel=80.0, novel_share=0.25, n_categories=12)
    >>> forecast(whole, [])
    Forecast(all=87.5, known=90.0, novel=80.0)
    """
    known = _corrected(whole.known, [draw.known_gap for draw in draws])
    novel = _corrected(whole.novel, [draw.novel_gap for draw in draws])
    parts = ((1 - whole.novel_share, known), (whole.novel_share, novel))
    return Forecast(sum(share * value for share, value in parts if share > 0), known, novel)


def _corrected(probability: float, gaps: list[float]) -> float:
    """Return the mean probability with a part of the mean gap, between 0 and 100."""
    gap = _mean(np.array([gap for gap in gaps if not math.isnan(gap)]))
    corrected = probability if math.isnan(gap) else probability + CARRIED * gap
    return min(max(corrected, 0.0), 100.0) if not math.isnan(corrected) else corrected


def _mean(values: np.ndarray) -> float:
    """Return the mean; NaN without values."""
    return float(values.mean()) if len(values) else math.nan
