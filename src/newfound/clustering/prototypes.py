"""Prototypes: class means, their matching (Eqs. 2-3), and their moving average (Eq. 11)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.distances import distances


def class_means(features: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Return the mean feature of each class.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    targets : Tensor of shape [N]
        Class of each row; rows with -1 are left out.
    classes : int
        Number of classes.

    Returns
    -------
    Tensor of shape [classes, d]
        A class without rows gets a zero vector.

    Examples
    --------
    >>> import torch
    >>> class_means(torch.tensor([[1.0], [3.0], [9.0]]), torch.tensor([0, 0, -1]), 2).tolist()
    [[2.0], [0.0]]
    """
    chosen = targets >= 0
    total = features.new_zeros(classes, features.shape[1])
    total.index_add_(0, targets[chosen], features[chosen])
    counts = torch.bincount(targets[chosen], minlength=classes).clamp(min=1)
    return total / counts[:, None]


@dataclass(frozen=True)
class Matching:
    """Which unlabelled prototype is matched to which known category.

    Attributes
    ----------
    matched : ndarray of shape [M]
        Index of the unlabelled prototype of each known category.
    novel : ndarray of shape [K - M]
        The other indices.
    distances : ndarray of shape [M, K]
        Columns in the original order.
    """

    matched: np.ndarray
    novel: np.ndarray
    distances: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """Return the indices of all K unlabelled prototypes, those of known categories first."""
        return np.concatenate([self.matched, self.novel])


def match_prototypes(labelled: Tensor, unlabelled: Tensor) -> Matching:
    """Eqs. 2-3: match labelled to unlabelled prototypes one to one, by least total distance."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    cost = distances(labelled, unlabelled).cpu().numpy()
    _, matched = linear_sum_assignment(cost)
    novel = np.setdiff1d(np.arange(cost.shape[1]), matched)
    return Matching(np.asarray(matched, np.int64), novel.astype(np.int64), cost)


def align_centroids(previous: Tensor, new: Tensor) -> np.ndarray:
    """Return the `order` [K] in which new centroids [K, d] take the places of the previous ones.

    The matching is one to one and of least total distance; `new[order]` numbers the clusters as
    before.
    """
    return match_prototypes(previous, new).matched


def moving_average(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    """Eq. 11: momentum * old + (1 - momentum) * new."""
    return momentum * old + (1 - momentum) * new
