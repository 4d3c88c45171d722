"""Lloyd's algorithm for k-means: one start at a time on a CPU, all starts at once on a GPU.

1. Assign every free point to its nearest centre. That is the centre with the largest
   `score = point . centre - |centre|^2 / 2`, so one matrix product does most of the work.
2. Move each centre to the mean of its points; move empty clusters to the farthest points.
3. Repeat until the centres no longer move.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Maximum elements of a points x centres block: 128 MB on a CPU, 256 MB (twice) on a GPU.
CPU_BLOCK = 2**25
GPU_BLOCK = 2**26
# Iterations between two checks of a GPU for convergence of all starts.
CHECK_EVERY = 4
# Empty clusters that a batched iteration refills per start; others wait for the next iteration.
REFILL = 8


@dataclass(frozen=True, eq=False)
class Clustering:
    """A partition of N points into K clusters.

    Attributes
    ----------
    centres : Tensor of shape [K, d]
    labels : Tensor of shape [N], int64
        Nearest centre of each point, or the cluster that it is pinned to.
    inertia : float
        Sum of squared distances of points to their centres.
    iterations : int
    """

    centres: Tensor
    labels: Tensor
    inertia: float
    iterations: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Free points to cluster, and the sums of pinned points per cluster.

    Pinned points never change cluster, so their contribution to each mean is constant and only
    their sums are needed.
    """

    points: Tensor  # [N, d] float32
    norms: Tensor  # [N] squared lengths
    pinned_sums: Tensor  # [K, d]
    pinned_counts: Tensor  # [K]
    pinned_norm: Tensor  # scalar: sum of squared lengths of the pinned points

    def pinned_inertia(self, centres: Tensor) -> Tensor:
        """Return the summed squared distances of pinned points to `centres` [..., K, d]."""
        cross = (self.pinned_sums * centres).sum((-2, -1))
        spread = (self.pinned_counts * centres.square().sum(-1)).sum(-1)
        return (self.pinned_norm - 2 * cross + spread).clamp_min(0)

    def smallest_distance(self) -> Tensor:
        """Return the squared distance below which two points are equal up to rounding."""
        return 1e-6 * self.norms.mean()


