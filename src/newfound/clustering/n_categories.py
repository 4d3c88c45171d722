"""How many categories there are, known and novel together.

Labelled texts are a sample of their categories, and a sample tells how large the whole is. In any
clustering, the share of a labelled text's cluster mates that carry its own label is the labelling
rate times the purity of the cluster; mates with another label show what is lost to impurity. The
rate gives the mean size of a known category, and the number of texts divided by that size is the
number of categories. This holds for every number of clusters, fine or coarse, so nothing has to
be guessed first. It is right as far as novel categories are, on average, as large as known ones,
and as labels are a sample at one rate: a fixed number of labels for categories of very unequal
size makes it too high, smaller novel categories make it too low.

Where labels tell little, the number is taken at which clusters found in one half of the texts
separate the other half best.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.clustering.kmeans import kmeans

Progress = Callable[[int, int], None]

DIMENSIONS = 64  # clusterings run on this many principal components
ITERATIONS = 10  # of k-means: rates and silhouettes need no converged clusters
GRAINS = (1.0, 1.25, 1.5)  # numbers of clusters that labels are read from, in estimates
ENOUGH = 4500  # texts in clusterings of one grain: those of a small table are noisy, and quick
MOST_AGAIN = 8  # clusterings of one grain
RESAMPLES = 400  # of the known categories, for the range
HALF = 3000  # at most this many texts in each half that a silhouette is computed on
SILHOUETTE_ERROR = 0.35  # standard error of the logarithm of a number found by silhouette
SURE, UNSURE = 0.2, 0.3  # standard errors of the logarithm: up to the first labels alone decide,
# from the second on the silhouette has its whole say, and between them a part of it


def overclustering_count(
    features: Tensor, k_start: int, *, share: float = 0.9, seed: int = 0
) -> int:
    """Count the clusters above `share` of the mean size among `k_start`: the paper's way."""
    labels = kmeans(features, k_start, starts=1, seed=seed).labels
    sizes = torch.bincount(labels, minlength=k_start)
    return int((sizes > share * len(features) / k_start).sum())


