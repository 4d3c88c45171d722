"""Calibrated probabilities: valid rows, the order of categories, what raises them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.clustering import calibration as module
from newfound.clustering.assignment import assign, probabilities, squared_distances
from newfound.clustering.calibration import (
    Evidence,
    answers,
    calibrated_probabilities,
    confidence,
)

LOG_ODDS = st.floats(-40, 40)
NEIGHBOURS = st.floats(-3.1, 3.1)
RANKS = st.floats(0, 1)


def drawn(n: int, k: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, Evidence]:
    rng = np.random.default_rng(seed)
    features, prototypes = rng.normal(size=(n, 4)), rng.normal(size=(k, 4))
    evidence = Evidence(rng.uniform(-3.1, 3.1, n), rng.uniform(0, 1, n))
    return scale * features, scale * prototypes, evidence


def one(log_odds: float, neighbours: float, rank: float) -> float:
    evidence = Evidence(np.array([neighbours]), np.array([rank]))
    return float(confidence(np.array([log_odds]), evidence)[0])


@given(LOG_ODDS, NEIGHBOURS, RANKS, st.floats(0, 3), st.floats(0, 1))
def test_confidence_rises_with_each_piece_of_evidence(
    log_odds: float, neighbours: float, rank: float, more: float, nearer: float
) -> None:
    value = one(log_odds, neighbours, rank)
    assert 0 < value < 1
    assert one(log_odds + more, neighbours, rank) >= value
    assert one(log_odds, neighbours + more, rank) >= value
    assert one(log_odds, neighbours, rank + nearer) >= value


def test_confidence_is_the_mean_of_both_opinions_with_labels_and_offset() -> None:
    for log_odds, neighbours, rank in ((1.0, 2.0, 0.25), (-9.0, 0.0, 0.0), (50.0, -1.0, 1.0)):
        total = (min(max(log_odds, -3), 3) + neighbours) / 2 + 1.25 * rank - 0.5
        assert one(log_odds, neighbours, rank) == pytest.approx(1 / (1 + np.exp(-total)))


@settings(deadline=None)
@given(
    st.integers(1, 20),
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.sampled_from([1e-2, 1.0, 30.0]),
    st.sampled_from([0.01, 1.0]),
)
def test_rows_are_probabilities_that_keep_the_order(
    n: int, k: int, seed: int, scale: float, temperature: float
) -> None:
    features, prototypes, evidence = drawn(n, k, seed, scale)
    rows = calibrated_probabilities(features, prototypes, temperature, evidence)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(1), 1)
    nearest = assign(features, prototypes, temperature)[0]
    np.testing.assert_array_equal(rows.argmax(1), nearest)
    order = np.argsort(squared_distances(features, prototypes), 1)
    assert (np.diff(np.take_along_axis(rows, order, 1)) <= 1e-12).all()


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(2, 200), st.integers(0, 10**6), st.floats(1e-3, 10))
def test_the_largest_value_is_the_confidence_or_near_one_in_k(
    n: int, k: int, seed: int, temperature: float
) -> None:
    features, prototypes, evidence = drawn(n, k, seed)
    rows = calibrated_probabilities(features, prototypes, temperature, evidence)
    before = probabilities(features, prototypes, temperature).max(1)
    with np.errstate(divide="ignore"):
        wanted = confidence(np.log(before) - np.log1p(-before), evidence)
    reached = wanted > calibrated_probabilities(
        features, prototypes, temperature / module.LEAST_POWER, None
    ).max(1)
    np.testing.assert_allclose(rows.max(1)[reached], wanted[reached], atol=1e-3)
    assert (rows.max(1)[~reached] >= wanted[~reached]).all()


def test_equal_prototypes_share_the_probability() -> None:
    features, prototypes, evidence = drawn(30, 4, 0)
    prototypes[3] = prototypes[1]
    rows = calibrated_probabilities(features, prototypes, 0.1, evidence)
    np.testing.assert_array_equal(rows[:, 1], rows[:, 3])
    assert np.isfinite(rows).all()
    assert not (rows.argmax(1) == 3).any()


@pytest.mark.parametrize("known", [0, 2, 5])
def test_answers_are_those_of_the_rows_for_any_chunk_size(
    known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newfound.clustering.assignment.CHUNK", 7)
    features, prototypes, evidence = drawn(30, 5, 1)
    rows = calibrated_probabilities(features, prototypes, 0.5, evidence)
    found = answers(features, prototypes, 0.5, known, evidence)
    np.testing.assert_array_equal(found.index, rows.argmax(1))
    np.testing.assert_allclose(found.probability, rows.max(1), rtol=1e-6)
    if known:
        np.testing.assert_array_equal(found.best_known, rows[:, :known].argmax(1))
        np.testing.assert_allclose(found.best_known_probability, rows[:, :known].max(1), rtol=1e-6)
    else:
        assert (found.best_known == -1).all()
        assert np.isnan(found.best_known_probability).all()


def test_without_evidence_the_softmax_remains() -> None:
    features, prototypes, _ = drawn(9, 3, 2)
    np.testing.assert_allclose(
        calibrated_probabilities(features, prototypes, 0.5, None),
        probabilities(features, prototypes, 0.5),
    )
    assert len(answers(features[:0], prototypes, 0.5, 1, None).index) == 0
