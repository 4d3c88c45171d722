"""Class means, matching and moving average, compared with loops and brute force."""

from collections.abc import Iterable
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.clustering.prototypes import (
    align_centroids,
    class_means,
    match_prototypes,
    moving_average,
)


def test_class_means_equal_a_loop() -> None:
    torch.manual_seed(0)
    features, targets = torch.randn(20, 3), torch.randint(-1, 4, (20,))
    found = class_means(features, targets, 5)
    for category in range(4):
        assert torch.allclose(found[category], features[targets == category].mean(0), atol=1e-6)
    assert torch.equal(found[4], torch.zeros(3))


@given(known=st.integers(1, 4), more=st.integers(0, 3), seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_matching_has_the_least_total_distance(known: int, more: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    labelled = torch.randn(known, 2, generator=generator)
    unlabelled = torch.randn(known + more, 2, generator=generator)
    found = match_prototypes(labelled, unlabelled)
    cost = torch.cdist(labelled, unlabelled).numpy()
    best = min(
        sum(cost[i, j] for i, j in enumerate(chosen))
        for chosen in permutations(range(known + more), known)
    )
    assert cost[np.arange(known), found.matched].sum() == pytest.approx(best, rel=1e-4, abs=1e-4)
    assert sorted(found.order.tolist()) == list(range(known + more))
    assert set(found.novel.tolist()).isdisjoint(found.matched.tolist())


def test_without_known_categories_all_are_novel() -> None:
    found = match_prototypes(torch.empty(0, 2), torch.randn(3, 2))
    assert found.novel.tolist() == [0, 1, 2]
    assert found.matched.tolist() == []


@given(k=st.integers(1, 5), seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_alignment_has_the_least_total_distance(k: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    previous, new = torch.randn(2, k, 3, generator=generator)
    order = align_centroids(previous, new)
    assert sorted(order.tolist()) == list(range(k))

    def total(chosen: Iterable[int]) -> float:
        return sum(float((previous[i] - new[j]).norm()) for i, j in enumerate(chosen))

    assert total(order) == pytest.approx(min(map(total, permutations(range(k)))), abs=1e-3)


@given(k=st.integers(1, 30), seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_alignment_undoes_a_renumbering(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    previous = torch.from_numpy(10.0 * np.eye(k))
    renumbered = rng.permutation(k)
    new = (previous + 0.1 * torch.from_numpy(rng.normal(size=(k, k))))[renumbered]
    assert renumbered[align_centroids(previous, new)].tolist() == list(range(k))


def test_eq_11_moving_average() -> None:
    old, new = torch.tensor([1.0, 2.0]), torch.tensor([3.0, -2.0])
    assert moving_average(old, new, 0.9).tolist() == pytest.approx([1.2, 1.6])
