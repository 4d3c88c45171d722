"""Several models of the same texts as one: features side by side, categories matched.

Models that were trained from other starts err on other texts. Where a feature is what all of them
make of a text, its squared distance to a prototype is the mean of theirs, so a text goes where the
members agree best. Nothing else changes: one vector a text, one prototype a category.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from newfound.nearest import nearest


def match_labels(first: Tensor, other: Tensor, k: int, known: int) -> np.ndarray:
    """Which category of `other` stands for each of `first`: `order` [K], one to one.

    The first `known` categories are the same in both labels [N]. The rest are matched so that as
    many texts as possible are of matched categories.
    """
    from scipy.optimize import linear_sum_assignment  # here: it costs every start

    counts = torch.bincount(first * k + other, minlength=k * k).view(k, k).cpu().numpy()
    order = np.arange(k)
    rows, columns = linear_sum_assignment(-counts[known:, known:])
    order[known + rows] = known + columns
    return order


def side_by_side(prototypes: Sequence[Tensor], features: Sequence[Tensor], known: int) -> Tensor:
    """The prototypes [K, H d] of H members, from each one's prototypes [K, d] and features [N, d].

    Lengths are those of features of unit length side by side, given unit length again.
    """
    k = len(prototypes[0])
    labels = [nearest(own, rows)[0] for own, rows in zip(features, prototypes, strict=True)]
    orders = [match_labels(labels[0], other, k, known) for other in labels]
    matched = [
        rows[torch.from_numpy(order).to(rows.device)]
        for rows, order in zip(prototypes, orders, strict=True)
    ]
    return torch.cat(matched, dim=1) / len(matched) ** 0.5
