import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from newfound.clustering.metrics import (
    Scores,
    accuracy,
    bins_of_equal_size,
    bins_of_equal_width,
    calibration_error,
)

# Texts as (cluster, category) pairs, few enough values for brute force.
texts = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30)


def split(pairs: list[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    table = np.array(pairs, np.int64)
    return table[:, 0], table[:, 1]


def agreeing(predicted: NDArray[np.int64], truth: NDArray[np.int64], order: tuple[int, ...]) -> int:
    """Return how many texts are correct if cluster c is category order[c]."""
    return sum(order[int(p)] == int(t) for p, t in zip(predicted, truth, strict=True))


def best_mappings(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Return all optimal one-to-one mappings of five clusters to five categories."""
    scores = {order: agreeing(predicted, truth, order) for order in permutations(range(5))}
    return [order for order, score in scores.items() if score == max(scores.values())]


@given(texts, st.sets(st.integers(0, 4)))
def test_all_known_and_novel_come_from_one_optimal_matching(
    pairs: list[tuple[int, int]], known: set
) -> None:
    predicted, truth = split(pairs)
    scores = accuracy(predicted, truth, known)
    is_known = np.array([int(t) in known for t in truth])

    def percent(part: NDArray[np.bool_], order: tuple[int, ...]) -> float:
        if not part.any():
            return math.nan
        return 100 * agreeing(predicted[part], truth[part], order) / int(part.sum())

    # Equally good matchings may split the total differently into known and novel.
    possible = [
        [percent(part, order) for part in (is_known | True, is_known, ~is_known)]
        for order in best_mappings(predicted, truth)
    ]
    found = pytest.approx([scores.all, scores.known, scores.novel], nan_ok=True)
    assert any(found == parts for parts in possible)


@given(texts, st.sets(st.integers(0, 4)))
def test_all_is_the_weighted_mean_of_known_and_novel(
    pairs: list[tuple[int, int]], known: set
) -> None:
    predicted, truth = split(pairs)
    scores = accuracy(predicted, truth, known)
    share = np.mean([int(t) in known for t in truth])
    parts = [(share, scores.known), (1 - share, scores.novel)]
    assert scores.all == pytest.approx(sum(w * score for w, score in parts if w > 0))


@given(texts, st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_cluster_numbers_do_not_matter(
    pairs: list[tuple[int, int]], order: list[int], known: set
) -> None:
    predicted, truth = split(pairs)
    scores = accuracy(predicted, truth, known)
    renamed = accuracy(np.array(order)[predicted], truth, known)
    # Equally good matchings may split the total differently into known and novel.
    assert renamed.all == pytest.approx(scores.all)
    assert renamed.nmi == pytest.approx(scores.nmi)
    assert renamed.ari == pytest.approx(scores.ari)


def test_known_and_novel_are_not_matched_separately() -> None:
    # Cluster 0 contains both categories; it can be matched to "a" or "b", not to both.
    scores = accuracy([0, 0, 0, 0, 0], ["a", "a", "a", "b", "b"], {"a"})
    assert (scores.all, scores.known, scores.novel) == (60.0, 100.0, 0.0)


def test_labels_may_be_of_any_type() -> None:
    truth = np.array(["card", "card", "fee", "fee"], object)
    predicted = np.array(["x", "x", "y", "x"])
    assert accuracy(predicted, truth, ["card"]).to_dict() == pytest.approx(
        {"all": 75.0, "known": 100.0, "novel": 50.0, "nmi": 34.37110184854507, "ari": 0.0}
    )


def test_perfect_prediction_and_empty_parts() -> None:
    assert accuracy([3, 3, 1], [0, 0, 2], {0}) == Scores(100.0, 100.0, 100.0, 100.0, 100.0)
    with pytest.raises(ValueError, match="0 predictions"):
        accuracy([], [], set())
    with pytest.raises(ValueError, match="1 predictions cannot be scored against 2"):
        accuracy([1], [1, 2], set())


def test_calibration_error_equals_a_naive_loop() -> None:
    rng = np.random.default_rng(1)
    sure, right = rng.random(500), rng.random(500) < 0.6
    sure[0] = 1.0
    naive = 0.0
    for low in np.arange(10) / 10:
        inside = (sure >= low) & ((sure < low + 0.1) | ((low == 0.9) & (sure == 1)))
        naive += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert calibration_error(sure, right, bins_of_equal_width(sure)) == pytest.approx(naive)


def test_calibration_error_over_bins_of_equal_size() -> None:
    sure, right = np.repeat([0.5, 0.8, 1.0], 30), np.repeat([0, 1, 1], 30).astype(bool)
    bins = bins_of_equal_size(sure, 3)
    assert np.bincount(bins).tolist() == [30, 30, 30]
    assert calibration_error(sure, right, bins) == pytest.approx((0.5 + 0.2 + 0) / 3)
    # In one bin only the means differ.
    assert calibration_error(sure, right, bins_of_equal_size(sure, 1)) == pytest.approx(0.1)


def test_calibration_error_with_weights_and_without_texts() -> None:
    sure, right = np.repeat([0.5, 0.8, 1.0], 30), np.repeat([0, 1, 1], 30).astype(bool)
    weights = np.repeat([0.0, 1.0, 0.0], 30)
    bins = bins_of_equal_width(sure)
    assert calibration_error(sure, right, bins, weights) == pytest.approx(0.2)
    assert math.isnan(calibration_error(sure[:0], right[:0], bins[:0]))
