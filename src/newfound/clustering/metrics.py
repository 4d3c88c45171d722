"""Metrics: accuracy by one optimal matching, NMI, ARI, calibration error."""

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment


@dataclass(frozen=True)
class Scores:
    """Scores in percent.

    Attributes
    ----------
    all, known, novel : float
        Accuracy over all texts, and over texts whose true category is known or novel; nan if there
        are none.
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
    """Score predicted clusters against the true categories.

    Clusters are matched to categories one to one over all texts. Accuracy on known and on novel
    categories is read from that matching: a matching for each part would let a cluster count as two
    categories.

    Parameters
    ----------
    predicted : array-like of shape [N]
        Cluster of each text.
    truth : array-like of shape [N]
        True category of each text.
    known : collection
        Known categories, as values of `truth`.

    Returns
    -------
    Scores

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["card", "card", "loan", "card"], {"card"}).all
    75.0
    """
    from sklearn.metrics import (  # imported here, because it is slow
        adjusted_rand_score,
        normalized_mutual_info_score,
    )

    _, categories, table = _contingency(predicted, truth)
    rows, columns = linear_sum_assignment(table, maximize=True)
    right = np.zeros(len(categories), np.int64)  # correct texts of each category
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


def open_accuracy(
    predicted: Sequence[str | None], truth: Sequence[str], known: Collection[str]
) -> float:
    """Compute the accuracy of predictions whose true categories may be unknown to the model.

    A known category counts as correct by its name only. The other true categories are matched one
    to one with the predicted novel categories, so that as many texts as possible agree.

    Parameters
    ----------
    predicted : sequence of str or None
        Predicted category of each text; None is never correct.
    truth : sequence of str
        True label of each text.
    known : collection of str
        Names of the known categories.

    Returns
    -------
    float
        Share of correct texts, from 0 to 1.

    Examples
    --------
    >>> open_accuracy(["card", "new 1", "new 2"], ["card", "loan", "fee"], {"card"})
    1.0
    >>> open_accuracy(["new 1", "new 1"], ["card", "loan"], {"card"})
    0.5
    """
    pairs = list(zip(predicted, truth, strict=True))
    right = sum(found == label for found, label in pairs if label in known)
    novel = [
        (found, label)
        for found, label in pairs
        if label not in known and found is not None and found not in known
    ]
    if novel:
        _, _, table = _contingency(*zip(*novel, strict=True))
        right += int(table[linear_sum_assignment(table, maximize=True)].sum())
    return right / len(pairs)


def calibration_error(
    probability: np.ndarray,
    right: np.ndarray,
    bins: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """Compute the expected calibration error: the mean gap of probability and accuracy over bins.

    ECE = sum over bins of W_bin / W * |mean probability - accuracy|, where W are sums of weights.

    Parameters
    ----------
    probability : ndarray of float, shape [N]
        Probability of each prediction.
    right : ndarray of bool, shape [N]
        Whether each prediction is right.
    bins : ndarray of int, shape [N]
        Bin of each prediction, from `bins_of_equal_width` or `bins_of_equal_size`.
    weights : ndarray of float, shape [N], optional
        Weight of each prediction; by default all weigh the same.

    Returns
    -------
    float
        From 0 to 1; nan without predictions.

    Examples
    --------
    >>> probability = np.array([0.9, 0.9, 0.6, 0.6])
    >>> right = np.array([True, True, True, False])
    >>> round(calibration_error(probability, right, bins_of_equal_width(probability)), 3)
    0.1
    """
    if not len(right):
        return math.nan
    weights = np.ones(len(right)) if weights is None else weights
    gaps = np.bincount(bins, weights=weights * (probability - right))
    return float(np.abs(gaps).sum() / weights.sum())


def bins_of_equal_width(probability: np.ndarray, count: int = 10) -> NDArray[np.int64]:
    """Return the bin [N] of each probability, of `count` bins of equal width from 0 to 1."""
    return np.clip((probability * count).astype(np.int64), 0, count - 1)


def bins_of_equal_size(probability: np.ndarray, count: int = 10) -> NDArray[np.int64]:
    """Return the bin [N] of each probability, of `count` bins with equally many predictions."""
    bins = np.empty(len(probability), np.int64)
    for number, rows in enumerate(np.array_split(np.argsort(probability, kind="stable"), count)):
        bins[rows] = number
    return bins


def _contingency(
    predicted: ArrayLike, truth: ArrayLike
) -> tuple[list[Hashable], list[Hashable], NDArray[np.int64]]:
    """Return clusters, categories, and the counts of texts by cluster and category."""
    clusters, row = _numbered(predicted)
    categories, column = _numbered(truth)
    if len(row) != len(column) or not len(row):
        raise ValueError(
            f"{len(row)} predictions cannot be scored against {len(column)} true categories"
        )
    table = np.zeros((len(clusters), len(categories)), np.int64)
    np.add.at(table, (row, column), 1)
    return clusters, categories, table


def _numbered(values: ArrayLike) -> tuple[list[Hashable], NDArray[np.int64]]:
    """Return the distinct values, and the index of each value among them."""
    distinct, index = np.unique(np.asarray(values), return_inverse=True)
    return distinct.tolist(), index.reshape(-1)


def _percent(part: int, whole: int) -> float:
    """Return a share in percent, nan of an empty whole."""
    return 100 * float(part) / float(whole) if whole else math.nan
