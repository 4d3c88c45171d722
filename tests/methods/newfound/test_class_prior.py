"""The class prior against loops, and what it makes of even, uneven and absent categories."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.methods.newfound.class_prior import (
    UNTOLD,
    ClassPrior,
    estimate_class_prior,
    evenness,
    relative_sizes,
    size_variation,
    uniform_prior,
)


def quantile(values: list[float], share: float) -> float:
    """Return a quantile with linear interpolation between the sorted values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def occurring(sizes: list[float]) -> list[bool]:
    """Return which categories have at least a fifth of the median size."""
    positive = [size for size in sizes if size > 0]
    return [bool(positive) and size >= 0.2 * quantile(positive, 0.5) for size in sizes]


def relative_by_loop(labels: list[int], found: list[int]) -> list[float]:
    """Return what each known category's size is expected to be, in units of the mean."""
    occurs = occurring(found)
    kept = [c for c in range(len(labels)) if occurs[c]]
    ones = [1.0] * len(labels)
    if len(kept) < 3:
        return ones
    x, y = [math.log(labels[c]) for c in kept], [math.log(found[c]) for c in kept]
    x, y = [v - sum(x) / len(x) for v in x], [v - sum(y) / len(y) for v in y]
    spread_x, spread_y = (math.sqrt(sum(v * v for v in z) / len(z)) for z in (x, y))
    if min(spread_x, spread_y) < 0.05:
        return ones
    product = sum(a * b for a, b in zip(x, y, strict=True)) / len(x)
    correlation = product / (spread_x * spread_y)
    if correlation <= 0 or correlation**2 < 0.3:
        return ones
    mean = sum(labels[c] + 4 for c in kept) / len(kept)
    return [(count + 4) / mean for count in labels]


def variation_by_loop(sizes: list[float]) -> float | None:
    kept = [size for size, occurs in zip(sizes, occurring(sizes), strict=True) if occurs]
    if len(kept) < 3:
        return None
    return (quantile(kept, 0.75) - quantile(kept, 0.25)) / (1.349 * quantile(kept, 0.5))


def shares_by_loop(found: list[int], labels: list[int], weight: float) -> list[float]:
    """Return the prior of each category, one at a time; known ones are those with labels."""
    known = len(labels)
    occurs = occurring(found[:known])
    relative = [1.0] * known
    if evenness(variation_by_loop(found[:known]) or 0.0) >= 0.5:
        relative = relative_by_loop(labels, found[:known])
    whole = [found[c] + labels[c] for c in range(known) if occurs[c]]
    mean = sum(whole) / len(whole) if whole else 1.0
    sizes = []
    for c, size in enumerate(found):
        size = max(size, 1)
        even = mean
        if c < known:
            left = max(relative[c] * mean - labels[c], relative[c] * mean / 4)
            even = left if occurs[c] and size > left / 2 else size
        sizes.append(math.exp(weight * math.log(even) + (1 - weight) * math.log(size)))
    return [size / sum(sizes) for size in sizes]


def estimated(found: list[int], labels: list[int]) -> ClassPrior:
    """Return the prior where so many unlabelled and labelled texts are of each category."""
    assigned = torch.repeat_interleave(torch.tensor(found))
    own = torch.repeat_interleave(torch.tensor(labels, dtype=torch.int64))
    targets = torch.cat([torch.full((len(assigned),), -1), own])
    # What labelled texts were assigned must not matter.
    return estimate_class_prior(torch.cat([assigned, torch.zeros_like(own)]), targets, len(found))


def shares_of(prior: ClassPrior) -> Tensor:
    assert float(prior.shares.sum()) == pytest.approx(1)
    return prior.shares


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=30))
def test_size_variation_by_loop(sizes: list[int]) -> None:
    found, wanted = size_variation(np.array(sizes)), variation_by_loop(sizes)
    assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-9))


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_estimate_class_prior_by_loop(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=8))
    novel = data.draw(st.integers(0, 4))
    k = len(labels) + novel
    found = data.draw(st.lists(st.integers(0, 60), min_size=k, max_size=k))
    prior = estimated(found, labels)
    variation = variation_by_loop(found[: len(labels)])
    if variation is None:
        assert (prior.strength, prior.evenness) == (UNTOLD, None)
        torch.testing.assert_close(shares_of(prior), torch.full((k,), 1 / k))
        return
    weight = evenness(variation)
    if weight >= 0.5:
        relative = relative_by_loop(labels, found[: len(labels)])
        beyond = variation_by_loop([size / r for size, r in zip(found, relative, strict=False)])
        weight = max(weight, evenness(variation if beyond is None else beyond))
    assert prior.evenness == pytest.approx(weight)
    assert prior.strength == pytest.approx(0.2 + 0.7 * weight)
    wanted = torch.tensor(shares_by_loop(found, labels, weight))
    torch.testing.assert_close(shares_of(prior), wanted)


