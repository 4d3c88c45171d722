"""Estimate the number of categories, known and novel.

Labelled texts are a sample of the known categories, which gives the size of these categories:

1. Cluster the texts. Among the other texts in a labelled text's cluster, its cluster mates, the
   share with the same label is the labelling rate times the purity of the cluster; mates with
   another label measure the impurity (`mate_rates`).
2. The labelling rate gives the share of texts in known categories (`known_share`), and so their
   mean size.
3. The number of texts divided by that size is the number of categories.

The result hardly depends on the number of clusters, so no initial guess is needed. It assumes that
novel categories are on average as large as known ones, and that all known categories are labelled
at one rate. A fixed number of labels for categories of very unequal sizes makes it too high;
smaller novel categories make it too low.

If there are few labels, the estimate is combined with the number of clusters at which clusters
found in one half of the texts separate the other half best (`held_out_silhouette`).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.clustering.kmeans import kmeans

Progress = Callable[[int, int], None]

DIMENSIONS = 64  # principal components that are clustered
ITERATIONS = 10  # of k-means: rates and silhouettes do not need convergence
CLUSTER_RATIOS = (1.0, 1.25, 1.5)  # numbers of clusters, relative to a first estimate
# Clusterings per number of clusters: small tables are clustered repeatedly until this many texts
# are clustered in total, because a single clustering of them is noisy.
ENOUGH_TEXTS = 4500
MAX_REPEATS = 8
RESAMPLES = 400  # of the known categories, for the range
MAX_HALF = 3000  # texts in each half that a silhouette is computed on
SILHOUETTE_ERROR = 0.35  # standard error of the logarithm of a number found by silhouette
# Standard errors of the logarithm of the estimate by labels. Up to the first the silhouette is not
# used, from the second on it has its full weight, and between them a part of it.
LOW_ERROR, HIGH_ERROR = 0.2, 0.3


def overclustering_count(
    features: Tensor, k_start: int, *, share: float = 0.9, seed: int = 0
) -> int:
    """Return how many of `k_start` clusters exceed `share` of the mean size, as in the paper."""
    labels = kmeans(features, k_start, starts=1, seed=seed).labels
    sizes = torch.bincount(labels, minlength=k_start)
    return int((sizes > share * len(features) / k_start).sum())


def mate_rates(targets: Tensor, clusters: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the mean share of cluster mates with the same and with another label.

    The mates of a text with one of n labels of its category can have only the other n - 1, so the
    share with the same label is scaled by n / (n - 1).

    Parameters
    ----------
    targets : Tensor of shape [N]
        Labels, -1 where unlabelled.
    clusters : Tensor of shape [N]
    weights : Tensor of shape [R, M]
        Weight of each category, for R resamples.

    Returns
    -------
    own, other : Tensor of shape [R]
        Mean share of mates with the same label, and with another label.
    """
    known = targets >= 0
    table = torch.zeros(weights.shape[1], int(clusters.max()) + 1, dtype=torch.float64)
    ones = torch.ones(int(known.sum()), dtype=torch.float64)
    table.index_put_((targets[known], clusters[known]), ones, accumulate=True)  # [M, k]
    mates = (torch.bincount(clusters, minlength=table.shape[1]) - 1).clamp(min=1).double()  # [k]
    labelled = table.sum(1)  # [M]
    own = (table * (table - 1) / mates).sum(1) * labelled / (labelled - 1)  # [M]
    together = (weights @ table).square() - weights.square() @ table.square()  # [R, k]
    total = weights @ labelled  # [R]
    return weights @ own / total, (together / mates).sum(1) / total


def known_share(own: Tensor, other: Tensor, labelled: Tensor, known: int) -> Tensor:
    """Return the share p of texts in known categories, from the result of `mate_rates`.

    With `labelled` the labelled share of all texts, the labelling rate is labelled / p. A mate of
    another category is of a known one with probability (p - p/M) / (1 - p/M), so the rate is also
    own + other / that probability. Solving for p gives a fraction.

    Parameters
    ----------
    own, other : Tensor of shape [R]
        Mean share of cluster mates with the same label, and with another label.
    labelled : Tensor of shape [R]
        Labelled share of all texts.
    known : int
        Number M of known categories.

    Returns
    -------
    Tensor of shape [R]
    """
    others = 1 - 1 / known
    share = (labelled - other / others) / (own - other / (known * others)).clamp(min=1e-12)
    # Known categories have at least their labelled texts and at most all texts.
    return torch.minimum(torch.maximum(share, labelled), torch.ones_like(share))


