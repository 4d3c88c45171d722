"""Scores of a clustering against the truth: accuracy by one matching, NMI and ARI."""

import math
from collections.abc import Collection, Hashable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score


@dataclass(frozen=True)
class Scores:
    """Scores in percent; nan for a part without texts.

    Attributes
    ----------
    all, known, novel : float
        Accuracy over all texts, over those whose true category is known, and over the others.
    nmi : float
        Normalised mutual information.
    ari : float
        Adjusted Rand index.
    """

    all: float
    known: float
    novel: float
    nmi: float
    ari: float

    def to_dict(self) -> dict[str, float]:
        """Return the scores by name."""
        return asdict(self)


def accuracy(predicted: ArrayLike, truth: ArrayLike, known: Collection[Hashable]) -> Scores:
    """Score clusters against the true categories.

    There is one matching for all texts. Accuracy on known and on novel categories is read from it:
    a matching for each part would let a cluster count as two categories.

    Parameters
    ----------
    predicted : array-like of shape [N]
        Cluster of each text, of any kind of value.
    truth : array-like of shape [N]
        True category of each text.
    known : collection
        The categories that were labelled.

    Returns
    -------
    Scores

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["fee", "fee", "card", "fee"], known={"fee"}).all
    75.0
    """
    _, categories, table = _contingency(predicted, truth)
    rows, columns = linear_sum_assignment(table, maximize=True)
    right = np.zeros(len(categories), np.int64)  # texts of each category that agree
    right[columns] = table[rows, columns]
    texts = table.sum(0)
    is_known = np.array([category in known for category in categories], bool)
    return Scores(
        all=_percent(right.sum(), texts.sum()),
        known=_percent(right[is_known].sum(), texts[is_known].sum()),
        novel=_percent(right[~is_known].sum(), texts[~is_known].sum()),
        nmi=100 * float(normalized_mutual_info_score(truth, predicted)),
        ari=100 * float(adjusted_rand_score(truth, predicted)),
    )


def _contingency(
    predicted: ArrayLike, truth: ArrayLike
) -> tuple[list[Hashable], list[Hashable], NDArray[np.int64]]:
    """Return clusters, categories, and the number of texts by cluster and category."""
    clusters, row = _numbered(predicted)
    categories, column = _numbered(truth)
    if len(row) != len(column) or not len(row):
        raise ValueError(f"{len(row)} predictions cannot be scored against {len(column)} truths")
    table = np.zeros((len(clusters), len(categories)), np.int64)
    np.add.at(table, (row, column), 1)
    return clusters, categories, table


def _numbered(values: ArrayLike) -> tuple[list[Hashable], NDArray[np.int64]]:
    """Return the distinct values and each value's index among them."""
    distinct, index = np.unique(np.asarray(values), return_inverse=True)
    return distinct.tolist(), index.reshape(-1)


def _percent(part: int, whole: int) -> float:
    """Return a percentage; nan of nothing."""
    return 100 * float(part) / float(whole) if whole else math.nan