def one_start(
    problem: Problem,
    centres: Tensor,  # [K, d]
    *,
    max_iterations: int,
    tolerance: float,  # on the summed squared movement of the centres
    block: int = CPU_BLOCK,
    tick: Callable[[int], None] | None = None,
) -> Clustering:
    """Run Lloyd's algorithm from one set of centres, with incremental updates.

    Late iterations change few labels and move few centres. Sums are therefore updated only by the
    points that changed and, if all scores fit into one block, scores only for the centres that
    moved.

    Parameters
    ----------
    problem : Problem
    centres : Tensor of shape [K, d]
        Initial centres.
    max_iterations : int
    tolerance : float
        Stop when the summed squared movement of the centres is at most this.
    block : int
        Maximum elements of a block of scores.
    tick : callable, optional
        Called with the number of each iteration, from 0.

    Returns
    -------
    Clustering
    """
    points, norms = problem.points, problem.norms
    n, k = len(points), len(centres)
    width = min(n, max(1, block // k))
    scores = points.new_empty(k, width)
    labels = torch.zeros(n, dtype=torch.int64)
    best = torch.empty_like(norms)
    # In double precision, because they are updated in every iteration.
    sums, counts = problem.pinned_sums.double(), problem.pinned_counts.double()
    moved = torch.ones(k, dtype=torch.bool)
    converged = False
    iteration = 0
    while True:
        moved, changes = _assign(
            points, centres, scores, labels, best, sums, counts, moved, first=iteration == 0
        )
        if tick is not None:
            tick(iteration)
        if not changes or converged or iteration == max_iterations:
            break
        empty = counts <= 0
        means = (sums / torch.where(empty, 1.0, counts)[:, None]).float()
        updated = torch.where(empty[:, None], centres, means)
        if empty.any():
            distances = norms - 2 * best
            slots = empty.nonzero()[:, 0]
            far = distances.topk(min(len(slots), n)).indices
            far = far[distances[far] > problem.smallest_distance()]
            slots = slots[: len(far)]
            updated[slots] = points[far]
            moved[slots] = True
        converged = float((updated - centres).square().sum()) <= tolerance
        centres = updated
        iteration += 1
    inertia = (norms - 2 * best).clamp_min(0).sum() + problem.pinned_inertia(centres)
    return Clustering(centres, labels, float(inertia), iteration)


def _assign(
    points: Tensor,
    centres: Tensor,
    scores: Tensor,  # [K, width], kept between iterations when width == N
    labels: Tensor,  # [N], updated
    best: Tensor,  # [N], set to the scores of the nearest centres
    sums: Tensor,  # [K, d], updated
    counts: Tensor,  # [K], updated
    moved: Tensor,  # [K] bool: centres whose scores are out of date
    *,
    first: bool,
) -> tuple[Tensor, int]:
    """Assign points to centres; return the changed clusters and how many points changed."""
    n, k, width = len(points), len(centres), scores.shape[1]
    bias = -0.5 * centres.square().sum(1, keepdim=True)  # [K, 1]
    rows = moved.nonzero()[:, 0]
    everything = width < n or len(rows) == k
    touched = torch.zeros(k, dtype=torch.bool)
    changes = 0
    for begin in range(0, n, width):
        part = points[begin : begin + width]
        current = labels[begin : begin + width]
        block = scores[:, : len(part)]
        if everything:
            torch.addmm(bias, centres, part.T, out=block)
        else:
            block[rows] = torch.addmm(bias[rows], centres[rows], part.T)
        top = block.amax(0)
        best[begin : begin + width] = top
        if first:
            current.copy_(block.argmax(0))
            sums += torch.zeros_like(centres).index_add_(0, current, part)
            counts += current.bincount(minlength=k)
            touched.fill_(True)
            changes = n
            continue
        # A maximum without its index is much faster, and few points need the index.
        changed = (block.gather(0, current[None])[0] != top).nonzero()[:, 0]
        if len(changed):
            new, old = block[:, changed].argmax(0), current[changed]
            vectors = part[changed].double()
            sums.index_add_(0, new, vectors).index_add_(0, old, vectors, alpha=-1)
            counts += new.bincount(minlength=k) - old.bincount(minlength=k)
            current[changed] = new
            touched[new] = True
            touched[old] = True
            changes += len(changed)
    return touched, changes


def all_starts(
    problem: Problem,
    centres: Tensor,  # [S, K, d]
    *,
    max_iterations: int,
    tolerance: float,
    block: int = GPU_BLOCK,
    tick: Callable[[int], None] | None = None,
) -> Clustering:
    """Run Lloyd's algorithm from S sets of centres in one batch; return the best result.

    Only one flag is read from the device every few iterations. Starts that have converged continue
    until the last one has; further iterations do not change them.

    Parameters
    ----------
    problem : Problem
    centres : Tensor of shape [S, K, d]
        Initial centres of each start.
    max_iterations, tolerance, block, tick
        As for `one_start`.

    Returns
    -------
    Clustering
        The one with the lowest inertia.
    """
    points = problem.points
    smallest = problem.smallest_distance()
    refill = min(REFILL, len(points), centres.shape[1])
    running = torch.ones(len(centres), dtype=torch.bool, device=points.device)
    iterations = torch.zeros(len(centres), dtype=torch.int64, device=points.device)
    for iteration in range(max_iterations + 1):
        labels, distances, sums, counts = _assign_batch(problem, centres, block)
        if tick is not None:
            tick(iteration)
        empty = counts <= 0  # [S, K]
        means = sums / torch.where(empty, 1.0, counts)[..., None]
        # The i-th empty cluster of a start moves to its i-th farthest point.
        value, index = distances.topk(refill, dim=1)  # [S, refill]
        rank = empty.cumsum(1) - 1  # [S, K]
        usable = empty & (rank < refill)
        rank = rank.clamp(0, refill - 1)
        usable &= value.gather(1, rank) > smallest
        updated = torch.where(empty[..., None], centres, means)
        updated = torch.where(usable[..., None], points[index.gather(1, rank)], updated)
        iterations += running
        running = (updated - centres).square().sum((1, 2)) > tolerance  # [S]
        if iteration == max_iterations or (
            iteration % CHECK_EVERY == CHECK_EVERY - 1 and not bool(running.any())
        ):
            break
        centres = updated
    inertia = distances.sum(1) + problem.pinned_inertia(centres)  # [S]
    winner = int(inertia.argmin())
    return Clustering(
        centres[winner].clone(),
        labels[winner].clone(),
        float(inertia[winner]),
        int(iterations[winner].clamp_max(max_iterations)),
    )


def _assign_batch(
    problem: Problem, centres: Tensor, block: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return labels [S, N], squared distances [S, N], sums [S, K, d] and counts [S, K]."""
    points, norms = problem.points, problem.norms
    starts, k, d = centres.shape
    n = len(points)
    flat = centres.reshape(starts * k, d)
    bias = -0.5 * flat.square().sum(1)  # [S * K]
    labels = torch.empty(starts, n, dtype=torch.int64, device=points.device)
    best = torch.empty(starts, n, device=points.device)
    sums = problem.pinned_sums.repeat(starts, 1)  # [S * K, d]
    counts = problem.pinned_counts.repeat(starts)  # [S * K]
    width = max(1, block // (starts * k))
    for begin in range(0, n, width):
        part = points[begin : begin + width]
        scores = torch.addmm(bias, part, flat.T)  # [n, S * K]
        top, index = scores.view(-1, starts, k).max(2)  # [n, S]
        labels[:, begin : begin + width] = index.T
        best[:, begin : begin + width] = top.T
        # Sums as a product with one-hot rows: scattered additions are not deterministic on a GPU.
        chosen = scores.zero_().view(-1, starts, k).scatter_(2, index[..., None], 1.0)
        chosen = chosen.view(-1, starts * k)
        sums.addmm_(chosen.T, part)
        counts += chosen.sum(0)
    distances = (norms - 2 * best).clamp_min_(0)
    return labels, distances, sums.view(starts, k, d), counts.view(starts, k)
