"""Greedy k-means++: where the starts of k-means begin."""

import math

import torch
from torch import Tensor

from newfound.clustering.distances import nearest

# Most elements of a candidates x points block: 128 MB.
BLOCK = 2**25


def greedy_seeds(
    points: Tensor,  # [N, d]
    norms: Tensor,  # [N] squared lengths
    k: int,
    given: Tensor,  # [M, d]
    starts: int,
    generator: torch.Generator,
) -> Tensor:  # [starts, k, d]
    """Complete the `given` centres [M, d] to k, once for each start, by greedy k-means++.

    Each step draws a few points with a chance that grows with the squared distance to the centres
    so far, and keeps the one that lowers the sum of these distances most. The starts go side by
    side: one wide matrix product is quicker than many narrow ones.
    """
    n, m = len(points), len(given)
    if m == k:
        return given.expand(starts, k, -1)
    trials = 2 + int(math.log(k))
    # Drawn on the CPU as integers, so that neither the device nor the grouping below matters.
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
            # Whole numbers, because a running sum of floats is not repeatable on a GPU.
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
