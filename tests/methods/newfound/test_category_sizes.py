"""Sizes of known categories as evidence for merging: by a loop, and as properties."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm

from newfound.methods.newfound.category_sizes import (
    LIMIT,
    MIN_KNOWN,
    NOISE,
    WEIGHT,
    SizeLaw,
    size_law,
)


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=6),
    mean=st.floats(1.0, 6.0),
    deviation=st.floats(0.2, 3.0),
)
def test_merge_scores_by_loop(sizes: list[int], mean: float, deviation: float) -> None:
    found = SizeLaw(mean, deviation).merge_scores(torch.tensor(sizes).double())
    density = lognorm(s=deviation, scale=math.exp(mean)).logpdf
    for i, a in enumerate(sizes):
        for j, b in enumerate(sizes):
            evidence = density(a + b) - math.log(a + b) - density(a) - density(b)
            wanted = float(np.clip(WEIGHT * evidence, -LIMIT, LIMIT))
            assert found[i, j].item() == pytest.approx(wanted, abs=1e-6)


def labelled(sizes: list[int], given: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Return categories of these sizes, and the targets of the first texts of each."""
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    first = torch.cat([torch.arange(size) < given for size in sizes])
    return labels, torch.where(first, labels, -1)


def test_halves_merge_and_whole_categories_do_not_where_sizes_are_even() -> None:
    law = size_law(*labelled([40] * 8), known=8)
    assert law is not None
    scores = law.merge_scores(torch.tensor([20.0, 20.0, 40.0, 40.0]))
    assert scores[0, 1] == LIMIT
    assert scores[2, 3] < -1


def test_sizes_tell_little_where_they_differ_widely() -> None:
    law = size_law(*labelled([5, 10, 20, 40, 80, 160, 320, 640]), known=8)
    assert law is not None
    scores = law.merge_scores(torch.tensor([20.0, 20.0, 40.0, 40.0]))
    assert scores.abs().max() < 0.7


def test_an_absent_category_does_not_count() -> None:
    """A known category with labels only says nothing about sizes."""
    even = size_law(*labelled([40] * 8), known=8)
    assert size_law(*labelled([40] * 8 + [2, 2, 2]), known=11) == even
    assert even is not None
    assert even.deviation == pytest.approx(NOISE)


def test_few_known_categories_give_no_law() -> None:
    assert size_law(*labelled([40] * (MIN_KNOWN - 1)), known=MIN_KNOWN - 1) is None
    assert size_law(torch.zeros(10, dtype=torch.int64), torch.full((10,), -1), known=0) is None
