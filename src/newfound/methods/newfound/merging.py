"""The number of categories: cluster into far too many, then merge what the labels show to be one.

A weakly constrained clustering with too many categories leaves some of them empty and cuts others
in pieces. Two pieces of one category are neighbours of each other all over; two categories touch at
most at a border.

1. For each pair of categories, compute the mixing ratio: the share of neighbour links among their
   texts that cross between them, divided by the share that one mixed category of their sizes would
   have (`mixing_ratios`); and the cosine of their means.
2. Learn from the known categories when two clusters are one (`merge_rule`): from each known
   category cut in two, and from pairs of known categories (`known_samples`); and from their sizes
   what sizes tell about that (`category_sizes`).
3. Merge novel categories with known or novel ones, the largest score first, while it is above 0,
   and do not count novel categories of fewer than `MIN_SIZE` texts (`merge_path`).
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.clustering.halves import in_second_half
from newfound.clustering.prototypes import class_means
from newfound.methods.newfound.category_sizes import SizeLaw, size_law
from newfound.methods.newfound.merge_rule import (
    MIN_RATIO,
    TYPICAL,
    WITHOUT_LABELS,
    MergeRule,
    corrected,
    fit_merge_rule,
    pair_evidence,
)

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
LOWEST = -6.0  # score without offset down to which mergers are followed
AROUND = np.linspace(-2.5, 2.5, 51)  # scores around 0 at which mergers might have stopped
RANGE = 1.5  # score on either side that gives the range
UNSURE = 1.25  # the same without labels


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


def link_counts(neighbours: Tensor, labels: Tensor, k: int) -> Tensor:
    """Return how many neighbour links [K, K] go from texts of one category to another."""
    start = labels[:, None].expand_as(neighbours).reshape(-1)
    end = labels[neighbours].reshape(-1)
    return (start * k + end).bincount(minlength=k * k).view(k, k).double()


def mixing_ratios(links: Tensor, sizes: Tensor) -> Tensor:
    """Return the mixing ratio of each pair of categories [K, K], zero on the diagonal.

    For categories a and b with L links among them, n texts each: the share of links that cross,
    (L_ab + L_ba) / (L_aa + L_ab + L_ba + L_bb), divided by 2 n_a n_b / (n_a + n_b)^2, the share if
    links ended at random among the texts of both.

    Examples
    --------
    >>> import torch
    >>> links = torch.tensor([[5.0, 5.0], [5.0, 5.0]])
    >>> mixing_ratios(links, torch.tensor([10.0, 10.0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    crossing, inside = links + links.T, links.diagonal()
    share = crossing / (crossing + inside[:, None] + inside).clamp(min=1)
    both = (sizes[:, None] + sizes).clamp(min=1)
    ratios = share / (2 * sizes[:, None] * sizes / both.square()).clamp(min=1e-9)
    empty = sizes == 0
    return ratios.fill_diagonal_(0).masked_fill_(empty[:, None] | empty, 0)


def known_samples(
    points: Tensor, neighbours: Tensor, labels: Tensor, k: int, known: int, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the evidence on halves of known categories, and on pairs of them, both [.., 2].

    Of a category's pairs, those with its `RIVALS` most similar other known ones count.
    """
    centred = points - points.mean(0)
    sizes = labels.bincount(minlength=k).double()
    ratios = mixing_ratios(link_counts(neighbours, labels, k), sizes)
    pairs = pair_evidence(ratios, class_means(centred, labels, k))[:known, :known]
    cut = labels + k * in_second_half(points, labels, k, seed=seed)
    cut_sizes = cut.bincount(minlength=2 * k).double()
    cut_ratios = mixing_ratios(link_counts(neighbours, cut, 2 * k), cut_sizes)
    cut_pairs = pair_evidence(cut_ratios, class_means(centred, cut, 2 * k))
    large = torch.minimum(cut_sizes[:known], cut_sizes[k : k + known]) >= MIN_HALF
    number = torch.arange(known, device=points.device)
    one = cut_pairs[number, number + k][large]
    rivals = max(0, min(RIVALS, known - 1))
    similar = TYPICAL.score(pairs).fill_diagonal_(-np.inf).topk(rivals, dim=1).indices
    two = pairs[number[:, None], similar][sizes[:known] >= MIN_HALF].reshape(-1, 2)
    return one.cpu().numpy(), two.cpu().numpy()


def accuracy(rule: MergeRule, one: np.ndarray, two: np.ndarray, at: float = 0.0) -> float:
    """Return the balanced accuracy of a rule: `one` should score above `at`, `two` not."""
    merged, wrongly = (rule.score(torch.from_numpy(pairs)).numpy() > at for pairs in (one, two))
    return float(merged.mean() + (~wrongly).mean()) / 2


@dataclass(frozen=True)
class Merger:
    """One step of the merging."""

    score: float  # of the two categories, without the rule's offset
    given_up: int
    kept: int
    k: int  # categories left before this merger, small ones not counted


def merge_path(
    links: Tensor,
    sizes: Tensor,
    means: Tensor,
    known: int,
    rule: MergeRule,
    law: SizeLaw | None = None,
) -> tuple[list[Merger], int]:
    """Return the mergers down to the lowest score, and the number of categories after them.

    The pair with the largest score is merged first; a known category is never given up. A rule with
    a lower offset stops earlier on the same path.

    Parameters
    ----------
    links : Tensor of shape [K, K]
        Neighbour links between the categories, see `link_counts`.
    sizes : Tensor of shape [K]
    means : Tensor of shape [K, d]
        Means of the categories, less the mean of all texts.
    known : int
    rule : MergeRule
    law : SizeLaw, optional
        Sizes that categories have; without it, sizes do not count.
    """
    links, sizes, k = links.clone(), sizes.clone(), len(sizes)
    sums = means.double() * sizes[:, None]
    cosines = pair_evidence(mixing_ratios(links, sizes), means)[..., 1]
    is_known = torch.arange(k) < known
    rule, path = replace(rule, offset=0.0), list[Merger]()
    while True:
        count = max(1, int((is_known | (sizes >= MIN_SIZE)).sum()))
        ratios = mixing_ratios(links, sizes)
        scores = rule.score(torch.stack([ratios.clamp(min=MIN_RATIO).log(), cosines], dim=-1))
        if law is not None:
            scores += law.merge_scores(sizes)
        scores[ratios == 0], scores[:known] = -np.inf, -np.inf  # no link, empty, or known
        score, pair = float(scores.max()), int(scores.argmax())
        if score <= LOWEST:
            return path, count
        given_up, kept = divmod(pair, k)
        path.append(Merger(score, given_up, kept, count))
        links[kept] += links[given_up]
        links[:, kept] += links[:, given_up]
        links[given_up], links[:, given_up] = 0, 0
        sizes[kept] += sizes[given_up]
        sizes[given_up] = 0
        sums[kept] += sums[given_up]
        row = F.cosine_similarity(sums[kept][None], sums)
        cosines[kept], cosines[:, kept] = row, row


def stop_at(path: list[Merger], score: float) -> int:
    """Return how many mergers of a path precede the first one at or below a score."""
    return next((i for i, step in enumerate(path) if step.score <= score), len(path))


def estimate_by_merging(
    points: Tensor, neighbours: Tensor, labels: Tensor, targets: Tensor, k: int, *, seed: int
) -> Estimate:
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
    Estimate
    """
    known = int(targets.max()) + 1
    neighbours = neighbours[:, : link_number(len(labels), k)]
    one, two = known_samples(points, neighbours, labels, k, known, seed=seed)
    rule = fit_merge_rule(one, two) if len(one) else WITHOUT_LABELS
    # A few hundred categories at most: on the host, where single numbers are read quickly.
    links = link_counts(neighbours, labels, k).cpu()
    sizes = labels.bincount(minlength=k).double().cpu()
    means = class_means(points - points.mean(0), labels, k).cpu()
    law = size_law(labels, targets, known)
    path, last = merge_path(links, sizes, means, known, rule, law)

    def number(rule: MergeRule, at: float = 0.0) -> int:
        stop = stop_at(path, at - rule.offset)
        return path[stop].k if stop < len(path) else last

    if len(one):
        rule = corrected(rule, one, known, known / number(rule))
    k = number(rule)

    def support(at: float) -> float:
        return accuracy(rule, one, two, at) if len(one) and len(two) else float(np.exp(-(at**2)))

    curve: dict[int, float] = {k: support(0.0)}
    for at in AROUND:
        found = number(rule, at)
        curve[found] = max(support(at), curve.get(found, 0.0))
    if not len(one):
        how = (
            "no label tells when two clusters are one category, so a usual amount of mixing was "
            "taken; this is a rough guide."
        )
    else:
        how = "clusters that mix like the halves of one known category were merged"
        if len(two):
            how += (
                f"; this rule is right for {support(0.0):.0%} of the known categories and "
                f"their neighbours"
            )
        how += "."
    margin = RANGE if len(one) else UNSURE
    near = [number(rule, -margin), k, number(rule, margin)]
    candidates = sorted(curve)
    return Estimate(k, candidates, [curve[c] for c in candidates], min(near), max(near), how)
