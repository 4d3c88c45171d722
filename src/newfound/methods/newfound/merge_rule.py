"""The rule that tells whether two clusters are one category, learnt from the known categories.

Two pieces of evidence speak for one category: the texts of both are neighbours of each other all
over (the mixing ratio), and their means point the same way (the cosine). How much each counts, the
known categories show: each one cut in two should be one, each with its most similar other ones
should be two (`fit_merge_rule`, a logistic regression).

Where few of the categories are known, the most similar known one of each is not the most similar of
all. Then two known categories look more distinct than two categories are, and the rule would merge
too much. So it is corrected until half of the cut categories would stay apart (`corrected`), the
more so the fewer are known.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

MIN_RATIO = 0.01  # mixing ratios below it count as that
NEWTON_STEPS = 25
MOST = 0.55  # share of known categories from which the rule is not corrected
ENOUGH = 15  # known categories from which it may be corrected fully
TYPICAL_WEIGHT = 3  # known categories that the typical offset counts as beside them


@dataclass(frozen=True)
class MergeRule:
    """Two clusters are one category if offset + mixing * log ratio + cosine * cosine is above 0."""

    offset: float
    mixing: float
    cosine: float

    def score(self, evidence: Tensor) -> Tensor:
        """Return the score of pairs with this evidence [..., 2]."""
        return self.offset + self.mixing * evidence[..., 0] + self.cosine * evidence[..., 1]


# Fitted to the known categories of many tables at once; the rule of a table is drawn to it.
TYPICAL = MergeRule(offset=-0.3, mixing=1.5, cosine=3.3)
PRECISION = np.array([1.0, 25.0, 25.0])  # how strongly, in the order of the fields
# A ratio above a quarter. How large cosines are depends on the encoder, so they do not count.
WITHOUT_LABELS = MergeRule(offset=-1.5 * float(np.log(0.25)), mixing=1.5, cosine=0.0)


def pair_evidence(ratios: Tensor, means: Tensor) -> Tensor:
    """Return the evidence [K, K, 2] on each pair: logarithm of the mixing ratio, and cosine.

    Parameters
    ----------
    ratios : Tensor of shape [K, K]
        Mixing ratios.
    means : Tensor of shape [K, d]
        Means of the clusters, less the mean of all texts.
    """
    unit = F.normalize(means.to(ratios.dtype), dim=1)
    return torch.stack([ratios.clamp(min=MIN_RATIO).log(), unit @ unit.T], dim=-1)


def fit_merge_rule(one: np.ndarray, two: np.ndarray) -> MergeRule:
    """Fit the rule by logistic regression, both samples with the same weight in all.

    The loss is minimised together with a Gaussian prior around `TYPICAL` (`PRECISION`), which
    decides where samples are few.

    Parameters
    ----------
    one : ndarray of shape (A, 2)
        Evidence on pairs that are one category.
    two : ndarray of shape (B, 2)
        Evidence on pairs that are two.

    Examples
    --------
    >>> import numpy as np
    >>> fit_merge_rule(np.empty((0, 2)), np.empty((0, 2))) == TYPICAL
    True
    """
    if not len(one) or not len(two):
        return TYPICAL
    total = len(one) + len(two)
    rows = np.column_stack([np.ones(total), np.concatenate([one, two])])  # [A + B, 3]
    sign = np.repeat([1.0, -1.0], [len(one), len(two)])
    weight = np.repeat([total / 2 / len(one), total / 2 / len(two)], [len(one), len(two)])
    prior = np.array([TYPICAL.offset, TYPICAL.mixing, TYPICAL.cosine])
    found = prior.copy()
    for _ in range(NEWTON_STEPS):
        wrong = 1 / (1 + np.exp(np.clip(sign * (rows @ found), -50, 50)))
        slope = rows.T @ (weight * -sign * wrong) + PRECISION * (found - prior)
        curvature = (rows * (weight * wrong * (1 - wrong))[:, None]).T @ rows + np.diag(PRECISION)
        found -= np.linalg.solve(curvature, slope)
    return MergeRule(*found.tolist())


def halves_offset(rule: MergeRule, one: np.ndarray) -> float:
    """Return the offset at which half of the cut categories would stay apart.

    Drawn to the typical offset if they are few.
    """
    scores = replace(rule, offset=0.0).score(torch.from_numpy(one)).numpy()
    median = -float(np.median(scores)) if len(scores) else TYPICAL.offset
    return (len(one) * median + TYPICAL_WEIGHT * TYPICAL.offset) / (len(one) + TYPICAL_WEIGHT)


def corrected(rule: MergeRule, one: np.ndarray, known: int, known_share: float) -> MergeRule:
    """Move the offset towards `halves_offset`, the more the fewer categories are known.

    Parameters
    ----------
    rule : MergeRule
    one : ndarray of shape (A, 2)
        Evidence on halves of known categories.
    known : int
        Number of known categories; with few of them, halves tell little.
    known_share : float
        Share of all categories that is known.
    """
    weight = (1 - min(1.0, known_share / MOST)) * min(1.0, known / ENOUGH)
    return replace(rule, offset=(1 - weight) * rule.offset + weight * halves_offset(rule, one))
