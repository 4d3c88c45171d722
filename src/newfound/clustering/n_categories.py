"""Estimate the number of categories, known and novel together.

Labelled texts are a sample of their categories, from which the size of the whole can be estimated.

1. Cluster the texts by k-means, on principal components, with several numbers of clusters.
2. Compute the share of a labelled text's cluster mates that carry its own label. It is the
   labelling rate times the purity of the cluster, for any number of clusters. Mates with another
   label show what is lost to impurity.
3. The labelling rate gives the mean size of a known category. The number of texts divided by that
   size is the number of categories.
4. Resample the known categories for the range of the estimate.
5. Where labels are too few, also take the number at which clusters found in one half of the texts
   separate the other half best (held-out silhouette), and average the two.

The estimate assumes that novel categories are as large as known ones on average, and that labels
are a sample at one rate. A fixed number of labels for categories of very unequal size makes it too
high; smaller novel categories make it too low.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from newfound.clustering.kmeans import kmeans

Progress = Callable[[int, int], None]

DIMENSIONS = 64  # clusterings run on this many principal components
ITERATIONS = 10  # of k-means: rates and silhouettes need no converged clusters
FACTORS = (1.0, 1.25, 1.5)  # numbers of clusters to use, as multiples of a first estimate
REPEAT_TEXTS = 4500  # repeat a clustering until so many texts are clustered: small tables are noisy
MAX_REPEATS = 8
RESAMPLES = 400  # of the known categories, for the range
HALF = 3000  # at most this many texts in each half that a silhouette is computed on
SILHOUETTE_ERROR = 0.35  # standard error of the logarithm of a number found by silhouette
# Standard errors of the logarithm: up to the first labels alone decide, from the second on the
# silhouette has its full weight, and between them a part of it
CERTAIN, UNCERTAIN = 0.2, 0.3


@dataclass(frozen=True)
class Estimate:
    """An estimated number of categories, with its range and the curve behind it.

    Attributes
    ----------
    n_categories : int
        The estimate.
    candidates : list of int
        Numbers that were considered.
    scores : list of float
        Score of each candidate: support by the labels, or separation of held-out texts.
    low, high : int
        Range of the estimate.
    how : str
        One sentence for the user on how it was estimated.
    """

    n_categories: int
    candidates: list[int]
    scores: list[float]
    low: int
    high: int
    how: str

    def to_dict(self) -> dict[str, object]:
        """Return plain values for a JSON file."""
        return {
            "estimate": self.n_categories,
            "candidates": self.candidates,
            "scores": self.scores,
            "low": self.low,
            "high": self.high,
            "how": self.how,
        }


def overclustering_count(
    features: Tensor, k_start: int, *, share: float = 0.9, seed: int = 0
) -> int:
    """Count the clusters above `share` of the mean size among `k_start`, as the DPN paper does."""
    labels = kmeans(features, k_start, starts=1, seed=seed).labels
    sizes = torch.bincount(labels, minlength=k_start)
    return int((sizes > share * len(features) / k_start).sum())


def mate_rates(targets: Tensor, clusters: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean share of a labelled text's cluster mates with its own and another label.

    `weights` [R, M] weights the categories; the result has one pair of rates per row. A text of a
    category with n labels can meet only n - 1 of them, so the own share is scaled by n / (n - 1) to
    a labelling rate.
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
    """Return the share p of all texts that belongs to known categories, from `mate_rates`.

    `labelled` is the labelled share of all texts, so the labelling rate is labelled / p. A mate of
    another category is of a known one with probability (p - p/M) / (1 - p/M), and the rate is
    own + other / that probability; the solution for p is a fraction.
    """
    others = 1 - 1 / known
    share = (labelled - other / others) / (own - other / (known * others)).clamp(min=1e-12)
    # Known categories hold at least their labelled texts and at most all texts.
    return torch.minimum(torch.maximum(share, labelled), torch.ones_like(share))


def held_out_silhouette(train: Tensor, test: Tensor, k: int, seed: int) -> float:
    """Return the mean simplified silhouette of `test` [n, d] with k centres found in `train`.

    Centres come from other texts, so that more clusters are not better by themselves.
    """
    centres = kmeans(train, k, starts=1, seed=seed, max_iterations=ITERATIONS).centres
    nearest = torch.cdist(test, centres).topk(2, largest=False).values  # [n, 2]
    return float((1 - nearest[:, 0] / nearest[:, 1].clamp(min=1e-12)).mean())


def estimate_categories(
    features: Tensor, targets: Tensor, *, seed: int = 0, progress: Progress | None = None
) -> Estimate:
    """Estimate how many categories there are, known and novel together.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    seed : int
        Random seed.
    progress : callable, optional
        Called with the number of clusterings done and to do.

    Returns
    -------
    Estimate
        Never fewer than the known categories.

    Examples
    --------
    >>> import torch
    >>> centres = 20 * torch.eye(6)
    >>> noise = torch.randn(300, 6, generator=torch.Generator().manual_seed(0))
    >>> features = centres.repeat_interleave(50, 0) + noise
    >>> targets = torch.full((300,), -1)
    >>> for category in range(4):  # ten labels in each of four categories
    ...     targets[50 * category : 50 * category + 10] = category
    >>> estimate_categories(features, targets).n_categories
    6
    """
    targets = targets.cpu()
    known = int(targets.max()) + 1 if len(targets) else 0
    features = features.detach().float()
    if bool((targets >= 0).all()) or len(targets) < 8 or float(features.var(0).sum()) < 1e-12:
        least = max(known, 1)
        how = "there is nothing to discover: every text is labelled, or hardly any differ"
        return Estimate(least, [least], [1.0], least, least, how)
    points = principal(features, DIMENSIONS)
    kept = without_singles(targets)
    counted = int(kept.max()) + 1
    if counted < 2:
        return _from_silhouette(points, max(known, 2), seed, progress)
    return _from_labels(points, kept, counted, known, seed, progress)


def _from_labels(
    points: Tensor, targets: Tensor, counted: int, known: int, seed: int, progress: Progress | None
) -> Estimate:
    """Estimate by the labelling rate, and by the silhouette, too, where labels are few."""
    n = len(points)
    draws = torch.Generator().manual_seed(seed)
    weights = torch.empty(RESAMPLES, counted, dtype=torch.float64).exponential_(generator=draws)
    weights = torch.cat([torch.ones(1, counted, dtype=torch.float64), weights])  # [1 + R, M]
    weights *= counted / weights.sum(1, keepdim=True)
    labelled = weights @ torch.bincount(targets[targets >= 0]).double() / n  # [1 + R]

    repeats = min(MAX_REPEATS, max(1, REPEAT_TEXTS // n))

    def numbers(clusters: list[int], first: int) -> Tensor:
        """Return estimates [1 + R] from clusterings into so many clusters, rates averaged."""
        own, other = torch.zeros_like(labelled), torch.zeros_like(labelled)
        clusters = clusters * repeats
        for i, k in enumerate(clusters):
            k = max(2, min(k, n // 2))
            found = kmeans(points, k, starts=1, seed=seed + first + i, max_iterations=ITERATIONS)
            rates = mate_rates(targets, found.labels.cpu(), weights)
            own, other = own + rates[0] / len(clusters), other + rates[1] / len(clusters)
            if progress is not None:
                progress(first + i + 1, repeats * (1 + len(FACTORS)))
        return counted / known_share(own, other, labelled, counted)

    start = float(numbers([max(round(1.25 * counted), round(math.sqrt(n / 2)))], 0)[0])
    found = numbers([round(factor * start) for factor in FACTORS], repeats)
    spread = float(found[1:].log().std())
    how = (
        f"about {100 * counted / float(found[0]):.0f}% of the texts belong to the {counted} "
        "categories with labels, as estimated from how often texts in the same cluster are "
        "labelled; novel categories are assumed to have the same mean size"
    )
    by_labels = float(found[0])
    if spread > CERTAIN:
        second = _from_silhouette(points, max(known, 2), seed, None).n_categories
        weight = spread**2 / (SILHOUETTE_ERROR**2 + spread**2)
        weight *= min(1.0, (spread - CERTAIN) / (UNCERTAIN - CERTAIN))
        found = ((1 - weight) * found.log() + weight * math.log(second)).exp()
        how += (
            f"; labels alone give {max(known, round(by_labels))}, but they are few, so this was "
            f"averaged with {second}, where clusters separate best"
        )
    found = found.clamp(min=known)
    best = round(float(found[0]))
    low, high = (round(float(found[1:].quantile(q))) for q in (0.05, 0.95))
    first, last = max(known, round(0.75 * min(low, best))), round(1.25 * max(high, best)) + 1
    candidates = sorted({best, *ladder(first, last, step=1.05)})
    scores = [float(((found[1:] / k).log().abs() < 0.05).double().mean()) for k in candidates]
    # The estimate by labels alone stays in the range, whatever it was averaged with
    ends = (low, high, best, max(known, round(by_labels)))
    return Estimate(best, candidates, scores, min(ends), max(ends), how + ".")


def _from_silhouette(points: Tensor, least: int, seed: int, progress: Progress | None) -> Estimate:
    """Estimate by the number of clusters that separates held-out texts best."""
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))
    half = min(len(points) // 2, HALF)
    first, second = points[order[:half]], points[order[half : 2 * half]]
    candidates = ladder(min(least, half), max(min(half // 3, 600), least + 1))
    candidates = [k for k in candidates if k <= half]
    scores = []
    for i, k in enumerate(candidates):
        both = (
            held_out_silhouette(first, second, k, seed),
            held_out_silhouette(second, first, k, seed),
        )
        scores.append(sum(both) / 2)
        if progress is not None:
            progress(i + 1, len(candidates))
    scores = smoothed(scores)  # the score of a single clustering is noisy
    best = max(range(len(scores)), key=lambda i: scores[i])
    close = [k for k, score in zip(candidates, scores, strict=True) if score > 0.97 * scores[best]]
    how = "clusters found in one half of the texts separate the other half best at this number."
    return Estimate(candidates[best], candidates, scores, close[0], close[-1], how)


def smoothed(values: list[float]) -> list[float]:
    """Average each value with its neighbours, weights 1, 2, 1; the ends are repeated."""
    padded = [values[0], *values, values[-1]]
    return [(padded[i] + 2 * padded[i + 1] + padded[i + 2]) / 4 for i in range(len(values))]


def without_singles(targets: Tensor) -> Tensor:
    """Treat categories with a single label as unlabelled and renumber the others."""
    known = targets >= 0
    counts = torch.bincount(targets[known])
    number = torch.where(counts > 1, (counts > 1).cumsum(0) - 1, -1)
    result = torch.full_like(targets, -1)
    result[known] = number[targets[known]]
    return result


def principal(features: Tensor, dimensions: int) -> Tensor:
    """Project on the directions of largest variance, where clustering is several times faster."""
    centred = features - features.mean(0)
    if centred.shape[1] <= dimensions:
        return centred
    directions = torch.linalg.eigh(centred.T @ centred).eigenvectors  # [d, d], ascending
    return centred @ directions[:, -dimensions:]


def ladder(low: int, high: int, step: float = 1.15) -> list[int]:
    """Return whole numbers from `low` to `high`, each about `step` times the one before."""
    rungs = max(1, math.ceil(math.log(max(high, low + 1) / low) / math.log(step)))
    ratio = max(high, low + 1) / low
    return sorted({round(low * ratio ** (i / rungs)) for i in range(rungs + 1)})