def mate_rates(targets: Tensor, clusters: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Mean share of a labelled text's cluster mates with its own and with another label.

    `weights` [R, M] counts each category so many times; the result has one pair of rates a row.
    A category with n labels has only n - 1 for each of its texts to meet, so the own share is
    scaled by n / (n - 1): a rate of labelling, not of what is left of it.
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
    """Share p of all texts that belongs to known categories, from the rates of `mate_rates`.

    `labelled` is the labelled share of all texts, so the labelling rate is labelled / p. A mate of
    another category is of a known one with probability (p - p/M) / (1 - p/M), and the rate is
    own + other / that probability; the solution for p is a fraction.
    """
    others = 1 - 1 / known
    share = (labelled - other / others) / (own - other / (known * others)).clamp(min=1e-12)
    # Known categories hold at least their labelled texts and at most all texts.
    return torch.minimum(torch.maximum(share, labelled), torch.ones_like(share))


def held_out_silhouette(train: Tensor, test: Tensor, k: int, seed: int) -> float:
    """How much nearer texts are to their own centre than to the next, centres from others.

    Centres come from `train`, so that more clusters are not better by themselves.
    """
    centres = kmeans(train, k, starts=1, seed=seed, max_iterations=ITERATIONS).centres
    nearest = torch.cdist(test, centres).topk(2, largest=False).values  # [n, 2]
    return float((1 - nearest[:, 0] / nearest[:, 1].clamp(min=1e-12)).mean())


def estimate_categories(
    features: Tensor, targets: Tensor, *, seed: int = 0, progress: Progress | None = None
) -> Estimate:
    """Estimate how many categories `features` [N, d] hold; `targets` [N] is -1 where unlabelled.

    Never less than the known ones. `progress` is called with clusterings done and to do.
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
    """Read the number off the labelling rate; ask the silhouette too where labels are few."""
    n = len(points)
    draws = torch.Generator().manual_seed(seed)
    weights = torch.empty(RESAMPLES, counted, dtype=torch.float64).exponential_(generator=draws)
    weights = torch.cat([torch.ones(1, counted, dtype=torch.float64), weights])  # [1 + R, M]
    weights *= counted / weights.sum(1, keepdim=True)
    labelled = weights @ torch.bincount(targets[targets >= 0]).double() / n  # [1 + R]

    again = min(MOST_AGAIN, max(1, ENOUGH // n))

    def numbers(clusters: list[int], first: int) -> Tensor:
        """Estimates [1 + R] from clusterings into so many clusters, their rates averaged."""
        own, other = torch.zeros_like(labelled), torch.zeros_like(labelled)
        clusters = clusters * again
        for i, k in enumerate(clusters):
            k = max(2, min(k, n // 2))
            found = kmeans(points, k, starts=1, seed=seed + first + i, max_iterations=ITERATIONS)
            rates = mate_rates(targets, found.labels.cpu(), weights)
            own, other = own + rates[0] / len(clusters), other + rates[1] / len(clusters)
            if progress is not None:
                progress(first + i + 1, again * (1 + len(GRAINS)))
        return counted / known_share(own, other, labelled, counted)

    start = float(numbers([max(round(1.25 * counted), round(math.sqrt(n / 2)))], 0)[0])
    found = numbers([round(grain * start) for grain in GRAINS], again)
    spread = float(found[1:].log().std())
    how = (
        f"about {100 * counted / float(found[0]):.0f}% of the texts belong to the {counted} "
        "categories with labels, judging by how often their cluster mates are labelled; the "
        "others make up the rest at the same mean size"
    )
    by_labels = float(found[0])
    if spread > SURE:
        second = _from_silhouette(points, max(known, 2), seed, None).n_categories
        say = spread**2 / (SILHOUETTE_ERROR**2 + spread**2)
        say *= min(1.0, (spread - SURE) / (UNSURE - SURE))
        found = ((1 - say) * found.log() + say * math.log(second)).exp()
        how += (
            f"; labels alone say {max(known, round(by_labels))}, but too little to be sure, so "
            f"{second}, where clusters separate best, was weighed in"
        )
    found = found.clamp(min=known)
    best = round(float(found[0]))
    low, high = (round(float(found[1:].quantile(q))) for q in (0.05, 0.95))
    first, last = max(known, round(0.75 * min(low, best))), round(1.25 * max(high, best)) + 1
    candidates = sorted({best, *ladder(first, last, step=1.05)})
    scores = [float(((found[1:] / k).log().abs() < 0.05).double().mean()) for k in candidates]
    # What labels alone say stays possible, whatever was weighed in
    ends = (low, high, best, max(known, round(by_labels)))
    return Estimate(best, candidates, scores, min(ends), max(ends), how + ".")


def _from_silhouette(points: Tensor, least: int, seed: int, progress: Progress | None) -> Estimate:
    """Take the number of clusters that separates held-out texts best."""
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
    scores = smoothed(scores)  # one clustering is a noisy witness
    best = max(range(len(scores)), key=lambda i: scores[i])
    close = [k for k, score in zip(candidates, scores, strict=True) if score > 0.97 * scores[best]]
    how = "clusters found in one half of the texts separate the other half best at this number."
    return Estimate(candidates[best], candidates, scores, close[0], close[-1], how)


def smoothed(values: list[float]) -> list[float]:
    """Average each value with its neighbours, weights 1, 2, 1; the ends repeat themselves."""
    padded = [values[0], *values, values[-1]]
    return [(padded[i] + 2 * padded[i + 1] + padded[i + 2]) / 4 for i in range(len(values))]


def without_singles(targets: Tensor) -> Tensor:
    """Treat categories with a single label as unlabelled and number the others anew."""
    known = targets >= 0
    counts = torch.bincount(targets[known])
    number = torch.where(counts > 1, (counts > 1).cumsum(0) - 1, -1)
    result = torch.full_like(targets, -1)
    result[known] = number[targets[known]]
    return result


def principal(features: Tensor, dimensions: int) -> Tensor:
    """Project on the directions of largest variance: clustering is several times faster there."""
    centred = features - features.mean(0)
    if centred.shape[1] <= dimensions:
        return centred
    directions = torch.linalg.eigh(centred.T @ centred).eigenvectors  # [d, d], ascending
    return centred @ directions[:, -dimensions:]


def ladder(low: int, high: int, step: float = 1.15) -> list[int]:
    """Whole numbers from `low` to `high`, each about `step` times the one before."""
    rungs = max(1, math.ceil(math.log(max(high, low + 1) / low) / math.log(step)))
    ratio = max(high, low + 1) / low
    return sorted({round(low * ratio ** (i / rungs)) for i in range(rungs + 1)})
