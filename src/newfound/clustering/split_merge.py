"""Moves centres of k-means from where two share a category to where one covers two.

k-means ends where no centre gains by a small step, so a category may lie hidden in the cluster of a
similar one while another is cut in two. With labels this befalls novel categories most: known ones
have a centre from the beginning. What mends it is a large step: merge the two clusters that lose
least by it, and give the centre that this frees to the cluster that gains most when cut in two.

A known category is cut only if its second half is novel by what its neighbours' labels say
(`neighbours.known_odds`).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.kmeans import seeded_kmeans
from newfound.clustering.lloyd import Clustering
from newfound.clustering.prototypes import class_means

DIRECTIONS = 4  # power iterations towards the longest axis of a cluster
HALVINGS = 8  # iterations of 2-means in every cluster
ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Halves:
    """Every cluster cut in two, as k-means would with one more centre there."""

    first: Tensor  # [K, d], mean of the half that keeps the labelled points
    second: Tensor  # [K, d]
    in_second: Tensor  # [N] bool
    worth: Tensor  # [K], by how much the cut lowers the inertia


@dataclass(frozen=True)
class Move:
    """A centre that is freed by a merger, and the cluster that it goes to."""

    freed: int
    into: int  # takes over the points of the freed one
    cut: int


def relocate(
    features: Tensor, targets: Tensor, odds: Tensor, found: Clustering, *, seed: int = 0
) -> Clustering:
    """Improve a k-means of `features` [N, d] with pinned `targets` [N]; its inertia never rises.

    `odds` [N] are the log odds that a text is of a known category.
    """
    points = features.detach().float()
    for turn in range(ROUNDS):
        moves, halves = plan_moves(
            points, targets, odds, found.labels, found.centres, seed=seed + turn
        )
        better = None
        while moves and better is None:
            start = moved(found.centres, found.labels, halves, moves)
            tried = seeded_kmeans(points, len(start), targets, initial=start)
            better = tried if tried.inertia < found.inertia * (1 - 1e-5) else None
            moves = moves[: len(moves) // 2]  # the most promising come first
        if better is None:
            break
        found = better
    return found


def relocate_directions(
    features: Tensor, targets: Tensor, odds: Tensor, rows: Tensor, *, seed: int = 0
) -> Tensor | None:
    """The same for a classifier by cosines, once: its rows [K, d] after the moves; None: no move.

    features [N, d] are seen from the classifier's origin. A text belongs to its label's row, or to
    the one with the largest cosine.
    """
    points = F.normalize(features.detach().float(), dim=1)
    unit = F.normalize(rows.detach().float(), dim=1)
    labels = torch.where(targets >= 0, targets, (points @ unit.T).argmax(1))
    centres = class_means(points, labels, len(unit))
    moves, halves = plan_moves(points, targets, odds, labels, centres, seed=seed)
    if not moves:
        return None
    after = F.normalize(moved(centres, labels, halves, moves), dim=1)
    touched = [row for move in moves for row in (move.freed, move.into, move.cut)]
    unit[touched] = after[touched]
    return unit


def plan_moves(
    points: Tensor, targets: Tensor, odds: Tensor, labels: Tensor, centres: Tensor, *, seed: int
) -> tuple[list[Move], Halves]:
    """The moves that would lower the inertia, no cluster in two of them, cheapest merger first."""
    k = len(centres)
    known = int(targets.max()) + 1 if len(targets) else 0
    halves = cut_in_two(points, labels, centres, targets >= 0, seed=seed)
    worth = halves.worth.clone()
    worth[:known][second_odds(labels, odds, halves)[:known] >= 0] = 0
    costs = merge_costs(centres, labels.bincount(minlength=k))
    costs[:known] = float("inf")  # a known category keeps its centre
    worth, costs = worth.cpu(), costs.cpu()  # few numbers, read one by one
    cuts, used, moves = worth.argsort(descending=True).tolist(), set[int](), list[Move]()
    for pair in costs.flatten().argsort()[: 4 * k].tolist():
        freed, into = divmod(pair, k)
        if freed in used or into in used:
            continue
        cut = next((c for c in cuts if c not in used and c not in (freed, into)), None)
        if cut is None or not worth[cut] > costs[freed, into]:
            break
        moves.append(Move(freed, into, cut))
        used |= {freed, into, cut}
    return moves, halves


def moved(centres: Tensor, labels: Tensor, halves: Halves, moves: list[Move]) -> Tensor:
    """The centres [K, d] after the moves."""
    counts = labels.bincount(minlength=len(centres)).float()
    after = centres.clone()
    for move in moves:
        freed, into = (counts[cluster] * centres[cluster] for cluster in (move.freed, move.into))
        total = (counts[move.freed] + counts[move.into]).clamp(min=1)
        after[move.into] = (freed + into) / total
        after[move.cut] = halves.first[move.cut]
        after[move.freed] = halves.second[move.cut]
    return after


def merge_costs(centres: Tensor, counts: Tensor) -> Tensor:
    """By how much the inertia rises if two clusters become one [K, K]; infinite on the diagonal."""
    counts = counts.float()
    shares = counts[:, None] * counts / (counts[:, None] + counts).clamp(min=1)
    costs = shares * torch.cdist(centres, centres).square()
    return costs.fill_diagonal_(float("inf"))


def cut_in_two(
    points: Tensor, labels: Tensor, centres: Tensor, pinned: Tensor, *, seed: int
) -> Halves:
    """2-means in every cluster at once, from a cut across its longest axis.

    Pinned points [N] bool stay in the first half, wherever they lie.
    """
    k = len(centres)
    generator = torch.Generator().manual_seed(seed)
    offsets = points - centres[labels]
    axes = torch.randn(centres.shape, generator=generator).to(points.device)
    for _ in range(DIRECTIONS):
        along = (offsets * axes[labels]).sum(1)
        axes = F.normalize(_sums(offsets * along[:, None], labels, k), dim=1)
    along = (offsets * axes[labels]).sum(1)
    side = _sums(along[pinned, None], labels[pinned], k)[:, 0].sign()  # of the labelled ones
    second = (along * torch.where(side == 0, 1.0, -side)[labels] > 0) & ~pinned
    for _ in range(HALVINGS):
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


def second_odds(labels: Tensor, odds: Tensor, halves: Halves) -> Tensor:
    """The mean log odds [K] that the texts of each second half are of a known category."""
    chosen = torch.where(halves.in_second, labels, -1)
    return class_means(odds[:, None], chosen, len(halves.worth))[:, 0]


def _halves(
    points: Tensor, labels: Tensor, second: Tensor, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Means of the first and the second half of every cluster, and their sizes [2, K]."""
    halves = labels + k * second
    first, other = class_means(points, halves, 2 * k).chunk(2)
    return first, other, halves.bincount(minlength=2 * k).float().view(2, k)


def _sums(points: Tensor, labels: Tensor, k: int) -> Tensor:
    return points.new_zeros(k, points.shape[1]).index_add_(0, labels, points)