def test_size_variation_of_equal_and_of_different_sizes() -> None:
    assert size_variation(np.full(20, 50)) == 0
    rng = np.random.default_rng(0)
    drawn = rng.normal(100, 20, size=4000)
    assert size_variation(drawn) == pytest.approx(0.2, abs=0.02)
    assert size_variation(np.geomspace(10, 1000, 20)) > 1
    assert size_variation(np.array([50, 60])) is None  # two categories show nothing


def test_absent_and_overfull_categories_hardly_change_the_size_variation() -> None:
    sizes = np.array([48, 50, 52] * 5)
    assert size_variation(np.concatenate([sizes, np.zeros(7)])) == size_variation(sizes)
    assert size_variation(np.concatenate([sizes, [2, 3, 400]])) < 0.1


def test_evenness_falls_from_one_to_zero() -> None:
    values = [evenness(variation) for variation in (0.0, 0.1, 0.3, 0.45, 0.7, 2.0)]
    assert values == sorted(values, reverse=True)
    assert values[0] == 1
    assert values[1] > 0.99
    assert values[3] == 0.5
    assert values[-1] < 0.01


def test_equal_sizes_are_held_strongly() -> None:
    prior = estimated([36] * 6 + [20, 60], [4] * 6)
    assert prior.strength == pytest.approx(0.9)
    # 40 texts per category: 36 are left of a known one, and what was found of novel ones is moved.
    wanted = torch.tensor([36.0] * 6 + [40.0] * 2) / (6 * 36 + 80)
    torch.testing.assert_close(shares_of(prior), wanted)


def test_uneven_sizes_are_held_weakly_and_stay_as_they_were_found() -> None:
    found = [300, 100, 30, 10, 5, 200, 20, 8]
    prior = estimated(found, [10] * 5)
    assert prior.strength == pytest.approx(0.2, abs=0.01)
    torch.testing.assert_close(
        shares_of(prior), torch.tensor(found).float() / sum(found), rtol=0.05, atol=1e-3
    )


def test_sizes_that_labels_explain_are_held_strongly() -> None:
    labels = [28, 32, 36, 44, 52, 60]
    found = [9 * count for count in labels] + [300, 300]
    share, ten = estimated(found, labels), estimated(found, [10] * 6)
    assert share.strength > 0.89
    assert ten.strength < share.strength - 0.1
    shares = shares_of(share)
    # In proportion to the smoothed labels, less the labelled texts.
    mean = 10 * sum(labels) / 6
    left = [mean * (count + 4) / (sum(labels) / 6 + 4) - count for count in (28, 60)]
    assert float(shares[5] / shares[0]) == pytest.approx(left[1] / left[0], rel=0.02)


def test_relative_sizes_follow_labels_only_if_the_sizes_found_do() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(8, 30, size=40).astype(float)
    follows = relative_sizes(labels, 9 * labels * rng.uniform(0.7, 1.4, size=40))
    np.testing.assert_allclose(follows, (labels + 4) / (labels + 4).mean())
    assert (relative_sizes(labels, rng.permutation(9 * labels)) == 1).all()
    assert (relative_sizes(labels, 900 / labels) == 1).all()
    assert (relative_sizes(np.full(40, 10.0), 9 * labels) == 1).all()


def test_absent_known_categories_keep_a_small_share() -> None:
    found = [30] * 6 + [0, 0, 1] + [30] * 3
    prior = estimated(found, [10] * 9)
    assert prior.strength == pytest.approx(0.9)
    shares = shares_of(prior)
    assert (shares[6:9] > 0).all()
    assert float(shares[6:9].max()) < 0.05 * float(shares[0])
    torch.testing.assert_close(shares[:6], shares[:1].expand(6))


def test_a_labelled_archive_leaves_less_of_its_category_to_be_found() -> None:
    shares = shares_of(estimated([40, 40, 10, 40], [0 + 1, 1, 31]))
    assert float(shares[2]) < 0.5 * float(shares[0])


def test_without_labels_the_prior_is_uniform_and_of_medium_strength() -> None:
    prior = estimate_class_prior(torch.tensor([0] * 9 + [1]), torch.full((10,), -1), 4)
    assert (prior.strength, prior.evenness) == (UNTOLD, None)
    assert torch.equal(prior.shares, uniform_prior(4, 0.5).shares)
    assert torch.equal(prior.shares, torch.full((4,), 0.25))


@pytest.mark.parametrize(
    ("found", "labels"),
    [([1, 0], [7]), ([0, 0, 0], [3, 5]), ([1, 1, 1, 1], [1, 1]), ([0, 1, 0], [4, 4, 4])],
    ids=["one known category", "every text labelled", "single texts", "nothing novel"],
)
def test_tiny_tables_have_a_prior(found: list[int], labels: list[int]) -> None:
    prior = estimated(found, labels)
    assert (shares_of(prior) > 0).all()
    assert 0.2 <= prior.strength <= 0.9
