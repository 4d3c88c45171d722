"""Learning from pairs of texts: alike or not, by label or by thresholds that close in (CDAC+).

Lin, Xu and Zhang, Discovering New Intents via Constrained Deep Adaptive Clustering with Cluster
Refinement, AAAI 2020. Shapes: logits [B, K], everything about pairs [B, B]; a text is also paired
with itself, and all means run over all B * B pairs, as published.
"""

import torch.nn.functional as F
from torch import Tensor

SMALL = 1e-10  # what a logarithm is taken of at least


def similarities(logits: Tensor) -> Tensor:
    """How alike each two texts are [B, B]: the cosine of their logits, held in (0, 1]."""
    unit = F.normalize(logits, dim=1)
    return (unit @ unit.T).clamp(SMALL, 1)


def same_label(targets: Tensor) -> tuple[Tensor, Tensor]:
    """(both texts are labelled, they have the same label), each [B, B]; -1 is no label."""
    labelled = targets >= 0
    both = labelled[:, None] & labelled
    return both, both & (targets[:, None] == targets)


def choose_pairs(
    similar: Tensor, targets: Tensor, upper: Tensor | float, lower: Tensor | float
) -> tuple[Tensor, Tensor]:
    """Which pairs to pull together and which to push apart (positive, negative), each [B, B].

    Above `upper` or below `lower` by similarity; where both texts are labelled, by their labels
    alone. A label must clear the other mask, too: the published code leaves a similar pair of
    different labels in both, where the two losses work against each other.
    """
    both, same = same_label(targets)
    positive = same | (~both & (similar > upper))
    negative = (both & ~same) | (~both & (similar < lower))
    return positive, negative


def pair_loss(similar: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Mean of -log S over positive plus mean of -log(1 - S) over negative pairs.

    Both means divide by all B * B pairs: few chosen pairs weigh little, early in training.
    """
    pull = -similar.clamp(min=SMALL).log() * positive
    push = -(1 - similar).clamp(min=SMALL).log() * negative
    return pull.mean() + push.mean()


def threshold_schedule(
    step: float = 0.0099, upper: float = 0.95, lower: float = 0.455
) -> list[tuple[float, float]]:
    """(upper, lower) of each epoch until the two cross: upper - eta and lower + 0.1 eta.

    eta grows by `step` an epoch. In the paper that is a gradient step on the term upper - lower
    of the loss, at rate 0.009: its slope in eta is always -1.1. As it depends on nothing else, the
    term is left out of the loss.
    """
    found: list[tuple[float, float]] = []
    eta = 0.0
    while upper - eta >= lower + 0.1 * eta:
        found.append((upper - eta, lower + 0.1 * eta))
        eta = len(found) * step
    return found
