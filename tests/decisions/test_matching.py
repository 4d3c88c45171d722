"""Categories of two runs are matched by common texts, then by prototypes, never by names."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.decisions.matching import LEAST_SHARED, match_categories


def test_renumbered_categories_are_matched() -> None:
    old = np.repeat(np.arange(4), 5)
    new = np.array([2, 0, 3, 1])[old]
    assert match_categories(old, new, (4, 4)) == {0: 2, 1: 0, 2: 3, 3: 1}


def test_categories_with_few_common_texts_are_not_matched() -> None:
    old = np.zeros(12, int)
    new = np.repeat(np.arange(4), 3)  # one category fell into four
    assert match_categories(old, new, (1, 4)) == {}


def test_pinned_pairs_stay() -> None:
    old, new = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    assert match_categories(old, new, (2, 2), pinned={0: 1}) == {0: 1}


def test_texts_without_a_category_do_not_count() -> None:
    old, new = np.array([0, 0, -1, -1]), np.array([0, -1, 1, 0])
    assert match_categories(old, new, (1, 2)) == {0: 0}


def test_prototypes_match_what_has_no_common_text() -> None:
    old, new = np.array([0, 0]), np.array([0, 0])
    distances = np.array([[0.0, 5.0, 5.0], [5.0, 3.0, 1.0], [5.0, 1.5, 2.0]])
    found = match_categories(old, new, (3, 3), distances=distances)
    assert found == {0: 0, 1: 2, 2: 1}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30),
)
def test_pairs_share_as_many_texts_as_possible(pairs: list[tuple[int, int]]) -> None:
    old, new = np.array(pairs).T
    found = match_categories(old, new, (3, 3))

    def share(i: int, j: int) -> float:
        either = int(((old == i) | (new == j)).sum())
        return int(((old == i) & (new == j)).sum()) / either if either else 0.0

    best = max(sum(share(i, j) for i, j in enumerate(order)) for order in permutations(range(3)))
    assert sum(share(i, j) for i, j in found.items()) <= best + 1e-9
    assert all(share(i, j) >= LEAST_SHARED for i, j in found.items())
    assert len(set(found.values())) == len(found)
    for i in range(3):  # identical categories are always matched
        for j in range(3):
            if share(i, j) == pytest.approx(1):
                assert found[i] == j
