"""The class prior against loops, and when labels are too few to estimate it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.methods.newfound.class_prior import (
    EVEN_WEIGHT,
    estimate_class_prior,
    size_variation,
    update_class_prior,
)


def prior_by_loop(targets: list[int], k: int) -> list[float]:
    """What each category should have of the texts without a label, one at a time."""
    n, known = len(targets), max(targets) + 1
    even = n / k
    counts = [sum(target == category for target in targets) for category in range(known)]
    mean = sum(count + 4 for count in counts) / known if known else 0
    whole = [even * (count + 4) / mean for count in counts]
    sizes = [max(size - count, size / 2) for size, count in zip(whole, counts, strict=True)]
    sizes += [even] * (k - known)
    return [size / sum(sizes) for size in sizes]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_estimate_class_prior_by_loop(data: st.DataObject) -> None:
    known = data.draw(st.integers(1, 4))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=known, max_size=known))
    free = data.draw(st.integers(1, 60))
    targets = [category for category, count in enumerate(counts) for _ in range(count)]
    targets = data.draw(st.permutations(targets + [-1] * free))
    k = known + data.draw(st.integers(0, 3))
    found = estimate_class_prior(torch.tensor(targets), k)
    torch.testing.assert_close(found, torch.tensor(prior_by_loop(targets, k)))
    assert float(found.sum()) == pytest.approx(1)


def test_class_prior_is_uniform_without_labels_or_if_they_are_not_used() -> None:
    even = torch.full((4,), 0.25)
    torch.testing.assert_close(estimate_class_prior(torch.full((9,), -1), 4), even)
    some = torch.tensor([0, 0, 0, 1, -1, -1])
    torch.testing.assert_close(estimate_class_prior(some, 4, from_labels=False), even)
    shares = estimate_class_prior(torch.tensor([0] * 8 + [1] * 2 + [-1] * 90), 4)
    # 8 labels against 2, smoothed by 4 each, on 50 of 100 texts: 33 and 17, less those with a label
    torch.testing.assert_close(shares[:2] * 90, torch.tensor([25 + 1 / 3, 14 + 2 / 3]))
    torch.testing.assert_close(shares[2:] * 90, torch.tensor([25.0, 25.0]))
    # Nearly all is labelled: half of each known category is assumed to be left.
    shares = estimate_class_prior(torch.tensor([0] * 45 + [1] * 45 + [-1] * 10), 4)
    torch.testing.assert_close(shares, torch.tensor([1.0, 1.0, 2.0, 2.0]) / 6)


def labelled_with(counts: list[int]) -> Tensor:
    """Targets with so many labels of each category, and ten texts without."""
    return torch.cat([torch.repeat_interleave(torch.tensor(counts)), torch.full((10,), -1)])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=30))
def test_size_variation_by_loop(counts: list[int]) -> None:
    mean = sum(counts) / len(counts)
    squares = sum((count - mean) ** 2 for count in counts)
    by_chance = len(counts) - 1
    wanted = (squares / by_chance - mean) / mean**2
    chance = 2 * math.sqrt(2 * by_chance)
    if squares / mean <= by_chance + chance:  # would 0.3 have shown?
        wanted = 0.0 if by_chance * mean * 0.3 > chance else EVEN_WEIGHT
    assert size_variation(labelled_with(counts)) == pytest.approx(wanted, abs=1e-9)


def test_few_labels_give_equal_weight_to_estimated_and_found_sizes() -> None:
    assert size_variation(torch.full((5,), -1)) == EVEN_WEIGHT
    assert size_variation(labelled_with([7])) == EVEN_WEIGHT
    assert size_variation(labelled_with([2] * 12)) == EVEN_WEIGHT
    assert size_variation(labelled_with([12] * 12)) == 0
    assert size_variation(labelled_with([1] * 11 + [20])) > 0.3
    shares = update_class_prior(
        torch.full((4,), 0.25), torch.tensor([0, 0, 0, 1, 1, 2, 2, 3]), EVEN_WEIGHT
    )
    torch.testing.assert_close(shares, torch.tensor([5.0, 4, 4, 3]) / 16)


def test_chance_alone_is_no_size_variation() -> None:
    draw = torch.Generator().manual_seed(0)
    found = []
    for _ in range(200):
        of_one_size = torch.poisson(torch.full((30,), 12.0), generator=draw).long() + 1
        found.append(size_variation(labelled_with(of_one_size.tolist())))
    assert sum(value > 0 for value in found) < 20
    assert size_variation(labelled_with([12] * 30)) == 0
    # Sizes of 1 to 9: the spread of sizes is told from that of chance
    sizes = torch.linspace(1, 9, 30)
    drawn_from = torch.poisson(5 * sizes, generator=draw).long() + 1
    true_spread = float(sizes.var() / sizes.mean() ** 2)
    assert size_variation(labelled_with(drawn_from.tolist())) == pytest.approx(true_spread, rel=0.3)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(0, 40), st.integers(0, 999), st.floats(0, 2))
def test_update_class_prior_by_loop(k: int, n: int, seed: int, variation: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    expected = torch.rand(k, generator=draw).double() + 0.1
    expected /= expected.sum()
    labels = torch.randint(k, (n,), generator=draw)
    shares = update_class_prior(expected, labels, variation)
    weight = variation / (variation + 0.1) if n and variation else 0.0
    counts = [max(1, sum(int(label) == c for label in labels)) for c in range(k)]
    for c in range(k):
        wanted = (1 - weight) * float(expected[c]) + weight * counts[c] / sum(counts)
        assert float(shares[c]) == pytest.approx(wanted)
    assert float(shares.sum()) == pytest.approx(1)
    assert torch.equal(update_class_prior(expected, labels, 0.0), expected)
