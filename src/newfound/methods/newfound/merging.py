"""The number of categories: cluster into far too many, then merge what the labels show to be one.

A weakly constrained clustering (`class_prior.WEAK`) with too many categories leaves some of them
empty and cuts others in pieces. Two pieces of one category are neighbours of each other all over;
two categories touch at most at a border. How much is too much, the known categories show.

1. For each pair of categories, compute the mixing ratio: the share of neighbour links among their
   texts that cross between them, divided by the share that one mixed category of their sizes would
   have (`mixing_ratios`).
2. Choose the threshold above which two categories are one (`merge_threshold`), from the ratios of
   known categories cut in two (should be one) and of pairs of known categories (should be two).
   Where most categories are known, it is the ratio that separates the two samples best. Where few
   are, the nearest known category of each is not the nearest of all, and pairs look more distinct
   than categories are; there it is the median of the halves.
3. Merge novel categories with known or novel ones, the largest ratio first, while it is above the
   threshold, and drop novel categories of fewer than `MIN_SIZE` texts (`merge_categories`).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.clustering.prototypes import class_means
from newfound.clustering.split_merge import split_clusters

MAX_LINKS = 20  # links per text
TEXTS_PER_CATEGORY = 25  # unlabelled texts for each novel category to begin with
MOST_NOVEL = 100  # novel categories to begin with at most, or more than the known ones by `SPARE`,
SPARE = 40  # or one for each `TEXTS_OF_MANY` unlabelled texts
TEXTS_OF_MANY = 60
SMALL_CATEGORY = 5  # the same in a table so small that it would begin with few of them
FEW_NOVEL = 10  # novel categories that a small table begins with at most
MAX_WITHOUT_LABELS = 300  # categories to begin with where nothing is labelled
MIN_SIZE = 3  # texts of a novel category
MIN_HALF = 3  # texts in each half of a known category that is cut in two
RIVALS = 2  # most similar other known categories that each is compared with
THRESHOLDS = np.geomspace(0.02, 0.8, 60)
TYPICAL = 0.25  # threshold without labels
DISTANCE_COST = 0.02  # accuracy lost per squared logarithm away from it, with few categories
FEW = 10  # known categories below which that cost is not reduced
QUANTILE = 0.5  # of the ratios of halves, where pairs do not tell
MOST = 0.7  # share of known categories from which pairs alone decide
TYPICAL_WEIGHT = 3  # known categories that the typical threshold counts as beside them
RANGE = 1.5  # factor on the threshold that gives the range
UNSURE = 2.3  # the same without labels


@dataclass(frozen=True, eq=False)
class Merged:
    """Categories after merging."""

    labels: Tensor  # [N], -1 for texts of dropped categories
    k: int


def starting_number(known: int, unlabelled: int) -> int:
    """Return a number of categories that is far too high, but no higher than texts can fill.

    Examples
    --------
    >>> starting_number(known=58, unlabelled=8330)
    196
    >>> starting_number(known=3, unlabelled=50), starting_number(known=3, unlabelled=1)
    (13, 4)
    """
    novel = max(2, unlabelled // TEXTS_PER_CATEGORY, min(unlabelled // SMALL_CATEGORY, FEW_NOVEL))
    if known == 0:
        return min(max(4, novel), MAX_WITHOUT_LABELS, unlabelled)
    most = max(MOST_NOVEL, known + SPARE, unlabelled // TEXTS_OF_MANY)
    return known + min(novel, unlabelled, most)


def link_number(texts: int, k: int) -> int:
    """Return how many links each text has: no more than a category of mean size has texts.

    With more, the links of a small category would have to leave it, however well it is separated.

    Examples
    --------
    >>> link_number(texts=9003, k=156), link_number(texts=60, k=13)
    (20, 5)
    """
    return max(2, min(MAX_LINKS, round(texts / k)))


def mixing_ratios(crossing: Tensor, inside: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Return the mixing ratio of pairs of categories, zero where one of them is empty.

    For categories a and b with L links among them, n texts each: the share of links that cross,
    (L_ab + L_ba) / (L_aa + L_ab + L_ba + L_bb), divided by 2 n_a n_b / (n_a + n_b)^2, the share if
    links ended at random among the texts of both.

    Parameters
    ----------
    crossing, inside : Tensor
        Links of each pair that cross, L_ab + L_ba, and that do not, L_aa + L_bb.
    one, other : Tensor
        Texts of both categories of each pair.

    Examples
    --------
    >>> import torch
    >>> ten = torch.tensor([10.0])
    >>> mixing_ratios(ten, ten, ten, ten).tolist()
    [1.0]
    """
    share = crossing / (crossing + inside).clamp(min=1)
    mixed = 2 * one * other / (one + other).clamp(min=1).square()
    return (share / mixed.clamp(min=1e-9)).masked_fill_((one == 0) | (other == 0), 0)


