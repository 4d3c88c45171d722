"""Greedy k-means++ (Arthur & Vassilvitskii, SODA 2007): the initial centres of k-means."""

import math

import torch
from torch import Tensor

from newfound.clustering.distances import nearest

# Maximum elements of a candidates x points block: 128 MB.
BLOCK = 2**25


def greedy_kmeans_plus_plus(
    points: Tensor,  # [N, d]
    norms: Tensor,  # [N] squared lengths
    k: int,
    given: Tensor,  # [M, d]
    starts: int,
    generator: torch.Generator,
) -> Tensor:  # [starts, k, d]
    """Choose initial centres by greedy k-means++.

    Each step draws a few points with probabilities proportional to their squared distance from the
    nearest centre so far, and keeps the point that lowers the sum of these distances most. All
    starts run at once, because one wide matrix product is faster than many narrow ones.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    norms : Tensor of shape [N]
        Squared lengths of the points.
    k : int
    given : Tensor of shape [M, d]
        Centres that every start begins with.
    starts : int
    generator : torch.Generator

    Returns
    -------
    Tensor of shape [starts, k, d]
    """
    n, m = len(points), len(given)
    if m == k:
        return given.expand(starts, k, -1)
    trials = 2 + int(math.log(k))
    # Integers from the CPU, so that results depend neither on the device nor on the grouping.
    draws = torch.randint(2**62, (starts, k, trials), generator=generator).to(points.device)
    group = max(1, BLOCK // (trials * n))
    centres = points.new_empty(starts, k, points.shape[1])
    centres[:, :m] = given
    for begin in range(0, starts, group):
        draw = draws[begin : begin + group]
        out = centres[begin : begin + group]
        each = torch.arange(len(draw), device=points.device)
        if m:
            closest = nearest(points, given)[1].repeat(len(draw), 1)  # [S, N]
        else:
            closest = torch.full((len(draw), n), torch.inf, device=points.device)
        for step in range(m, k):
            # Integers, because a cumulative sum of floats is not deterministic on a GPU.
            weights = closest / closest.amax(1, keepdim=True).clamp_min(1e-30)
            weights = weights.nan_to_num_(nan=1.0).mul_(2**30).long()
            running = weights.cumsum(1)
            aim = draw[:, step] % running[:, -1:].clamp_min(1)
            drawn = torch.searchsorted(running, aim, right=True).clamp_max_(n - 1)  # [S, trials]
            flat = drawn.view(-1)
            distances = torch.addmm(norms, points[flat], points.T, alpha=-2)  # [S * trials, N]
            distances += norms[flat, None]
            distances = distances.view(*drawn.shape, n)
            distances = torch.minimum(distances, closest[:, None], out=distances)
            chosen = distances.sum(2).argmin(1)  # [S]
            picked = drawn[each, chosen]
            closest = distances[each, chosen].clamp_min_(0)
            closest[each, picked] = 0
            out[:, step] = points[picked]
    return centres
