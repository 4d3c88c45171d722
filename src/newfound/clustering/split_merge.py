"""Split-merge moves for k-means and for a cosine classifier.

k-means stops where no centre gains by a small step, so one category may be absorbed by the cluster
of a similar one while another is split in two. With labels this affects novel categories most:
known ones have a centre from the beginning. A split-merge move escapes such a local optimum:

1. Split every cluster in two (2-means from a cut across its longest axis) and compute how much each
   split lowers the inertia. A known category is a candidate only if its second half is likely novel
   (mean log-odds below 0).
2. Compute how much each merger of two clusters raises the inertia. A known category keeps its
   centre.
3. Pair the cheapest mergers with the most valuable splits, as long as a move lowers the inertia; no
   cluster takes part in two moves.
4. Run k-means from the moved centres, and keep the result if its inertia is lower.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.lloyd import Clustering
from newfound.clustering.prototypes import class_means

POWER_ITERATIONS = 4  # towards the longest axis of a cluster
SPLIT_ITERATIONS = 8  # of 2-means in every cluster
MAX_MOVES = 6  # rounds of planning and trying moves


@dataclass(frozen=True, eq=False)
class Halves:
    """Every cluster split in two by 2-means."""

    first: Tensor  # [K, d], mean of the half with the labelled points
    second: Tensor  # [K, d]
    in_second: Tensor  # [N] bool
    gain: Tensor  # [K], decrease of the inertia by the split


@dataclass(frozen=True)
class Move:
    """A merger, which frees a centre, and the split that uses it."""

    freed: int
    into: int  # receives the points of the freed cluster
    split: int


def split_merge(
    features: Tensor, targets: Tensor, log_odds: Tensor, found: Clustering, *, seed: int = 0
) -> Clustering:
    """Improve a constrained k-means by split-merge moves; its inertia never rises.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    targets : Tensor of shape [N]
        Known category that a text is pinned to, -1 where unlabelled.
    log_odds : Tensor of shape [N]
        Log-odds that a text belongs to a known category.
    found : Clustering
        The k-means to start from.
    seed : int
        Random seed of the first axes.

    Returns
    -------
    Clustering
        A better clustering, or `found` itself.
    """
    points = features.detach().float()
    for turn in range(MAX_MOVES):
        moves, halves = plan_moves(
            points, targets, log_odds, found.labels, found.centres, seed=seed + turn
        )
        better = None
        while moves and better is None:
            start = moved(found.centres, found.labels, halves, moves)
            tried = constrained_kmeans(points, len(start), targets, initial=start)
            better = tried if tried.inertia < found.inertia * (1 - 1e-5) else None
            moves = moves[: len(moves) // 2]  # the most promising come first
        if better is None:
            break
        found = better
    return found


def split_merge_directions(
    features: Tensor, targets: Tensor, log_odds: Tensor, rows: Tensor, *, seed: int = 0
) -> Tensor | None:
    """Apply one pass of split-merge moves to the directions of a cosine classifier.

    A text belongs to its label's row, or to the row with the largest cosine.

    Parameters
    ----------
    features : Tensor of shape [N, d]
        Features relative to the classifier's origin.
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    log_odds : Tensor of shape [N]
        Log-odds that a text belongs to a known category.
    rows : Tensor of shape [K, d]
        Weights of the classifier.
    seed : int
        Random seed of the first axes.

    Returns
    -------
    Tensor of shape [K, d], or None
        Unit directions after the moves; None if no move lowers the inertia.
    """
    points = F.normalize(features.detach().float(), dim=1)
    unit = F.normalize(rows.detach().float(), dim=1)
    labels = torch.where(targets >= 0, targets, (points @ unit.T).argmax(1))
    centres = class_means(points, labels, len(unit))
    moves, halves = plan_moves(points, targets, log_odds, labels, centres, seed=seed)
    if not moves:
        return None
    after = F.normalize(moved(centres, labels, halves, moves), dim=1)
    touched = [row for move in moves for row in (move.freed, move.into, move.split)]
    unit[touched] = after[touched]
    return unit


def plan_moves(
    points: Tensor, targets: Tensor, log_odds: Tensor, labels: Tensor, centres: Tensor, *, seed: int
) -> tuple[list[Move], Halves]:
    """Plan moves that lower the inertia, no cluster in two of them, the cheapest merger first."""
    k = len(centres)
    known = int(targets.max()) + 1 if len(targets) else 0
    halves = split_clusters(points, labels, centres, targets >= 0, seed=seed)
    gains = halves.gain.clone()
    gains[:known][second_half_log_odds(labels, log_odds, halves)[:known] >= 0] = 0
    # A known category keeps its centre, so only novel ones have a row.
    costs = merge_costs(centres, labels.bincount(minlength=k), known)
    gains, costs = gains.cpu(), costs.cpu()  # few numbers, read one by one
    splits, used, moves = gains.argsort(descending=True).tolist(), set[int](), list[Move]()
    for pair in costs.flatten().argsort()[: 4 * k].tolist():
        freed, into = known + pair // k, pair % k
        if freed in used or into in used:
            continue
        split = next((c for c in splits if c not in used and c not in (freed, into)), None)
        if split is None or not gains[split] > costs[freed - known, into]:
            break
        moves.append(Move(freed, into, split))
        used |= {freed, into, split}
    return moves, halves


def moved(centres: Tensor, labels: Tensor, halves: Halves, moves: list[Move]) -> Tensor:
    """Return the centres [K, d] after the moves."""
    counts = labels.bincount(minlength=len(centres)).float()
    after = centres.clone()
    for move in moves:
        freed, into = (counts[cluster] * centres[cluster] for cluster in (move.freed, move.into))
        total = (counts[move.freed] + counts[move.into]).clamp(min=1)
        after[move.into] = (freed + into) / total
        after[move.split] = halves.first[move.split]
        after[move.freed] = halves.second[move.split]
    return after


def merge_costs(centres: Tensor, counts: Tensor, first: int = 0) -> Tensor:
    """Return how much merging each cluster from `first` on into another raises the inertia.

    The result has shape [K - first, K]; it is infinite for a cluster with itself.
    """
    counts = counts.float()
    own = counts[first:, None]
    shares = own * counts / (own + counts).clamp(min=1)
    costs = shares * torch.cdist(centres[first:], centres).square()
    costs.diagonal(first).fill_(float("inf"))
    return costs


def split_clusters(
    points: Tensor, labels: Tensor, centres: Tensor, pinned: Tensor, *, seed: int
) -> Halves:
    """Run 2-means in every cluster at once, from a cut across its longest axis.

    Points with `pinned` [N] True stay in the first half.
    """
    k = len(centres)
    generator = torch.Generator().manual_seed(seed)
    offsets = points - centres[labels]
    axes = torch.randn(centres.shape, generator=generator).to(points.device)
    for _ in range(POWER_ITERATIONS):
        along = (offsets * axes[labels]).sum(1)
        axes = F.normalize(_sums(offsets * along[:, None], labels, k), dim=1)
    along = (offsets * axes[labels]).sum(1)
    side = _sums(along[pinned, None], labels[pinned], k)[:, 0].sign()  # of the pinned points
    second = (along * torch.where(side == 0, 1.0, -side)[labels] > 0) & ~pinned
    for _ in range(SPLIT_ITERATIONS):
        first, other, counts = _halves(points, labels, second, k)
        middle = (other.square().sum(1) - first.square().sum(1)) / 2
        nearer = (points * (other - first)[labels]).sum(1) > middle[labels]
        again = nearer & ~pinned & (counts[1] > 0)[labels]
        if torch.equal(again, second):
            break
        second = again
    first, other, counts = _halves(points, labels, second, k)
    shares = counts[0] * counts[1] / counts.sum(0).clamp(min=1)
    return Halves(first, other, second, shares * (first - other).square().sum(1))


def second_half_log_odds(labels: Tensor, log_odds: Tensor, halves: Halves) -> Tensor:
    """Return the mean log-odds [K] that the texts of each second half are of a known category."""
    chosen = torch.where(halves.in_second, labels, -1)
    return class_means(log_odds[:, None], chosen, len(halves.gain))[:, 0]


def _halves(
    points: Tensor, labels: Tensor, second: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the means of both halves of every cluster, and their sizes [2, K]."""
    halves = labels + k * second
    first, other = class_means(points, halves, 2 * k).chunk(2)
    return first, other, halves.bincount(minlength=2 * k).float().view(2, k)


def _sums(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Sum the points of each cluster [K, d]."""
    return points.new_zeros(k, points.shape[1]).index_add_(0, labels, points)
