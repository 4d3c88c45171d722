"""Split every cluster in two: halves show how texts of one category mix."""

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.prototypes import class_means

POWER_ITERATIONS = 4  # towards the longest axis of a cluster
SPLIT_ITERATIONS = 8  # of 2-means in every cluster


def in_second_half(points: Tensor, labels: Tensor, k: int, *, seed: int) -> Tensor:
    """Run 2-means in every cluster at once, from a cut across its longest axis.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    labels : Tensor of shape [N]
        Cluster of each point.
    k : int
        Number of clusters.
    seed : int
        Random seed of the first axes.

    Returns
    -------
    Tensor of shape [N]
        Which points are in the second half of their cluster, bool.

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.1, 0.0]])
    >>> second = in_second_half(points, torch.zeros(4, dtype=torch.int64), 1, seed=0)
    >>> bool(second[0] == second[1] != second[2] == second[3])
    True
    """
    centres = class_means(points, labels, k)
    generator = torch.Generator().manual_seed(seed)
    offsets = points - centres[labels]
    axes = torch.randn(centres.shape, generator=generator).to(points.device)
    for _ in range(POWER_ITERATIONS):
        along = (offsets * axes[labels]).sum(1)
        axes = F.normalize(_sums(offsets * along[:, None], labels, k), dim=1)
    second = (offsets * axes[labels]).sum(1) > 0
    for _ in range(SPLIT_ITERATIONS):
        halves = labels + k * second
        first, other = class_means(points, halves, 2 * k).chunk(2)  # [K, d] each
        there = halves.bincount(minlength=2 * k)[k:] > 0  # [K]
        middle = (other.square().sum(1) - first.square().sum(1)) / 2
        nearer = (points * (other - first)[labels]).sum(1) > middle[labels]
        again = nearer & there[labels]
        if torch.equal(again, second):
            break
        second = again
    return second


def _sums(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Sum the points of each cluster [K, d]."""
    return points.new_zeros(k, points.shape[1]).index_add_(0, labels, points)
