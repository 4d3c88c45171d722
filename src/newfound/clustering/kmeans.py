"""k-means on a CPU or a GPU, with greedy k-means++ and several starts.

`constrained_kmeans` is the semi-supervised form (Basu et al., ICML 2002), k-means with pinned
labels: labelled points stay in the cluster of their category.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from newfound.clustering.distances import full_precision, nearest
from newfound.clustering.kmeans_plus_plus import greedy_kmeans_plus_plus
from newfound.clustering.lloyd import Clustering, Problem, all_starts, one_start
from newfound.errors import InputError
from newfound.wording import plural

__all__ = ["Clustering", "constrained_kmeans", "kmeans", "nearest"]

# With more points than this, all starts run on a sample and the best continues on all points.
SAMPLE = 100_000
SAMPLE_PER_CLUSTER = 64

Progress = Callable[[int, int], None]


def kmeans(
    features: Tensor,
    k: int,
    *,
    starts: int = 10,
    seed: int = 0,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
    initial: Tensor | None = None,
    progress: Progress | None = None,
) -> Clustering:
    """Cluster features by k-means, on the device that they are on.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    k : int
        Number of clusters.
    starts : int
        Number of starts, of which the one with the lowest inertia is returned.
    seed : int
        Random seed of k-means++.
    max_iterations : int
    tolerance : float
        Stop when the centres move less, relative to the mean variance of the features, as in
        scikit-learn.
    initial : Tensor of shape [at most k, d], optional
        Initial centres; k-means++ adds the missing ones. With k of them there is one start.
    progress : callable, optional
        Called with the work done and the maximum work.

    Returns
    -------
    Clustering

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> labels = kmeans(points, 2).labels
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    targets = torch.full((len(features),), -1, dtype=torch.int64)
    return constrained_kmeans(
        features,
        k,
        targets,
        starts=starts,
        seed=seed,
        max_iterations=max_iterations,
        tolerance=tolerance,
        initial=initial,
        progress=progress,
    )


def constrained_kmeans(
    features: Tensor,
    k: int,
    targets: Tensor,
    *,
    starts: int = 10,
    seed: int = 0,
    max_iterations: int = 100,
    tolerance: float = 1e-4,
    initial: Tensor | None = None,
    progress: Progress | None = None,
) -> Clustering:
    """Cluster features by k-means with pinned labels.

    Clusters 0..M-1 are the M categories of `targets` and start at the means of their points;
    k-means++ chooses the other initial centres among the free points. Pinned points never change
    cluster, and their distances count towards the inertia.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    k : int
        Number of clusters.
    targets : Tensor of shape [N]
        Category that a point is pinned to, -1 for a free point.
    starts, seed, max_iterations, tolerance, initial, progress
        As for `kmeans`.

    Returns
    -------
    Clustering
    """
    with torch.no_grad(), full_precision(features.device):
        return _fit(
            features.detach().float().contiguous(),
            k,
            targets.to(features.device),
            starts=starts,
            seed=seed,
            max_iterations=max_iterations,
            tolerance=tolerance,
            initial=initial,
            progress=progress,
            batched=features.device.type != "cpu",
        )


def _fit(
    features: Tensor,
    k: int,
    targets: Tensor,
    *,
    starts: int,
    seed: int,
    max_iterations: int,
    tolerance: float,
    initial: Tensor | None,
    progress: Progress | None,
    batched: bool,
) -> Clustering:
    """Run `constrained_kmeans`; `batched` runs all starts at once."""
    n, d = features.shape
    n_free = int((targets < 0).sum())
    known = int(targets.max()) + 1 if n_free < n else 0
    _check(n_free, known, k, starts, max_iterations, initial, d)
    features, norms, origin = _centred(features)
    spread = float(norms.mean()) - float(features.mean(0).square().sum())  # summed variances
    problem, means = _problem(features, norms, targets, n_free, k, known)
    given = means
    if initial is not None:
        given = initial.detach().float().to(features.device) - origin
    result = _solve(
        problem,
        k,
        given,
        starts=starts if len(given) < k else 1,
        generator=torch.Generator().manual_seed(seed),
        max_iterations=max_iterations,
        tolerance=tolerance * max(spread, 0.0) / d,
        progress=progress,
        batched=batched,
    )
    labels = targets.clone()
    labels[targets < 0] = result.labels
    return Clustering(result.centres + origin, labels, result.inertia, result.iterations)


