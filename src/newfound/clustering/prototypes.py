"""Prototypes: class means, their matching (Eqs. 2-3) and their moving average (Eq. 11)."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.distances import distances


def class_means(features: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Compute the mean feature of each class.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    targets : Tensor of shape [N]
        Class of each text, -1 for texts to ignore.
    classes : int
        Number of classes.

    Returns
    -------
    Tensor of shape [classes, d]
        Zero for a class without texts.

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
    """A matching of known categories to unlabelled prototypes.

    Attributes
    ----------
    matched : ndarray of shape [M]
        Unlabelled prototype of each known category.
    novel : ndarray of shape [K - M]
        The other unlabelled prototypes.
    distances : ndarray of shape [M, K]
        Distances of labelled to unlabelled prototypes, in their original order.
    """

    matched: np.ndarray
    novel: np.ndarray
    distances: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """All K unlabelled prototypes, those matched to known categories first."""
        return np.concatenate([self.matched, self.novel])


def match_prototypes(labelled: Tensor, unlabelled: Tensor) -> Matching:
    """Match labelled to unlabelled prototypes one to one by least total distance (Eqs. 2-3).

    Parameters
    ----------
    labelled : Tensor of shape [M, d]
    unlabelled : Tensor of shape [K, d]

    Returns
    -------
    Matching
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    cost = distances(labelled, unlabelled).cpu().numpy()
    _, matched = linear_sum_assignment(cost)
    novel = np.setdiff1d(np.arange(cost.shape[1]), matched)
    return Matching(np.asarray(matched, np.int64), novel.astype(np.int64), cost)


def align_centroids(previous: Tensor, new: Tensor) -> np.ndarray:
    """Return the order [K] in which the new centroids match the previous ones.

    The matching is one to one by least total distance; `new[order]` is numbered like `previous`.
    """
    return match_prototypes(previous, new).matched


def moving_average(old: Tensor, new: Tensor, momentum: float) -> Tensor:
    """Return momentum * old + (1 - momentum) * new (Eq. 11)."""
    return momentum * old + (1 - momentum) * new