def held_out_silhouette(train: Tensor, test: Tensor, k: int, seed: int) -> float:
    """Return the simplified silhouette of `test` [n, d] for centres from `train` [n, d].

    It is the mean of 1 - a / b, where a and b are the distances of a text to the nearest and the
    second nearest centre. With held-out texts, more clusters do not score higher by themselves.
    """
    centres = kmeans(train, k, starts=1, seed=seed, max_iterations=ITERATIONS).centres
    nearest = torch.cdist(test, centres).topk(2, largest=False).values  # [n, 2]
    return float((1 - nearest[:, 0] / nearest[:, 1].clamp(min=1e-12)).mean())


def estimate_categories(
    features: Tensor, targets: Tensor, *, seed: int = 0, progress: Progress | None = None
) -> Estimate:
    """Estimate the number of categories, known and novel.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    targets : Tensor of shape [N]
        Labels, -1 where unlabelled.
    seed : int
    progress : callable, optional
        Called with the number of clusterings done and in total.

    Returns
    -------
    Estimate
        At least the number of known categories, and at most one novel category for each unlabelled
        text.
    """
    targets = targets.cpu()
    known = int(targets.max()) + 1 if len(targets) else 0
    most = known + int((targets < 0).sum())
    features = features.detach().float()
    if most == known or len(targets) < 8 or float(features.var(0).sum()) < 1e-12:
        least = max(known, 1)
        how = "there is nothing to discover: all texts are labelled, or hardly any differ"
        return Estimate(least, [least], [1.0], least, least, how)
    points = principal_components(features, DIMENSIONS)
    kept = drop_single_labels(targets)
    counted = int(kept.max()) + 1
    if counted < 2:
        return _from_silhouette(points, known, most, seed, progress)
    return _from_labels(points, kept, counted, known, most, seed, progress)


