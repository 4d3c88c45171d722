"""The log-odds that a text is known: against Poisson probabilities, and on easy data."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson
from support.blobs import blobs

from newfound.clustering.neighbours import nearest_neighbours
from newfound.methods.newfound import known_prior
from newfound.methods.newfound.known_prior import (
    MIN_PROBABILITY,
    NOVEL_RATE,
    SMOOTHING,
    known_log_odds,
)


@given(seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_log_odds_by_loop(seed: int) -> None:
    """Probabilities of so many labels near a text, if it is known and if it is novel."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 5))
    near = rng.integers(30, size=(30, 8))
    targets = np.where(rng.random(30) < 0.3, rng.integers(4, size=30), -1)
    targets[:4], targets[4:6] = [0, 1, 2, 3], -1
    found = known_log_odds(
        torch.from_numpy(points).float(), torch.from_numpy(near), torch.from_numpy(targets)
    )
    counts = [sum(int(targets[j] >= 0) for j in row) for row in near]
    mean = np.mean([counts[i] for i in range(30) if targets[i] >= 0])
    rates, centres = [], []
    for category in range(4):
        rows = [i for i in range(30) if targets[i] == category]
        total = sum(counts[i] for i in rows)
        rates.append((total + SMOOTHING * mean) / (len(rows) + SMOOTHING))
        centres.append(points[rows].mean(0))
    most = np.log((1 - MIN_PROBABILITY) / MIN_PROBABILITY)
    for i, odds in enumerate(found.tolist()):
        cosines = [points[i] @ c / np.linalg.norm(points[i]) / np.linalg.norm(c) for c in centres]
        rate = rates[int(np.argmax(cosines))]
        known, novel = (poisson.logpmf(counts[i], r) for r in (rate, NOVEL_RATE * rate))
        assert odds == pytest.approx(min(max(known - novel, -most), most), abs=1e-4)


def test_labels_of_neighbours_separate_known_from_novel() -> None:
    """One text in five of two categories is labelled, none of the third."""
    points, _ = blobs([50, 50, 50])
    targets = torch.full((150,), -1)
    targets[0:50:5], targets[50:100:5] = 0, 1
    odds = known_log_odds(points, nearest_neighbours(points, 20), targets)
    assert (odds[:100] > 0).float().mean() > 0.8
    assert (odds[100:] < 0).all()


def test_each_category_has_its_own_labelling_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most texts of two small categories are labelled, a quarter of a large one."""
    points, truth = blobs([15, 15, 100, 100])
    targets = torch.full((len(truth),), -1)
    for category, labels in enumerate((13, 13, 25)):
        targets[np.flatnonzero(truth == category)[:labels]] = category
    neighbours = nearest_neighbours(points, 14)
    large = torch.from_numpy(truth == 2) & (targets < 0)
    novel = torch.from_numpy(truth == 3)
    odds = known_log_odds(points, neighbours, targets)
    assert (odds[novel] < 0).all()
    right = (odds[large] > 0).float().mean()
    monkeypatch.setattr(known_prior, "SMOOTHING", 1e9)  # one rate for all
    shared = known_log_odds(points, neighbours, targets)
    assert right > 0.55
    assert (shared[large] > 0).float().mean() < 0.3


def test_without_labels_nothing_is_said() -> None:
    points, _ = blobs([20, 20])
    targets = torch.full((40,), -1)
    assert (known_log_odds(points, nearest_neighbours(points, 5), targets) == 0).all()


def test_blocks_of_texts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    points, truth = blobs([30, 30, 30])
    targets = torch.where(torch.arange(90) % 4 == 0, torch.from_numpy(truth), -1)
    neighbours = nearest_neighbours(points, 10)
    whole = known_log_odds(points, neighbours, targets)
    monkeypatch.setattr("newfound.clustering.distances.BLOCK", 42)
    torch.testing.assert_close(known_log_odds(points, neighbours, targets), whole)