def _solve(
    problem: Problem,
    k: int,
    given: Tensor,  # [at most k, d], initial centres that k-means++ completes
    *,
    starts: int,
    generator: torch.Generator,
    max_iterations: int,
    tolerance: float,
    progress: Progress | None,
    batched: bool,
) -> Clustering:
    """Run k-means++ and Lloyd's algorithm `starts` times; on a sample first if points are many."""
    n = len(problem.points)
    size = max(SAMPLE, SAMPLE_PER_CLUSTER * k)
    sampled = len(given) < k and n > size
    small = _sample(problem, size, generator) if sampled else problem
    # The unit of work is one point in one iteration.
    share = len(small.points) * (max_iterations + 1)
    total = starts * share + (n * (max_iterations + 1) if sampled else 0)

    def report(before: int, points: int) -> Callable[[int], None]:
        def tick(iteration: int) -> None:
            if progress is not None:
                progress(before + points * (iteration + 1), total)

        return tick

    batch = partial(all_starts, max_iterations=max_iterations, tolerance=tolerance)
    single = partial(one_start, max_iterations=max_iterations, tolerance=tolerance)
    first_centres = greedy_kmeans_plus_plus(
        small.points, small.norms, k, given, starts, generator
    )  # [S, K, d]
    if not n:  # every point is pinned, and so is every centre
        means = problem.pinned_sums / problem.pinned_counts[:, None]
        best = Clustering(means, problem.norms.long(), float(problem.pinned_inertia(means)), 0)
    elif batched:
        best = batch(small, first_centres, tick=report(0, starts * len(small.points)))
    else:
        runs = (
            single(small, centres, tick=report(i * share, len(small.points)))
            for i, centres in enumerate(first_centres)
        )
        best = min(runs, key=lambda run: run.inertia)
    if sampled:
        tick = report(starts * share, n)
        if batched:
            best = batch(problem, best.centres[None], tick=tick)
        else:
            best = single(problem, best.centres, tick=tick)
    if progress is not None:
        progress(total, total)
    return best


def _centred(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return points, their squared norms, and the origin, centred if that gains precision.

    If all points are far from the origin, squared distances are differences of large numbers. Only
    then is a centred copy worth its memory.
    """
    mean = features.mean(0)
    norms = torch.linalg.vector_norm(features, dim=1).square_()
    average = float(norms.mean())
    if not math.isfinite(average):
        raise ValueError("features must be finite")
    if 2 * float(mean.square().sum()) <= average:
        return features, norms, torch.zeros_like(mean)
    features = features - mean
    return features, torch.linalg.vector_norm(features, dim=1).square_(), mean


def _problem(
    features: Tensor, norms: Tensor, targets: Tensor, n_free: int, k: int, known: int
) -> tuple[Problem, Tensor]:
    """Return the problem of free points and sums of pinned ones, and the M class means."""
    if n_free == len(features):
        zeros = features.new_zeros(k, features.shape[1])
        problem = Problem(features, norms, zeros, zeros[:, 0], zeros[0, 0])
    else:
        free, pinned = targets < 0, targets >= 0
        # A product with one-hot rows is deterministic on a GPU, and labelled points are few.
        chosen = torch.nn.functional.one_hot(targets[pinned], k).to(features.dtype)
        counts = chosen.sum(0)
        if not bool((counts[:known] > 0).all()):
            raise ValueError("targets must use every category index from 0 to their largest")
        sums, length = chosen.T @ features[pinned], norms[pinned].sum()
        problem = Problem(features[free], norms[free], sums, counts, length)
    return problem, problem.pinned_sums[:known] / problem.pinned_counts[:known, None]


def _sample(problem: Problem, size: int, generator: torch.Generator) -> Problem:
    """Return a sample of `size` free points; pinned points are weighted down in proportion."""
    n = len(problem.points)
    index = torch.randperm(n, generator=generator)[:size].sort().values.to(problem.points.device)
    part = size / n
    return Problem(
        problem.points[index],
        problem.norms[index],
        problem.pinned_sums * part,
        problem.pinned_counts * part,
        problem.pinned_norm * part,
    )


def _check(
    free: int,
    known: int,
    k: int,
    starts: int,
    max_iterations: int,
    initial: Tensor | None,
    d: int,
) -> None:
    """Raise an error if the arguments are impossible."""
    if starts < 1 or max_iterations < 1:
        raise ValueError("starts and max_iterations must be at least 1")
    if k < max(known, 1):
        raise InputError(
            f"{plural(k, 'category is', 'categories are')} asked for, but the labels already "
            f"name {known:,}; ask for at least {max(known, 1)}"
        )
    if k - known > free:
        raise InputError(
            f"{plural(k, 'category is', 'categories are')} asked for, but "
            f"{plural(free, 'unlabelled text')} and "
            f"{plural(known, 'known category', 'known categories')} make at most {free + known}; "
            "ask for fewer"
        )
    if initial is not None and not (initial.shape[1:] == (d,) and known <= len(initial) <= k):
        raise ValueError(f"initial must have shape {(k, d)} or less, not {tuple(initial.shape)}")
