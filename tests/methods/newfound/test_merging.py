"""The number of categories by merging: each step against a loop, and on blobs."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.blobs import blobs
from torch import Tensor

from newfound.clustering.neighbours import nearest_neighbours
from newfound.clustering.prototypes import class_means
from newfound.methods.newfound.merge_rule import TYPICAL, WITHOUT_LABELS, MergeRule, pair_evidence
from newfound.methods.newfound.merging import (
    AROUND,
    LOWEST,
    MIN_SIZE,
    accuracy,
    estimate_by_merging,
    known_samples,
    link_counts,
    link_number,
    merge_path,
    mixing_ratios,
    starting_number,
    stop_at,
)


def linked(points: Tensor, labels: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the links between categories, and their sizes."""
    neighbours = nearest_neighbours(points, link_number(len(points), k))
    return link_counts(neighbours, labels, k), labels.bincount(minlength=k).double()


def path_of(points: Tensor, labels: Tensor, k: int, known: int) -> Any:
    """Return what `merge_path` returns by the rule without labels, and the sizes."""
    links, sizes = linked(points, labels, k)
    means = class_means(points - points.mean(0), labels, k)
    return *merge_path(links, sizes, means, known, WITHOUT_LABELS), sizes


def cut(truth: np.ndarray, blob: int, into: int) -> Tensor:
    """Return labels in which every second text of a blob is of another category."""
    labels = torch.from_numpy(truth).clone()
    rows = torch.where(labels == blob)[0]
    labels[rows[::2]] = into
    return labels


# Links and ratios.


@settings(deadline=None, max_examples=40)
@given(n=st.integers(2, 20), k=st.integers(1, 6), seed=st.integers(0, 999))
def test_link_counts_by_loop(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    neighbours, labels = rng.integers(n, size=(n, 4)), rng.integers(k, size=n)
    wanted = np.zeros((k, k))
    for text in range(n):
        for other in neighbours[text]:
            wanted[labels[text], labels[other]] += 1
    found = link_counts(torch.from_numpy(neighbours), torch.from_numpy(labels), k)
    np.testing.assert_array_equal(found.numpy(), wanted)


@settings(deadline=None, max_examples=60)
@given(k=st.integers(1, 6), seed=st.integers(0, 999))
def test_mixing_ratios_by_loop(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    links, sizes = rng.integers(0, 30, size=(k, k)), rng.integers(0, 20, size=k)
    links[sizes == 0], links[:, sizes == 0] = 0, 0
    found = mixing_ratios(torch.from_numpy(links).double(), torch.from_numpy(sizes).double())
    for a in range(k):
        for b in range(k):
            if a == b or sizes[a] == 0 or sizes[b] == 0:
                assert found[a, b] == 0
                continue
            crossing = links[a, b] + links[b, a]
            every = links[a, a] + crossing + links[b, b]
            share = crossing / every if every else 0.0
            mixed = 2 * sizes[a] * sizes[b] / (sizes[a] + sizes[b]) ** 2
            assert float(found[a, b]) == pytest.approx(share / mixed)


def test_halves_at_random_mix_as_one_and_separate_blobs_do_not() -> None:
    points, truth = blobs([60, 60, 60])
    links, sizes = linked(points, cut(truth, 0, into=3), 4)
    ratios = mixing_ratios(links, sizes)
    assert float(ratios[0, 3]) == pytest.approx(1, abs=0.15)
    assert float(ratios[1, 2]) < 0.05
    assert float(ratios[[0, 3], 1].max()) < 0.05


def test_links_stay_within_categories_however_small_they_are() -> None:
    points, truth = blobs([6] * 10)
    labels = torch.from_numpy(truth)
    links, sizes = linked(points, labels, 10)
    assert float(mixing_ratios(links, sizes).max()) < 0.3
    everywhere = link_counts(nearest_neighbours(points, 20), labels, 10)
    assert float(mixing_ratios(everywhere, sizes).max()) > 0.8


@pytest.mark.parametrize("known", [0, 1, 5, 200])
@pytest.mark.parametrize("unlabelled", [1, 2, 8, 60, 500, 9000, 100_000])
def test_starting_number_can_be_filled_by_the_texts(known: int, unlabelled: int) -> None:
    k = starting_number(known, unlabelled)
    assert max(known, 1) <= k <= known + unlabelled
    assert k <= max(300, 2 * known + 40, known + 100, known + unlabelled // 60)
    if unlabelled >= 60:
        assert k >= known + 10
    assert 2 <= link_number(known + unlabelled, k) <= 20


# What the known categories show.


def test_known_samples_are_high_for_halves_and_low_for_pairs() -> None:
    points, truth = blobs([40, 40, 40, 40, 2])
    labels = torch.from_numpy(truth)
    neighbours = nearest_neighbours(points, 10)
    one, two = known_samples(points, neighbours, labels, 5, 3, seed=0)
    assert one.shape == (3, 2)
    assert two.shape == (3 * 2, 2)  # the two most similar ones of each
    assert (one.min(0) > two.max(0)).all()  # the mixing ratio and the cosine
    single, nothing = known_samples(points, neighbours, labels, 5, 1, seed=0)
    assert (len(single), len(nothing)) == (1, 0)


def test_known_categories_too_small_to_cut_are_no_sample() -> None:
    points, truth = blobs([4, 2, 1, 40])
    labels = torch.from_numpy(truth)
    one, two = known_samples(points, nearest_neighbours(points, 3), labels, 4, 3, seed=0)
    assert len(one) == 0
    assert len(two) == 2  # of the first alone


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-4, 0), st.floats(-1, 1)), min_size=1, max_size=9),
    st.lists(st.tuples(st.floats(-4, 0), st.floats(-1, 1)), min_size=1, max_size=9),
    st.floats(-2, 2),
)
def test_accuracy_by_loop(one: list[Any], two: list[Any], at: float) -> None:
    def score(pair: tuple[float, float]) -> float:
        return TYPICAL.offset + TYPICAL.mixing * pair[0] + TYPICAL.cosine * pair[1]

    above = sum(score(pair) > at for pair in one) / len(one)
    below = sum(score(pair) <= at for pair in two) / len(two)
    found = accuracy(TYPICAL, np.array(one), np.array(two), at)
    assert found == pytest.approx((above + below) / 2)


