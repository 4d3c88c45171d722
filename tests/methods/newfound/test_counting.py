"""Counting on blobs: the number and its range, from two passes of over-clustering."""

import numpy as np
import pytest
import torch
from support.blobs import DESIGNS, blobs, label
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.data.task import make_task
from newfound.methods import resolve_config
from newfound.methods.newfound import counting
from newfound.methods.newfound.counting import AGAIN, count_categories


def estimated(points: Tensor, targets: np.ndarray) -> Estimate:
    """Count the categories of points, and check what always holds."""
    names = [str(category) for category in range(targets.max() + 1)]
    task = make_task(["x"] * len(targets), targets, names, None, validation_share=0)
    estimate = count_categories(points, task, resolve_config("newfound", "fast", None), seed=0)
    assert estimate.low <= estimate.n_categories <= estimate.high
    assert estimate.n_categories in estimate.candidates
    assert estimate.n_categories >= max(len(names), 1)
    assert len(estimate.candidates) == len(estimate.scores)
    assert estimate.how.endswith(".")
    return estimate


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    "sizes",
    [[50] * 12, [12] * 10, [90, 60, 40, 20, 80, 50, 30, 20]],
    ids=["even", "small", "uneven"],
)
def test_estimate_finds_separate_blobs_with_labels_of_any_design(
    sizes: list[int], design: str
) -> None:
    points, truth = blobs(sizes)
    found = estimated(points, label(truth, len(sizes) // 2, design))
    assert found.n_categories == pytest.approx(len(sizes), abs=1)


def test_estimate_finds_separate_blobs_without_labels() -> None:
    points, truth = blobs([50] * 12)
    found = estimated(points, np.full(len(truth), -1))
    assert found.n_categories == pytest.approx(12, abs=1)
    assert "rough guide" in found.how


def test_absent_known_categories_do_not_change_what_is_found() -> None:
    """A third of the known categories have labelled texts only."""
    points, truth = blobs([10, 10, 50, 50, 50, 50, 50, 50, 50])
    targets = label(truth, 6, "ten per category")
    assert (targets[truth < 2] >= 0).all()
    found = estimated(points, targets)
    assert found.n_categories == pytest.approx(9, abs=1)


@pytest.mark.parametrize("texts", [8, 9, 13, 21, 40, 60])
@pytest.mark.parametrize("known", [0, 1, 3])
def test_tiny_tables_have_an_estimate(texts: int, known: int) -> None:
    points, truth = blobs([texts // 4] * 3 + [texts - 3 * (texts // 4)])
    estimated(points, label(truth, known, "one per category"))


def test_every_text_is_labelled_but_one() -> None:
    for known in (1, 4):
        points, truth = blobs([10] * known)
        targets = truth.copy()
        targets[3] = -1
        found = estimated(points, targets)
        assert found.n_categories == known
    assert estimated(points, truth).n_categories == 4


def test_categories_of_one_text() -> None:
    points, truth = blobs([1] * 8 + [20, 20])
    estimated(points, label(truth, 5, "one per category"))
    estimated(points, np.full(len(truth), -1))
    same = torch.ones(12, 4)  # texts that do not differ
    assert estimated(same, np.full(12, -1)).n_categories == 1


def test_small_tables_are_counted_several_times_and_the_median_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, truth = blobs([20] * 6)
    targets = label(truth, 3, "ten per category")
    started: list[int] = []
    numbers = iter([8, 11, 7, 9, 5, 6])  # three in each pass

    def estimate(*arguments: object, seed: int) -> Estimate:
        started.append(arguments[4])  # type: ignore[arg-type]
        k = next(numbers)
        return Estimate(k, [k], [1.0], k - 1, k + 1, "so.")

    monkeypatch.setattr(counting, "estimate_with_many_known", estimate)
    task = make_task(["x"] * len(truth), targets, ["0", "1", "2"], None, validation_share=0)
    config = resolve_config("newfound", "fast", None)
    found = count_categories(points, task, config, seed=0)
    assert (found.low, found.n_categories, found.high) == (4, 6, 10)  # of the second pass
    assert started[0] > 8
    assert started[3:] == [3 + AGAIN * (8 - 3)] * 3  # from twice the novel ones of the first
    monkeypatch.setattr(counting, "SMALL_TABLE", 10)
    numbers = iter([9, 7])
    assert count_categories(points, task, config, seed=0).n_categories == 7


def test_the_second_pass_begins_with_no_more_categories_than_texts_can_fill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, truth = blobs([5] * 4)
    started: list[int] = []
    real = counting.estimate_with_many_known

    def watched(*arguments: object, seed: int) -> Estimate:
        started.append(arguments[4])  # type: ignore[arg-type]
        return real(*arguments, seed=seed)  # type: ignore[arg-type]

    monkeypatch.setattr(counting, "estimate_with_many_known", watched)
    estimated(points, label(truth, 1, "one per category"))
    assert max(started[3:]) <= len(truth) // 3 + 1
