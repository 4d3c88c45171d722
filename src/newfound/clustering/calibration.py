"""Calibrate probabilities: how often the category of a text is right.

A softmax over distances to prototypes is overconfident: training moves every text towards some
prototype, right or wrong, and held-out labels say nothing about novel categories. So a second
estimate has the same weight: the categories of the nearest texts in the space before training.

1. Limit the log-odds of the softmax to those that ten neighbours can have, and take the mean of
   both.
2. A text of a novel category that was assigned to a known one is far from its labelled texts. Add
   a multiple of the rank of the nearest label's cosine among those of labelled texts. A novel
   category has no labels, so nothing is added.
3. Subtract a constant: a category may be half of a true one, or two of them, and its texts still
   agree with each other.
4. The result is the probability of the text's category. Raise the softmax to the power (that is,
   divide the temperature by a number) by which its largest value is that probability. So rows add
   up to 1, keep their order, and the text's category stays the most probable one.

Weight and constant are those of a logistic regression of whether a text is right, on tables cut as
`choosing` in `benchmarks/fits_nowhere.py`; the weight of the mean log-odds was 1.0.
"""

from dataclasses import dataclass

import numpy as np

from newfound.clustering.assignment import chunks, relative_scores

MOST_LOG_ODDS = 3.0  # of the softmax; ten neighbours of the same category have log 21 = 3.04
LABEL_WEIGHT = 1.25  # log-odds between a text as near to a label as any and one with none near
OFFSET = -0.5  # log-odds for categories that are not what they seem
LEAST_POWER = 0.01  # at 0 all categories would have the same probability
STEPS = 30  # of Newton's method at most, which finds the power
CLOSE = 1e-6  # relative difference of probabilities at which it ends
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for the category of each text, beside the distance to its prototype.

    Attributes
    ----------
    neighbours : ndarray of float, shape (N,)
        Log-odds that a neighbour of the text is of its category.
    labels : ndarray of float, shape (N,)
        From 0 to 1, how near the nearest labelled text of the category is; 0 if it has none.
    """

    neighbours: np.ndarray
    labels: np.ndarray

    def __getitem__(self, rows: slice) -> "Evidence":
        return Evidence(self.neighbours[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class Answers:
    """The categories of N texts with their probabilities.

    Attributes
    ----------
    index : ndarray of int64, shape (N,)
        Category with the nearest prototype.
    probability : ndarray of float32, shape (N,)
        Its probability.
    best_known : ndarray of int64, shape (N,)
        The most probable known category, -1 if none is known.
    best_known_probability : ndarray of float32, shape (N,)
        Its probability, NaN if none is known.
    """

    index: np.ndarray
    probability: np.ndarray
    best_known: np.ndarray
    best_known_probability: np.ndarray


def confidence(log_odds: np.ndarray, evidence: Evidence) -> np.ndarray:
    """Return the probability [N] that categories are right.

    Parameters
    ----------
    log_odds : ndarray of shape (N,)
        Log-odds of the category by the softmax over distances.
    evidence : Evidence
        Of the same texts and categories.

    Examples
    --------
    >>> import numpy as np
    >>> sure = np.array([3.0, 3.0])
    >>> confidence(sure, Evidence(np.array([3.0, -3.0]), np.array([1.0, 0.0]))).round(2).tolist()
    [0.98, 0.38]
    """
    limited = np.clip(log_odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    total = (limited + evidence.neighbours) / 2 + LABEL_WEIGHT * evidence.labels + OFFSET
    return 1 / (1 + np.exp(-total))


def calibrated_probabilities(
    features: np.ndarray, prototypes: np.ndarray, temperature: float, evidence: Evidence | None
) -> np.ndarray:
    """Compute the probability of each category.

    Parameters
    ----------
    features : ndarray of shape (N, d)
    prototypes : ndarray of shape (K, d)
    temperature : float
        Of the softmax over squared distances.
    evidence : Evidence or None
        For the category with the nearest prototype; without it the softmax is returned.

    Returns
    -------
    ndarray of float64, shape (N, K)
        Rows that sum to 1. The largest value of a row is its `confidence`, but more than 1 / K.
    """
    scores = relative_scores(features, prototypes, temperature)
    if evidence is not None:
        weights = np.exp(scores)
        others = weights.sum(1) - 1  # the nearest prototype has the weight 1
        wanted = confidence(-np.log(np.maximum(others, TINY)), evidence)
        scores *= _powers(scores, wanted)[:, None]
    weights = np.exp(scores)
    return weights / weights.sum(1, keepdims=True)


def answers(
    features: np.ndarray,
    prototypes: np.ndarray,
    temperature: float,
    known: int,
    evidence: Evidence | None,
) -> Answers:
    """Return the category of each text, and the best of the first `known` ones.

    The other parameters are those of `calibrated_probabilities`.
    """
    count = len(features)
    index, best = np.empty(count, np.int64), np.full(count, -1)
    sure, chance = np.empty(count, np.float32), np.full(count, np.nan, np.float32)
    for part in chunks(count, len(prototypes)):
        own = None if evidence is None else evidence[part]
        rows = calibrated_probabilities(features[part], prototypes, temperature, own)
        index[part], sure[part] = rows.argmax(1), rows.max(1)
        if known:
            best[part], chance[part] = rows[:, :known].argmax(1), rows[:, :known].max(1)
    return Answers(index, sure, best, chance)


def _powers(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the powers [N] by which the largest value of the softmax of scores [N, K] is wanted.

    The logarithm of sum_k exp(power * score_k) falls in the power and is convex, so Newton's method
    from 0 approaches its solution from below and never passes it. Where equal prototypes share the
    largest value, no power may reach what is wanted; there the steps end.
    """
    power = np.zeros(len(scores))
    rows = np.arange(len(scores))  # that are apart; each by itself, whatever is in the batch
    for _ in range(STEPS):
        weights = np.exp(power[rows, None] * scores)
        total = weights.sum(1)
        excess = np.maximum(np.log(total) + np.log(wanted[rows]), 0)
        slope = (weights * scores).sum(1) / total
        apart = (excess >= CLOSE) & (slope < -TINY)
        if not apart.any():
            break
        rows, scores = rows[apart], scores[apart]
        power[rows] += excess[apart] / -slope[apart]
    return np.maximum(power, LEAST_POWER)