def _ends(neighbours: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the categories that each neighbour link starts and ends in."""
    return labels[:, None].expand_as(neighbours).reshape(-1), labels[neighbours].reshape(-1)


@dataclass(frozen=True, eq=False)
class NovelLinks:
    """Neighbour links of the novel categories; known ones, which may be many, have no rows."""

    crossing: Tensor  # [K - M, K], links between a novel and any category, in both directions
    inside: Tensor  # [K], links within a category


def novel_links(neighbours: Tensor, labels: Tensor, k: int, known: int) -> NovelLinks:
    """Count the links that start or end in a novel category, and those within each category."""
    start, end = _ends(neighbours, labels)
    crossing = torch.zeros((k - known) * k, dtype=torch.int64, device=labels.device)
    for one, other in ((start, end), (end, start)):
        novel = one >= known
        pairs = (one[novel] - known) * k + other[novel]
        crossing += pairs.bincount(minlength=len(crossing))
    inside = start[start == end].bincount(minlength=k)
    return NovelLinks(crossing.view(k - known, k).double(), inside.double())


def known_samples(
    points: Tensor, neighbours: Tensor, labels: Tensor, k: int, known: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return mixing ratios of halves of known categories, and of pairs of known categories."""
    sizes = labels.bincount(minlength=k).double()
    unpinned = torch.zeros(len(points), dtype=torch.bool, device=points.device)
    halves = split_clusters(points, labels, class_means(points, labels, k), unpinned, seed=seed)
    second = labels[halves.in_second].bincount(minlength=k)[:known].double()
    first = sizes[:known] - second
    start, end = _ends(neighbours, labels)
    within = start == end
    crosses = (halves.in_second[:, None] != halves.in_second[neighbours]).reshape(-1)
    crossing = start[within & crosses].bincount(minlength=k)[:known].double()
    inside = start[within & ~crosses].bincount(minlength=k)[:known].double()
    one = mixing_ratios(crossing, inside, first, second)[torch.minimum(first, second) >= MIN_HALF]
    rivals = min(RIVALS, known - 1)
    if rivals <= 0:
        return one.cpu().numpy(), np.empty(0)
    two = _closest_pairs(start, end, sizes[:known], rivals)[sizes[:known] >= MIN_HALF]
    return one.cpu().numpy(), two.flatten().cpu().numpy()


def _closest_pairs(start: Tensor, end: Tensor, sizes: Tensor, count: int) -> Tensor:
    """Return the `count` largest mixing ratios [M, count] of each known category with another."""
    known = len(sizes)
    inside = start[(start == end) & (start < known)].bincount(minlength=known).double()
    chosen = (start < known) & (end < known) & (start != end)
    both = torch.cat([start[chosen] * known + end[chosen], end[chosen] * known + start[chosen]])
    pairs, crossing = both.unique(return_counts=True)  # only pairs with a link: there may be many
    one, other = pairs // known, pairs % known
    ratios = mixing_ratios(crossing.double(), inside[one] + inside[other], sizes[one], sizes[other])
    order = ratios.argsort(descending=True, stable=True)
    order = order[one[order].argsort(stable=True)]  # by category, the largest ratio first
    numbers = one.bincount(minlength=known)
    place = torch.arange(len(order), device=order.device)
    place -= (numbers.cumsum(0) - numbers)[one[order]]
    kept = order[place < count]
    largest = torch.zeros(known, count, dtype=torch.float64, device=sizes.device)
    largest[one[kept], place[place < count]] = ratios[kept]
    return largest


def separation(one: np.ndarray, two: np.ndarray, threshold: float) -> float:
    """Return the balanced accuracy of a threshold: `one` should lie above it, `two` below."""
    return float((one > threshold).mean() + (two <= threshold).mean()) / 2


def pairs_threshold(one: np.ndarray, two: np.ndarray) -> float:
    """Return the threshold that separates halves from pairs best, at best near the typical one."""
    if not len(one) or not len(two):
        return TYPICAL
    cost = DISTANCE_COST * min(1.0, FEW / len(one))
    scores = [separation(one, two, t) - cost * np.log(t / TYPICAL) ** 2 for t in THRESHOLDS]
    return float(THRESHOLDS[int(np.argmax(scores))])


def halves_threshold(one: np.ndarray) -> float:
    """Return the median of the halves' ratios, drawn to the typical threshold if they are few.

    Examples
    --------
    >>> halves_threshold(np.empty(0))
    0.25
    """
    if not len(one):
        return TYPICAL
    found = float(np.clip(np.quantile(one, QUANTILE), THRESHOLDS[0], THRESHOLDS[-1]))
    share = len(one) / (len(one) + TYPICAL_WEIGHT)
    return found**share * TYPICAL ** (1 - share)


def merge_threshold(one: np.ndarray, two: np.ndarray, known_share: float) -> float:
    """Return the threshold: by pairs as far as the categories are known, else by halves."""
    weight = min(1.0, known_share / MOST)
    return pairs_threshold(one, two) ** weight * halves_threshold(one) ** (1 - weight)


@dataclass(frozen=True)
class Merger:
    """One step of the merging."""

    ratio: float  # mixing ratio of the two categories
    given_up: int
    kept: int
    k: int  # categories left before this merger, small ones not counted


def merge_path(links: NovelLinks, sizes: Tensor, known: int) -> tuple[list[Merger], int]:
    """Return the mergers down to the lowest threshold, and the number of categories after them.

    The pair with the largest mixing ratio is merged first; a known category is never given up. A
    higher threshold stops earlier on the same path: before the first merger at or below it.

    Parameters
    ----------
    links : NovelLinks
        Neighbour links between the categories, see `novel_links`.
    sizes : Tensor of shape [K]
    known : int
    """
    crossing, inside = links.crossing.clone(), links.inside.clone()
    sizes, k = sizes.clone(), len(sizes)
    is_known = torch.arange(k) < known
    path: list[Merger] = []
    while True:
        count = max(1, int((is_known | (sizes >= MIN_SIZE)).sum()))
        if known == k:
            return path, count
        ratios = mixing_ratios(crossing, inside[known:, None] + inside, sizes[known:, None], sizes)
        ratios.diagonal(known).fill_(0)  # a category with itself
        ratio, pair = float(ratios.max()), int(ratios.argmax())
        if ratio <= THRESHOLDS[0]:
            return path, count
        row, kept = divmod(pair, k)
        given_up = known + row
        path.append(Merger(ratio, given_up, kept, count))
        inside[kept] += crossing[row, kept] + inside[given_up]
        if kept >= known:
            crossing[kept - known] += crossing[row]
        crossing[:, kept] += crossing[:, given_up]
        crossing[row], crossing[:, given_up], inside[given_up] = 0, 0, 0
        sizes[kept] += sizes[given_up]
        sizes[given_up] = 0


def stop_at(path: list[Merger], threshold: float) -> int:
    """Return how many mergers of a path precede the first one at or below a threshold."""
    return next((i for i, step in enumerate(path) if step.ratio <= threshold), len(path))


def merge_categories(labels: Tensor, sizes: Tensor, known: int, path: list[Merger]) -> Merged:
    """Apply mergers to the labels [N], and drop novel categories of fewer than `MIN_SIZE` texts.

    One category always stays.
    """
    k, sizes = len(sizes), sizes.clone()
    into = torch.arange(k)
    for step in path:
        into[into == step.given_up] = step.kept
        sizes[step.kept] += sizes[step.given_up]
        sizes[step.given_up] = 0
    stays = (torch.arange(k) < known) | (sizes >= MIN_SIZE)
    if not stays.any():
        stays[sizes.argmax()] = True
    number = torch.where(stays, stays.cumsum(0) - 1, -1)
    return Merged(number[into].to(labels.device)[labels], int(stays.sum()))


def estimate_by_merging(
    points: Tensor, neighbours: Tensor, labels: Tensor, targets: Tensor, k: int, *, seed: int
) -> tuple[Estimate, Merged]:
    """Estimate the number of categories from a clustering into far too many.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    neighbours : Tensor of shape [N, n]
        Nearest neighbours among the points, the nearest first; `link_number` of them are used.
    labels : Tensor of shape [N]
        Categories of a weakly constrained clustering into k; labelled texts have their own.
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    k, seed : int

    Returns
    -------
    Estimate, Merged
    """
    known = int(targets.max()) + 1
    neighbours = neighbours[:, : link_number(len(labels), k)]
    one, two = known_samples(points, neighbours, labels, k, known, seed=seed)
    # A few hundred novel categories at most: on the host, where single numbers are read quickly.
    links = novel_links(neighbours.cpu(), labels.cpu(), k, known)
    sizes = labels.bincount(minlength=k).double().cpu()
    path, last = merge_path(links, sizes, known)

    def number(at: float) -> int:
        stop = stop_at(path, at)
        return path[stop].k if stop < len(path) else last

    threshold = merge_threshold(one, two, known / number(halves_threshold(one)))
    merged = merge_categories(labels, sizes, known, path[: stop_at(path, threshold)])

    def support(at: float) -> float:
        if len(one) and len(two):
            return separation(one, two, at)
        return float(np.exp(-(np.log(at / TYPICAL) ** 2)))

    curve: dict[int, float] = {merged.k: support(threshold)}
    for candidate in THRESHOLDS:
        found = number(candidate)
        curve[found] = max(support(candidate), curve.get(found, 0.0))
    if not len(one):
        how = (
            "no label tells when two clusters are one category, so a usual amount of mixing was "
            "taken; this is a rough guide."
        )
    else:
        how = "clusters that mix like the halves of one known category were merged"
        if len(two):
            how += (
                f"; this rule is right for {support(threshold):.0%} of the known categories and "
                f"their neighbours"
            )
        how += "."
    factor = RANGE if len(one) else UNSURE
    near = [number(threshold / factor), merged.k, number(threshold * factor)]
    candidates = sorted(curve)
    estimate = Estimate(
        merged.k, candidates, [curve[c] for c in candidates], min(near), max(near), how
    )
    return estimate, merged
