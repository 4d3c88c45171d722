"""Split-merge moves: gains and costs compared with loops, and the effect of moves."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.clustering.kmeans import constrained_kmeans, kmeans
from newfound.clustering.neighbours import nearest_neighbours
from newfound.clustering.split_merge import (
    merge_costs,
    moved,
    plan_moves,
    second_half_log_odds,
    split_clusters,
    split_merge,
    split_merge_directions,
)
from newfound.methods.newfound.known_prior import known_log_odds

CORNERS = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def blobs(centres: Tensor, each: int = 40, seed: int = 0, noise: float = 0.5) -> Tensor:
    """Return `each` points around every centre, in order of the centres."""
    draw = torch.Generator().manual_seed(seed)
    spread = noise * torch.randn(len(centres) * each, centres.shape[1], generator=draw)
    return centres.repeat_interleave(each, 0) + spread


def inertia(points: Tensor) -> float:
    return float((points - points.mean(0)).square().sum())


def drawn(seed: int, n: int = 40, k: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    """Return points, labels and the means of the clusters."""
    draw = torch.Generator().manual_seed(seed)
    points = torch.randn(n, 3, generator=draw)
    labels = torch.cat([torch.arange(k), torch.randint(k, (n - k,), generator=draw)])
    return points, labels, torch.stack([points[labels == c].mean(0) for c in range(k)])


# Gains, costs and moves.


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_gain_of_a_split_is_the_drop_in_inertia(seed: int) -> None:
    points, labels, centres = drawn(seed)
    pinned = torch.rand(len(points), generator=torch.Generator().manual_seed(seed)) < 0.2
    halves = split_clusters(points, labels, centres, pinned, seed=seed)
    assert not bool((halves.in_second & pinned).any())
    for c in range(len(centres)):
        first = points[(labels == c) & ~halves.in_second]
        second = points[(labels == c) & halves.in_second]
        if not len(first) or not len(second):
            assert float(halves.gain[c]) == 0
            continue
        torch.testing.assert_close(halves.first[c], first.mean(0))
        torch.testing.assert_close(halves.second[c], second.mean(0))
        saved = inertia(points[labels == c]) - inertia(first) - inertia(second)
        assert float(halves.gain[c]) == pytest.approx(saved, rel=1e-3, abs=1e-4)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_cost_of_a_merger_is_the_rise_in_inertia(seed: int) -> None:
    points, labels, centres = drawn(seed)
    costs = merge_costs(centres, labels.bincount())
    for i in range(len(centres)):
        for j in range(len(centres)):
            if i == j:
                assert float(costs[i, j]) == float("inf")
                continue
            apart = inertia(points[labels == i]) + inertia(points[labels == j])
            added = inertia(points[(labels == i) | (labels == j)]) - apart
            assert float(costs[i, j]) == pytest.approx(added, rel=1e-3, abs=1e-3)


def test_split_separates_two_blobs() -> None:
    points = blobs(CORNERS[:2])
    labels = torch.zeros(80, dtype=torch.int64)
    halves = split_clusters(points, labels, points.mean(0)[None], labels < 0, seed=0)
    assert halves.in_second[:40].all() != halves.in_second[40:].all()
    pinned = torch.arange(80) >= 70  # in the second blob, which must be the first half
    halves = split_clusters(points, labels, points.mean(0)[None], pinned, seed=0)
    assert halves.in_second.tolist() == [True] * 40 + [False] * 40


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_second_half_log_odds_equal_a_loop(seed: int) -> None:
    points, labels, centres = drawn(seed)
    odds = torch.randn(len(points), generator=torch.Generator().manual_seed(seed))
    halves = split_clusters(points, labels, centres, labels < 0, seed=seed)
    found = second_half_log_odds(labels, odds, halves)
    for c in range(len(centres)):
        inside = [float(odds[i]) for i in range(40) if halves.in_second[i] and labels[i] == c]
        wanted = sum(inside) / len(inside) if inside else 0.0
        assert float(found[c]) == pytest.approx(wanted, abs=1e-5)


def test_moves_change_only_their_clusters() -> None:
    points, labels, centres = drawn(3, k=5)
    free, odds = torch.full((40,), -1), torch.zeros(40)
    moves, halves = plan_moves(points, free, odds, labels, centres, seed=0)
    after = moved(centres, labels, halves, moves[:1])
    touched = {moves[0].freed, moves[0].into, moves[0].split}
    assert len(touched) == 3
    for c in range(5):
        assert torch.equal(after[c], centres[c]) == (c not in touched)
    both = points[(labels == moves[0].freed) | (labels == moves[0].into)]
    torch.testing.assert_close(after[moves[0].into], both.mean(0))


# split_merge and split_merge_directions.


def stuck(points: Tensor) -> Tensor:
    """Return centres of a local optimum: two in the last blob, none in the second."""
    return torch.stack([points[:80].mean(0), CORNERS[2], CORNERS[3] - 0.3, CORNERS[3] + 0.3])


def test_centre_moves_to_a_missing_cluster() -> None:
    points, free = blobs(CORNERS), torch.full((160,), -1)
    bad = kmeans(points, 4, initial=stuck(points))
    assert bad.inertia > 1000
    found = split_merge(points, free, torch.zeros(160), bad)
    assert found.inertia < 200
    assert sorted(found.labels.bincount().tolist()) == [40, 40, 40, 40]


def test_known_category_is_split_only_if_half_is_likely_novel() -> None:
    points = blobs(CORNERS)
    targets = torch.full((160,), -1)
    targets[:10] = 0  # labels in the first blob; the second is absorbed by its cluster
    bad = constrained_kmeans(points, 4, targets, initial=stuck(points))
    assert (bad.labels[:80] == 0).all()
    found = split_merge(
        points, targets, known_log_odds(points, nearest_neighbours(points, 15), targets), bad
    )
    assert (found.labels[:40] == 0).all()
    assert (found.labels[40:80] != 0).all()
    targets[40:50] = 0  # labels in both blobs: they are one category
    bad = constrained_kmeans(points, 4, targets, initial=stuck(points))
    found = split_merge(
        points, targets, known_log_odds(points, nearest_neighbours(points, 15), targets), bad
    )
    assert (found.labels[:80] == 0).all()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 999), st.integers(1, 6))
def test_inertia_never_rises(seed: int, k: int) -> None:
    points, labels, _ = drawn(seed)
    known = seed % (k + 1)  # none, some or all are known; `drawn` begins with one point of each
    targets = torch.where((torch.arange(40) < 12) & (labels < known), labels, -1)
    k = max(k, int(targets.max()) + 1)
    start = constrained_kmeans(points, k, targets, starts=1, seed=seed)
    odds = torch.randn(40, generator=torch.Generator().manual_seed(seed))
    found = split_merge(points, targets, odds, start, seed=seed)
    assert found.inertia <= start.inertia
    assert (found.labels[targets >= 0] == targets[targets >= 0]).all()
    assert found.centres.shape == start.centres.shape


def test_optimal_clustering_is_unchanged() -> None:
    points, free = blobs(CORNERS), torch.full((160,), -1)
    best = kmeans(points, 4, seed=1)
    again = split_merge(points, free, torch.zeros(160), best)
    assert torch.equal(again.labels, best.labels)
    one = kmeans(points, 1)
    assert torch.equal(split_merge(points, free, torch.zeros(160), one).centres, one.centres)


def test_same_seed_gives_the_same_result() -> None:
    points, _, _ = drawn(7, n=200)
    free = torch.full((200,), -1)
    start = kmeans(points, 12, starts=1, seed=3)
    one, same = (split_merge(points, free, torch.zeros(200), start, seed=5) for _ in range(2))
    assert torch.equal(one.centres, same.centres)


def test_classifier_directions_move_to_a_missing_cluster() -> None:
    axes = torch.eye(4)
    points = blobs(3 * axes, noise=0.2)
    free = torch.full((160,), -1)
    rows = torch.stack([axes[0] + axes[1], axes[2], axes[3] + 0.1, axes[3] - 0.1])
    assert (F.normalize(rows) @ F.normalize(points).T).argmax(0)[:80].unique().tolist() == [0]
    found = split_merge_directions(points, free, torch.zeros(160), rows)
    assert found is not None
    nearest = (found @ F.normalize(points).T).argmax(0)
    assert [nearest[i : i + 40].unique().numel() for i in range(0, 160, 40)] == [1, 1, 1, 1]
    assert nearest.unique().numel() == 4
    torch.testing.assert_close(found.norm(dim=1), torch.ones(4))
    assert split_merge_directions(points, free, torch.zeros(160), axes) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_result_equals_cpu() -> None:
    points, free, odds = blobs(CORNERS), torch.full((160,), -1), torch.zeros(160)
    bad = kmeans(points.cuda(), 4, initial=stuck(points).cuda())
    found = split_merge(points.cuda(), free.cuda(), odds.cuda(), bad)
    assert found.labels.is_cuda
    assert found.centres.is_cuda
    expected = split_merge(points, free, odds, kmeans(points, 4, initial=stuck(points)))
    assert torch.equal(found.labels.cpu(), expected.labels)
    axes = torch.eye(4)
    points = blobs(3 * axes, noise=0.2)
    rows = torch.stack([axes[0] + axes[1], axes[2], axes[3] + 0.1, axes[3] - 0.1])
    turned = split_merge_directions(points.cuda(), free.cuda(), odds.cuda(), rows.cuda())
    assert turned is not None
    expected_rows = split_merge_directions(points, free, odds, rows)
    assert expected_rows is not None
    torch.testing.assert_close(turned.cpu(), expected_rows)