def _from_labels(
    points: Tensor,
    targets: Tensor,
    counted: int,
    known: int,
    most: int,
    seed: int,
    progress: Progress | None,
) -> Estimate:
    """Estimate the number from labels, and combine it with the silhouette if they are few."""
    n = len(points)
    draws = torch.Generator().manual_seed(seed)
    weights = torch.empty(RESAMPLES, counted, dtype=torch.float64).exponential_(generator=draws)
    weights = torch.cat([torch.ones(1, counted, dtype=torch.float64), weights])  # [1 + R, M]
    weights *= counted / weights.sum(1, keepdim=True)
    labelled = weights @ torch.bincount(targets[targets >= 0]).double() / n  # [1 + R]

    repeats = min(MAX_REPEATS, max(1, ENOUGH_TEXTS // n))

    def numbers(clusters: list[int], first: int) -> Tensor:
        """Return estimates [1 + R] from the mean rates over numbers of clusters."""
        own, other = torch.zeros_like(labelled), torch.zeros_like(labelled)
        clusters = clusters * repeats
        for i, k in enumerate(clusters):
            k = max(2, min(k, n // 2))
            found = kmeans(points, k, starts=1, seed=seed + first + i, max_iterations=ITERATIONS)
            rates = mate_rates(targets, found.labels.cpu(), weights)
            own, other = own + rates[0] / len(clusters), other + rates[1] / len(clusters)
            if progress is not None:
                progress(first + i + 1, repeats * (1 + len(CLUSTER_RATIOS)))
        return counted / known_share(own, other, labelled, counted)

    start = float(numbers([max(round(1.25 * counted), round(math.sqrt(n / 2)))], 0)[0])
    found = numbers([round(ratio * start) for ratio in CLUSTER_RATIOS], repeats)
    spread = float(found[1:].log().std())
    how = (
        f"about {100 * counted / float(found[0]):.0f}% of the texts belong to the {counted} "
        "labelled categories, judging by how many texts in the same clusters are labelled; the "
        "novel categories are assumed to have the same mean size"
    )
    by_labels = float(found[0])
    if spread > LOW_ERROR:
        second = _from_silhouette(points, known, most, seed, None).n_categories
        weight = spread**2 / (SILHOUETTE_ERROR**2 + spread**2)
        weight *= min(1.0, (spread - LOW_ERROR) / (HIGH_ERROR - LOW_ERROR))
        found = ((1 - weight) * found.log() + weight * math.log(second)).exp()
        how += (
            f"; labels alone give {min(max(known, round(by_labels)), most)}, which is uncertain, "
            f"so it is averaged with {second}, the number at which clusters separate best"
        )
    found = found.clamp(min=known, max=most)
    best = round(float(found[0]))
    low, high = (round(float(found[1:].quantile(q))) for q in (0.05, 0.95))
    first, last = max(known, round(0.75 * min(low, best))), round(1.25 * max(high, best)) + 1
    candidates = sorted({best, *geometric_range(first, min(last, most), step=1.05)})
    candidates = [k for k in candidates if k <= most]
    scores = [float(((found[1:] / k).log().abs() < 0.05).double().mean()) for k in candidates]
    # The range includes the estimate by labels alone.
    ends = (low, high, best, min(max(known, round(by_labels)), most))
    return Estimate(best, candidates, scores, min(ends), max(ends), how + ".")


def _from_silhouette(
    points: Tensor, known: int, most: int, seed: int, progress: Progress | None
) -> Estimate:
    """Return the number of clusters with the highest held-out silhouette."""
    least, half = max(known, 2), min(len(points) // 2, MAX_HALF)
    if least > half:  # half of the texts cannot form as many clusters as categories are known
        how = "too few texts are unlabelled to tell whether there are more than the known ones."
        return Estimate(known, [known], [1.0], known, most, how)
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))
    first, second = points[order[:half]], points[order[half : 2 * half]]
    candidates = geometric_range(least, max(min(half // 3, 600), least + 1))
    candidates = [k for k in candidates if k <= min(half, most)]
    scores = []
    for i, k in enumerate(candidates):
        both = (
            held_out_silhouette(first, second, k, seed),
            held_out_silhouette(second, first, k, seed),
        )
        scores.append(sum(both) / 2)
        if progress is not None:
            progress(i + 1, len(candidates))
    scores = smoothed(scores)  # a single clustering is noisy
    best = max(range(len(scores)), key=lambda i: scores[i])
    close = [k for k, score in zip(candidates, scores, strict=True) if score > 0.97 * scores[best]]
    how = "clusters found in one half of the texts separate the other half best at this number."
    return Estimate(
        candidates[best],
        candidates,
        scores,
        close[0],
        close[-1],
        how,
        at_limit=len(candidates) > 2 and best == len(candidates) - 1,
    )


def smoothed(values: list[float]) -> list[float]:
    """Return the values averaged with their neighbours, weights 1, 2, 1; the ends repeat."""
    padded = [values[0], *values, values[-1]]
    return [(padded[i] + 2 * padded[i + 1] + padded[i + 2]) / 4 for i in range(len(values))]


def drop_single_labels(targets: Tensor) -> Tensor:
    """Return the targets without categories of a single label, the others renumbered."""
    known = targets >= 0
    counts = torch.bincount(targets[known])
    number = torch.where(counts > 1, (counts > 1).cumsum(0) - 1, -1)
    result = torch.full_like(targets, -1)
    result[known] = number[targets[known]]
    return result


def principal_components(features: Tensor, dimensions: int) -> Tensor:
    """Return the first principal components [N, dimensions], which are faster to cluster."""
    centred = features - features.mean(0)
    if centred.shape[1] <= dimensions:
        return centred
    directions = torch.linalg.eigh(centred.T @ centred).eigenvectors  # [d, d], ascending
    return centred @ directions[:, -dimensions:]


def geometric_range(low: int, high: int, step: float = 1.15) -> list[int]:
    """Return integers from `low` to `high`, each about `step` times the one before.

    Examples
    --------
    >>> geometric_range(10, 20)
    [10, 11, 13, 15, 17, 20]
    """
    steps = max(1, math.ceil(math.log(max(high, low + 1) / low) / math.log(step)))
    ratio = max(high, low + 1) / low
    return sorted({round(low * ratio ** (i / steps)) for i in range(steps + 1)})
