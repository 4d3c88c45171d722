"""Count categories where thousands of them are known.

Merging compares all pairs of categories, which is slow for thousands. Known categories never merge
with each other, and those without a neighbour link to a novel category merge with none. So these
are taken together as one known category, and counted one by one afterwards.
"""

from dataclasses import replace

import torch
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.methods.newfound.merging import estimate_by_merging, link_number

MANY = 1_000  # known categories from which on some are taken together


def estimate_with_many_known(
    points: Tensor,
    neighbours: Tensor,
    labels: Tensor,
    targets: Tensor,
    k: int,
    *,
    seed: int,
    many: int = MANY,
) -> Estimate:
    """Estimate the number of categories by merging, however many of them are known.

    Parameters
    ----------
    points, neighbours, labels, targets, k, seed
        As for `estimate_by_merging`.
    many : int, optional
        Known categories from which on some are taken together.

    Returns
    -------
    Estimate
    """
    known = int(targets.max()) + 1
    if known <= many:
        return estimate_by_merging(points, neighbours, labels, targets, k, seed=seed)
    links = neighbours[:, : link_number(len(labels), k)]
    end, start = labels[links].reshape(-1), labels[:, None].expand_as(links).reshape(-1)
    linked = torch.zeros(k, dtype=torch.bool, device=labels.device)
    linked[end[start >= known]] = True
    linked[start[end >= known]] = True
    kept = linked[:known].nonzero()[:, 0]  # known categories with a number of their own
    numbers = torch.full((k,), len(kept), device=labels.device)  # the others share the next one
    numbers[kept] = torch.arange(len(kept), device=labels.device)
    numbers[known:] = len(kept) + 1 + torch.arange(k - known, device=labels.device)
    fewer = len(kept) + 1
    left_out = known - fewer
    estimate = estimate_by_merging(
        points,
        neighbours,
        numbers[labels],
        torch.where(targets >= 0, numbers[targets.clamp(min=0)], -1),
        k - left_out,
        seed=seed,
    )
    return replace(
        estimate,
        n_categories=estimate.n_categories + left_out,
        candidates=[number + left_out for number in estimate.candidates],
        low=estimate.low + left_out,
        high=estimate.high + left_out,
    )
