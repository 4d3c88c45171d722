"""Clusters cut in two by 2-means."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.clustering.halves import in_second_half


def drawn(seed: int, n: int = 40, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points and labels."""
    draw = torch.Generator().manual_seed(seed)
    points = torch.randn(n, 3, generator=draw)
    return points, torch.cat([torch.arange(k), torch.randint(k, (n - k,), generator=draw)])


def test_two_blobs_of_one_cluster_are_separated() -> None:
    points, _ = drawn(0)
    points[20:] += 20
    labels = torch.zeros(40, dtype=torch.int64)
    second = in_second_half(points, labels, 1, seed=3)
    assert len(set(second[:20].tolist())) == len(set(second[20:].tolist())) == 1
    assert bool(second[0]) != bool(second[20])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_each_point_is_in_the_half_whose_mean_is_nearer(seed: int) -> None:
    """A fixed point of 2-means in every cluster, as far as the iterations came."""
    points, labels = drawn(seed)
    second = in_second_half(points, labels, 4, seed=seed)
    for cluster in range(4):
        own = labels == cluster
        if not (own & second).any() or not (own & ~second).any():
            continue
        means = torch.stack([points[own & ~second].mean(0), points[own & second].mean(0)])
        nearer = torch.cdist(points[own], means).argmin(1).bool()
        assert float((nearer == second[own]).float().mean()) >= 0.8


def test_the_same_seed_gives_the_same_halves() -> None:
    points, labels = drawn(5)
    one, again = (in_second_half(points, labels, 4, seed=1) for _ in range(2))
    assert torch.equal(one, again)


def test_clusters_of_one_point_stay_whole() -> None:
    points, _ = drawn(1, n=4)
    assert not in_second_half(points, torch.arange(4), 4, seed=0).any()
