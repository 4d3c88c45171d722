"""Nearest neighbours, compared with a loop and computed in blocks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.clustering.neighbours import nearest_neighbours, neighbour_count


@given(n=st.integers(2, 30), count=st.integers(1, 10), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_neighbours_equal_a_loop(n: int, count: int, seed: int) -> None:
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    found = nearest_neighbours(x, count)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        by_cosine = sorted(others, key=lambda j: -float(torch.cosine_similarity(x[i], x[j], dim=0)))
        assert found[i].tolist() == by_cosine[: min(count, n - 1)]


def test_block_size_does_not_change_the_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(50, 4)
    whole = nearest_neighbours(x, 5)
    monkeypatch.setattr("newfound.clustering.neighbours.BLOCK", 120)
    assert torch.equal(nearest_neighbours(x, 5), whole)


def test_neighbour_count_is_a_share_of_the_mean_category_size() -> None:
    assert neighbour_count(9003, 77, 0.4) == 47
    assert neighbour_count(18000, 20, 0.4) == 360
    assert neighbour_count(10, 9, 0.4) == 1
    assert neighbour_count(3, 1, 5.0) == 2
    assert neighbour_count(10**6, 20, 0.4) == 512  # limited, because memory grows with it
