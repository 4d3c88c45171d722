"""Neighbour contrast: which texts are positives, and how batches are drawn."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.methods.newfound.contrast import contrast_batches, positives


@given(seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_positives_by_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.permutation(20)[:6])
    near = torch.from_numpy(rng.integers(20, size=(6, 3)))
    targets = torch.from_numpy(rng.integers(-1, 2, size=6))
    found = positives(rows, near, targets)
    for i in range(6):
        for j in range(6):
            if targets[i] >= 0 and targets[j] >= 0:
                wanted = bool(targets[i] == targets[j])
            else:
                wanted = int(rows[j]) in near[i].tolist() or int(rows[i]) in near[j].tolist()
            assert bool(found[i, j]) == wanted


def test_batches_pair_anchors_with_neighbours_unless_labels_disagree() -> None:
    rng = np.random.default_rng(0)
    near = np.array([[1], [0], [3], [2], [5], [4]])
    labels = np.array([0, 1, 0, 0, -1, 1])
    partner = {}
    for rows in contrast_batches(3, near, labels, np.array([0, 1, 2, 3, 5]), 2, rng):
        assert len(rows) == 3 + 3 + 2
        partner |= dict(zip(rows[:3].tolist(), rows[3:6].tolist(), strict=True))
        assert (labels[rows[6:]] >= 0).all()
    assert partner == {0: 0, 1: 1, 2: 3, 3: 2, 4: 5, 5: 4}
