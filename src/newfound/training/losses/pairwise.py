"""Pairwise losses of CDAC+: pairs are positive or negative by labels or by thresholds.

Lin, Xu and Zhang, Discovering New Intents via Constrained Deep Adaptive Clustering with Cluster
Refinement, AAAI 2020. Shapes: logits [B, K], pairs [B, B]. A text is also paired with itself, and
means are over all B * B pairs, as published.
"""

import torch.nn.functional as F
from torch import Tensor

SMALL = 1e-10  # minimum argument of a logarithm


def similarities(logits: Tensor) -> Tensor:
    """Return the similarities [B, B] of texts: cosines of their logits, clamped to (0, 1]."""
    unit = F.normalize(logits, dim=1)
    return (unit @ unit.T).clamp(SMALL, 1)


def same_label(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks [B, B] of pairs that are labelled, and that have the same label."""
    labelled = targets >= 0
    both = labelled[:, None] & labelled
    return both, both & (targets[:, None] == targets)


def choose_pairs(
    similar: Tensor, targets: Tensor, upper: Tensor | float, lower: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Choose positive and negative pairs.

    Two labelled texts are a pair by their labels only. Other pairs are positive above `upper` and
    negative below `lower`. The published code puts a similar pair with different labels into both
    masks, where the two losses oppose each other.

    Parameters
    ----------
    similar : Tensor of shape [B, B]
    targets : Tensor of shape [B]
        Labels, -1 where unlabelled.
    upper, lower : Tensor or float
        Thresholds.

    Returns
    -------
    positive, negative : Tensor of shape [B, B], bool
    """
    both, same = same_label(targets)
    positive = same | (~both & (similar > upper))
    negative = (both & ~same) | (~both & (similar < lower))
    return positive, negative


def pair_loss(similar: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the mean of -log S over positive plus that of -log(1 - S) over negative pairs.

    Both sums are divided by all B * B pairs, so a few chosen pairs have little weight early in
    training.
    """
    pull = -similar.clamp(min=SMALL).log() * positive
    push = -(1 - similar).clamp(min=SMALL).log() * negative
    return pull.mean() + push.mean()


def threshold_schedule(
    step: float = 0.0099, upper: float = 0.95, lower: float = 0.455
) -> list[tuple[float, float]]:
    """Return the thresholds of each epoch, upper - eta and lower + 0.1 eta, until they cross.

    eta grows by `step` per epoch. In the paper this is a gradient step with learning rate 0.009 on
    the term upper - lower of the loss, whose derivative by eta is always -1.1. The term depends on
    nothing else, so it is not part of the loss here.

    Returns
    -------
    list of (float, float)
        Upper and lower threshold of each epoch.
    """
    found: list[tuple[float, float]] = []
    eta = 0.0
    while upper - eta >= lower + 0.1 * eta:
        found.append((upper - eta, lower + 0.1 * eta))
        eta = len(found) * step
    return found