# Merging.


def test_halves_of_one_blob_merge_and_two_blobs_stay() -> None:
    points, truth = blobs([40, 40, 40])
    labels = cut(truth, 2, into=3)
    path, last, _ = path_of(points, labels, 4, known=1)
    assert last == 3
    (step,) = path[: stop_at(path, -WITHOUT_LABELS.offset)]
    assert {step.given_up, step.kept} == {2, 3}
    assert step.k == 4


def test_a_piece_of_a_known_category_merges_into_it() -> None:
    points, truth = blobs([40, 40])
    labels = cut(truth, 0, into=2)
    path, _, _ = path_of(points, labels, 3, known=2)
    assert (path[0].given_up, path[0].kept) == (2, 0)


@settings(deadline=None, max_examples=40)
@given(k=st.integers(1, 8), known=st.integers(0, 8), seed=st.integers(0, 999))
def test_a_known_category_is_never_given_up(k: int, known: int, seed: int) -> None:
    known = min(known, k)
    rng = np.random.default_rng(seed)
    points = torch.from_numpy(rng.normal(size=(40, 3))).float()  # everything mixes
    labels = torch.from_numpy(rng.integers(k, size=40))
    path, last, sizes = path_of(points, labels, k, known)
    assert all(step.given_up >= known for step in path)
    numbers = [*(step.k for step in path), last]
    for step, number in zip([None, *path], numbers, strict=True):  # by a loop over categories
        if step is not None:
            sizes[step.kept] += sizes[step.given_up]
            sizes[step.given_up] = 0
        large = [c < known or sizes[c] >= MIN_SIZE for c in range(k)]
        assert number == max(1, sum(map(bool, large))) >= max(known, 1)


def test_a_lower_offset_stops_earlier_on_the_path() -> None:
    points, truth = blobs([30] * 6, spread=0.3)
    labels = torch.from_numpy(truth) * 2 + torch.arange(180) % 2
    path, _, _ = path_of(points, labels, 12, known=0)
    stops = [stop_at(path, score) for score in (LOWEST, *AROUND)]
    assert stops == sorted(stops, reverse=True)
    assert stops[0] == len(path) > stops[-1]


@settings(deadline=None, max_examples=30)
@given(k=st.integers(2, 8), known=st.integers(0, 3), seed=st.integers(0, 999))
def test_merge_path_by_loop(k: int, known: int, seed: int) -> None:
    """Each step merges the pair of largest score, recomputed from the texts of all categories."""
    known = min(known, k - 1)
    rng = np.random.default_rng(seed)
    points = torch.from_numpy(rng.normal(size=(60, 4)))
    labels = torch.from_numpy(rng.integers(k, size=60))
    neighbours = nearest_neighbours(points.float(), 6)
    rule, centred = MergeRule(0.0, 1.2, 2.0), points - points.mean(0)

    def scores(labels: Tensor) -> Tensor:
        sizes = labels.bincount(minlength=k).double()
        ratios = mixing_ratios(link_counts(neighbours, labels, k), sizes)
        found = rule.score(pair_evidence(ratios, class_means(centred, labels, k)))
        found[ratios == 0], found[:known] = -np.inf, -np.inf
        return found

    sizes = labels.bincount(minlength=k).double()
    means = class_means(centred, labels, k)
    path, _ = merge_path(link_counts(neighbours, labels, k), sizes, means, known, rule)
    for step in path:
        wanted = scores(labels)
        assert step.score == pytest.approx(float(wanted.max()))
        assert float(wanted[step.given_up, step.kept]) == pytest.approx(step.score)
        labels = torch.where(labels == step.given_up, step.kept, labels)
    assert float(scores(labels).max()) <= LOWEST


def test_novel_categories_of_few_texts_do_not_count_and_known_ones_do() -> None:
    sizes = torch.tensor([1.0, 2.0, 3.0, 2.0]).double()
    apart, means = torch.zeros(4, 4).double(), torch.eye(4)
    assert merge_path(apart, sizes, means, 1, WITHOUT_LABELS) == ([], 2)
    assert merge_path(apart, sizes, means, 2, WITHOUT_LABELS) == ([], 3)
    few = merge_path(apart[:2, :2], sizes[:2], means[:2], 0, WITHOUT_LABELS)
    assert few == ([], 1)  # one category there is
    assert MIN_SIZE == 3


# The estimate.


def test_a_clustering_into_too_many_is_merged_to_the_blobs() -> None:
    points, truth = blobs([40] * 8)
    labels = torch.from_numpy(np.where(truth >= 4, truth + 4 * (np.arange(320) % 2), truth))
    targets = torch.where(torch.arange(320) % 10 == 0, labels, -1)
    targets[labels >= 4] = -1
    unit = F.normalize(points, dim=1)
    neighbours = nearest_neighbours(unit, 20)
    estimate = estimate_by_merging(unit, neighbours, labels, targets, 12, seed=0)
    assert estimate.n_categories == 8
    assert "right for 100%" in estimate.how
