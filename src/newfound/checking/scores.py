"""Score a draw: how well a discovery recovers hidden labels and categories.

1. Match true categories one to one with discovered ones, over all texts with a label, hidden ones
   included. A discovered category with the name of a known one is matched only with that one.
2. Score the texts whose label was hidden, separately for known and for hidden categories.
3. Estimate the share of novel texts among the texts without any label, and weight both parts by it.
   Their shares among the hidden labels depend only on how many labels a draw hides.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.checking.draws import Draw
from newfound.clustering.metrics import bins_of_equal_size, calibration_error

# A hidden category is recovered if more than this share of its texts is in one discovered category,
# and more than this share of that category's texts are its own.
RECOVERED = 0.5
COUNTED = 0.2  # share of a category's texts from which a novel category counts in the error of K
INFORMED = 0.2  # hit rate less false-alarm rate from which the share of novel texts is adjusted
BINS = 10  # maximum number of bins of the calibration error
BIN_TEXTS = 30  # minimum number of texts per bin


@dataclass(frozen=True)
class DrawScores:
    """Scores of a discovery on one draw, in percent; NaN if there is nothing to score.

    Attributes
    ----------
    all : float
        Texts in the right category, by a one-to-one matching.
    known : float
        The same for texts of categories that stayed known.
    novel : float
        The same for texts of hidden categories.
    exact_known : float
        Texts of known categories that get their own category by name, without a matching.
    recovered : float
        Hidden categories that were found as one separate category: it holds most of their texts,
        and most of its texts are theirs.
    k_error : float
        Number of novel categories among the texts with a label, less the number of hidden
        categories, in percent of the hidden categories.
    calibration_error : float
        Expected calibration error: mean difference between probability and accuracy over bins of
        similar probability.
    n_categories : int
        Number of discovered categories, known ones included.
    n_hidden : int
        Number of hidden categories.
    known_texts, novel_texts : int
        Numbers of scored texts of known and of hidden categories.
    known_gap, novel_gap : float
        Accuracy less mean probability, in percentage points, of the same texts.
    """

    all: float
    known: float
    novel: float
    exact_known: float
    recovered: float
    k_error: float
    calibration_error: float
    n_categories: int
    n_hidden: int
    known_texts: int
    novel_texts: int
    known_gap: float = math.nan
    novel_gap: float = math.nan


def score_draw(
    draw: Draw, predicted: np.ndarray, probability: np.ndarray, n_categories: int
) -> DrawScores:
    """Score a discovery on the corpus of a draw.

    Parameters
    ----------
    draw : Draw
        The corpus and its hidden labels.
    predicted : ndarray of int, shape (N,)
        Index of each text's predicted category, known ones first and sorted by name.
    probability : ndarray of float, shape (N,)
        Probability of that category.
    n_categories : int
        Number of discovered categories.

    Returns
    -------
    DrawScores
    """
    known = draw.corpus.known
    place = {label: i for i, label in enumerate([*known, *draw.hidden])}
    labels = [a or b for a, b in zip(draw.corpus.labels, draw.truth, strict=True)]
    truth = np.array([-1 if label is None else place[label] for label in labels], np.int64)  # [N]
    scored = np.array([label is not None for label in draw.truth], bool)
    table = np.zeros((n_categories, len(place)), np.int64)  # texts by discovered and true category
    np.add.at(table, (predicted[truth >= 0], truth[truth >= 0]), 1)
    matched = _match(table, len(known))
    answers, novel = predicted[scored], truth[scored] >= len(known)
    right, by_name = matched[truth[scored]] == answers, truth[scored] == answers
    share = _novel_share(
        predicted[truth < 0] >= len(known),
        answers >= len(known),
        novel,
        float((truth >= len(known)).sum() / (truth >= 0).sum()),
    )
    weights = _weights(novel, share)
    believed = probability[scored]
    return DrawScores(
        all=_percent(right, weights),
        known=_percent(right[~novel]),
        novel=_percent(right[novel]),
        exact_known=_percent(by_name[~novel]),
        recovered=_recovered(table, matched, len(known)),
        k_error=_k_error(table, len(known)),
        calibration_error=_ece(believed, np.where(novel, right, by_name), weights),
        known_gap=_percent(right[~novel]) - _percent(believed[~novel]),
        novel_gap=_percent(right[novel]) - _percent(believed[novel]),
        n_categories=n_categories,
        n_hidden=len(draw.hidden),
        known_texts=int((~novel).sum()),
        novel_texts=int(novel.sum()),
    )


def _ece(probability: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """Return the expected calibration error in percent, over bins of equally many texts."""
    bins = bins_of_equal_size(probability, min(BINS, max(1, len(right) // BIN_TEXTS)))
    return 100 * calibration_error(probability, right, bins, weights)


def _match(table: np.ndarray, n_known: int) -> np.ndarray:
    """Return the discovered category of each true one [C], -1 if they share no text."""
    allowed = table.copy()
    named = np.eye(n_known, table.shape[1], dtype=bool)
    allowed[:n_known][~named] = 0
    rows, columns = linear_sum_assignment(allowed, maximize=True)
    matched = np.full(table.shape[1], -1, np.int64)
    supported = allowed[rows, columns] > 0
    matched[columns[supported]] = rows[supported]
    return matched


def _novel_share(
    unlabelled: np.ndarray, scored: np.ndarray, novel: np.ndarray, hidden: float
) -> float:
    """Return the share of texts without any label that belong to novel categories of the table.

    It is the adjusted count of Forman, "Quantifying counts and costs via classification" (2008):
    the share of texts that are predicted as novel, corrected by the hit rate and the false-alarm
    rate of that prediction on the scored texts. The hidden categories are known in the whole table,
    so their share `hidden` is subtracted.

    unlabelled [P], scored [n]: whether a text is predicted as novel; novel [n]: whether it is.
    """
    if not len(unlabelled):
        return float(novel.mean())
    share = float(unlabelled.mean())
    hits = float(scored[novel].mean()) if novel.any() else 1.0
    false_alarms = float(scored[~novel].mean()) if not novel.all() else 0.0
    if hits - false_alarms >= INFORMED:
        share = (share - false_alarms) / (hits - false_alarms)
    return min(max((share - hidden) / (1 - hidden), 0.0), 1.0)


def _weights(novel: np.ndarray, share: float) -> np.ndarray:
    """Return weights [n] with which novel texts have this share."""
    if novel.all() or not novel.any():
        return np.ones(len(novel))
    return np.where(novel, share / novel.sum(), (1 - share) / (~novel).sum())


def _recovered(table: np.ndarray, matched: np.ndarray, n_known: int) -> float:
    """Return the percentage of hidden categories that were found as one separate category."""
    hidden = np.arange(n_known, table.shape[1])
    own = np.maximum(matched[hidden], 0)
    texts = table[own, hidden]
    most = (texts > RECOVERED * table[:, hidden].sum(0)) & (texts > RECOVERED * table[own].sum(1))
    return 100 * float(((matched[hidden] >= n_known) & most).mean())


def _k_error(table: np.ndarray, n_known: int) -> float:
    """Return how many more novel categories than hidden ones there are, in percent of those."""
    novel = table[n_known:]
    most = novel.argmax(1) if len(novel) else np.zeros(0, np.int64)
    part = novel[np.arange(len(novel)), most] / np.maximum(table.sum(0)[most], 1)
    hidden = table.shape[1] - n_known
    return 100 * float((part >= COUNTED).sum() - hidden) / hidden


def _percent(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the weighted mean in percent; NaN without any value."""
    return 100 * float(np.average(values, weights=weights)) if len(values) else float("nan")
