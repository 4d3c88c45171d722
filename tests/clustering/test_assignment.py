"""Assignment to prototypes: probabilities, near ties, calibration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from newfound.clustering import assignment as module
from newfound.clustering.assignment import (
    GRID,
    NOISE,
    PRIOR_LOG_STD,
    PRIOR_TEMPERATURE,
    assign,
    calibrate,
    fit_temperature,
    near_ties,
    probabilities,
    squared_distances,
)

Floats = NDArray[np.float32]


def draw(n: int, k: int, d: int, seed: int, scale: float = 1.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return (
        (scale * rng.normal(size=(n, d))).astype(np.float32),
        (scale * rng.normal(size=(k, d))).astype(np.float32),
    )


SIZES = st.tuples(
    st.integers(1, 12), st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1)
)


@given(SIZES, st.sampled_from([0.01, 1.0, 100.0]))
def test_distances_equal_a_loop(sizes: tuple[int, int, int, int], scale: float) -> None:
    features, prototypes = draw(*sizes, scale)
    found = squared_distances(features, prototypes)
    for i, x in enumerate(features.astype(float)):
        for j, p in enumerate(prototypes.astype(float)):
            wanted = sum((a - b) ** 2 for a, b in zip(x, p, strict=True))
            assert found[i, j] == pytest.approx(wanted, rel=1e-9, abs=1e-9 * scale**2)


@given(SIZES, st.floats(0.01, 10))
def test_probabilities_are_a_softmax_over_distances(
    sizes: tuple[int, int, int, int], temperature: float
) -> None:
    features, prototypes = draw(*sizes)
    found = probabilities(features, prototypes, temperature)
    weights = np.exp(-squared_distances(features, prototypes) / (2 * temperature) + 1e-300)
    wanted = weights / np.maximum(weights.sum(1, keepdims=True), 1e-300)
    real = weights.sum(1) > 1e-250  # the loop underflows where the function does not
    np.testing.assert_allclose(found[real], wanted[real], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.sum(1), 1)


@settings(deadline=None)
@given(SIZES)
def test_assign_returns_the_nearest_for_any_chunk_size(sizes: tuple[int, int, int, int]) -> None:
    features, prototypes = draw(*sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", 3)
        index, sure = assign(features, prototypes, 0.5)
        ties = near_ties(features, prototypes)
    assert (index == squared_distances(features, prototypes).argmin(1)).all()
    chances = probabilities(features, prototypes, 0.5)
    np.testing.assert_allclose(sure, chances.max(1), rtol=1e-6)
    assert (index == chances.argmax(1)).all()
    assert (ties == near_ties(features, prototypes)).all()


def test_tiny_temperature_does_not_overflow() -> None:
    features, prototypes = draw(50, 7, 16, 0)
    index, sure = assign(features, prototypes, 1e-30)
    assert (index == squared_distances(features, prototypes).argmin(1)).all()
    assert (sure == 1).all()


def test_equal_prototypes_share_the_probability_and_the_first_is_assigned() -> None:
    features, prototypes = draw(40, 5, 384, 1)
    prototypes[3] = prototypes[1]
    prototypes[4] = prototypes[1]
    index, sure = assign(features, prototypes, 0.5)
    assert not set(index) & {3, 4}
    chosen = probabilities(features, prototypes, 0.5)[index == 1]
    np.testing.assert_array_equal(chosen[:, 1], chosen[:, 3])
    one_by_one = [assign(row[None], prototypes, 0.5)[0][0] for row in features]
    assert index.tolist() == one_by_one
    assert (sure[index == 1] <= 0.5).all()


def test_empty_input_gives_empty_output() -> None:
    features, prototypes = draw(0, 3, 4, 0)
    index, sure = assign(features, prototypes, 1.0)
    assert len(index) == len(sure) == len(near_ties(features, prototypes)) == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([3, 200]))
def test_noise_reassigns_only_near_ties(seed: int, k: int, d: int) -> None:
    features, prototypes = draw(200, k, d, seed)
    ties = near_ties(features, prototypes)
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=features.shape)
    steps *= (
        0.9
        * NOISE
        * np.linalg.norm(features, axis=1, keepdims=True)
        / np.linalg.norm(steps, axis=1, keepdims=True)
    )
    moved = assign((features + steps).astype(np.float32), prototypes, 1.0)[0]
    changed = np.flatnonzero(moved != assign(features, prototypes, 1.0)[0])
    assert set(changed) <= set(ties)
    assert len(ties) < 40  # near ties are encoded again, so there must be few


def test_text_on_the_border_is_a_near_tie() -> None:
    prototypes = np.array([[1, 0], [0, 1]], np.float32)
    features = np.array([[0.7, 0.7], [0.7, 0.7005], [0.9, 0.1], [1, 0]], np.float32)
    assert near_ties(features, prototypes).tolist() == [0, 1]
    assert near_ties(features, prototypes[:1]).tolist() == []


def test_fit_temperature_maximises_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    prototypes = np.eye(4, 8, dtype=np.float32)
    targets = rng.integers(0, 4, 400)
    for noise in (0.5, 0.8):
        features = (prototypes[targets] + noise * rng.normal(size=(400, 8))).astype(np.float32)
        # For Gaussian clusters the softmax of -squared distance / (2 variance) is exact.
        found = fit_temperature(features, prototypes, targets)
        assert found == pytest.approx(noise**2, rel=0.5)


def test_fit_temperature_without_labels_scales_with_distances() -> None:
    features, prototypes = draw(100, 3, 8, 0)
    nobody = np.full(100, -1)
    nearest = squared_distances(features, prototypes).min(1).mean()
    assert fit_temperature(features, prototypes, nobody) == pytest.approx(nearest / 8)
    assert fit_temperature(features[:0], prototypes, nobody[:0]) > 0
    same = np.ones((5, 2), np.float32)
    assert fit_temperature(same, same[:1], np.full(5, -1)) > 0


def test_calibrate_equals_a_loop_over_the_grid() -> None:
    features, prototypes = draw(60, 4, 8, 3)
    unseen = np.full(60, -1)
    unseen[::5] = np.random.default_rng(3).integers(0, 4, 12)
    scale = np.mean([squared_distances(one[None], prototypes).min() for one in features])
    costs = {}
    for share in GRID:
        temperature = share * scale
        cost = (math.log(share) - math.log(PRIOR_TEMPERATURE)) ** 2 / (2 * PRIOR_LOG_STD**2)
        for one, category in zip(features, unseen, strict=True):
            if category >= 0:
                cost -= math.log(probabilities(one[None], prototypes, temperature)[0, category])
        costs[temperature] = cost
    assert calibrate(features, prototypes, unseen) == pytest.approx(
        min(costs, key=costs.__getitem__)
    )


def test_calibrated_probabilities_match_the_accuracy() -> None:
    rng = np.random.default_rng(0)
    prototypes = np.eye(4, 8, dtype=np.float32)
    truth = rng.integers(0, 4, 2000)
    unseen = np.where(np.arange(2000) < 200, truth, -1)
    for noise in (0.3, 0.5, 0.7):
        features = (prototypes[truth] + noise * rng.normal(size=(2000, 8))).astype(np.float32)
        found, sure = assign(features, prototypes, calibrate(features, prototypes, unseen))
        assert sure.mean() == pytest.approx((found == truth).mean(), abs=0.05)


def test_calibrate_without_labels_returns_the_prior_temperature() -> None:
    features, prototypes = draw(100, 3, 8, 0)
    nearest = squared_distances(features, prototypes).min(1).mean()
    found = calibrate(features, prototypes, np.full(100, -1))
    assert found == pytest.approx(PRIOR_TEMPERATURE * nearest, rel=GRID[1] / GRID[0] - 1)
    assert calibrate(features[:0], prototypes, np.empty(0, np.int64)) > 0
    same = np.ones((5, 2), np.float32)
    assert calibrate(same, same[:1], np.full(5, -1)) > 0
