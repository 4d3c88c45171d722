"""Prototypes: class means, their matching (Eqs. 2-3), and their moving average (Eq. 11)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.distances import distances


def class_means(features: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Mean feature of each class [classes, d]; rows with target -1 take no part.

    A class without rows gets a zero vector.
    """
    chosen = targets >= 0
    total = features.new_zeros(classes, features.shape[1])
    total.index_add_(0, targets[chosen], features[chosen])
    counts = torch.bincount(targets[chosen], minlength=classes).clamp(min=1)
    return total / counts[:, None]


@dataclass(frozen=True)
class Matching:
    """Which unlabelled prototype stands for which known category."""

    matched: np.ndarray  # [M]: index of the unlabelled prototype for each known category
    novel: np.ndarray  # [K - M]: the others
    distances: np.ndarray  # [M, K], columns in the original order

    @property
    def order(self) -> np.ndarray:
        """All K unlabelled prototypes, those of known categories first."""
        return np.concatenate([self.matched, self.novel])


def match_prototypes(labelled: Tensor, unlabelled: Tensor) -> Matching:
    """Eqs. 2-3: the one-to-one matching of labelled to unlabelled prototypes of least distance."""
    from scipy.optimize import linear_sum_assignment  # here: it costs every start

    cost = distances(labelled, unlabelled).cpu().numpy()
    _, matched = linear_sum_assignment(cost)
    novel = np.setdiff1d(np.arange(cost.shape[1]), matched)
    return Matching(np.asarray(matched, np.int64), novel.astype(np.int64), cost)


def align_centroids(previous: Tensor, new: Tensor) -> np.ndarray:
    """Which of the new centroids [K, d] takes the place of each previous one: `order` [K].

    One to one and of least total distance, so that `new[order]` counts the clusters as before.
    """
    return match_prototypes(previous, new).matched


def moving_average(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    """Eq. 11: momentum * old + (1 - momentum) * new."""
    return momentum * old + (1 - momentum) * new
