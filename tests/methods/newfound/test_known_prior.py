"""The log-odds that a text is known: against Poisson probabilities, and on easy data."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from newfound.clustering.neighbours import nearest_neighbours
from newfound.methods.newfound.known_prior import MIN_PROBABILITY, NOVEL_RATE, known_log_odds


@given(seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_log_odds_by_loop(seed: int) -> None:
    """Poisson's chances of so many labels near a text, if it is known and if it is novel."""
    rng = np.random.default_rng(seed)
    near = rng.integers(30, size=(30, 8))
    targets = np.where(rng.random(30) < 0.3, rng.integers(4, size=30), -1)
    targets[:2], targets[2:4] = 1, -1
    found = known_log_odds(torch.from_numpy(near), torch.from_numpy(targets))
    counts = [sum(int(targets[j] >= 0) for j in row) for row in near]
    usual = np.mean([count for count, target in zip(counts, targets, strict=True) if target >= 0])
    most = np.log((1 - MIN_PROBABILITY) / MIN_PROBABILITY)
    for odds, count in zip(found.tolist(), counts, strict=True):
        known, novel = (poisson.logpmf(count, mean) for mean in (usual, NOVEL_RATE * usual))
        wanted = known - novel if usual > 0 else 0.0
        assert odds == pytest.approx(min(max(wanted, -most), most), abs=1e-4)


def test_labels_of_neighbours_separate_known_from_novel() -> None:
    """One text in five of two categories is labelled, none of the third."""
    x = torch.eye(3).repeat_interleave(50, 0) + 0.05 * torch.randn(150, 3)
    targets = torch.full((150,), -1)
    targets[0:50:5], targets[50:100:5] = 0, 1
    odds = known_log_odds(nearest_neighbours(x, 20), targets)
    assert (odds[:100] > 0).float().mean() > 0.8
    assert (odds[100:] < 0).all()
    assert (known_log_odds(nearest_neighbours(x, 20), torch.full((150,), -1)) == 0).all()
