"""The silhouette score, compared with a loop and scikit-learn."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score as theirs

from newfound.clustering import silhouette
from newfound.clustering.silhouette import silhouette_score


def by_loop(x: np.ndarray, labels: np.ndarray) -> float:
    scores = []
    for i in range(len(x)):
        apart = np.linalg.norm(x - x[i], axis=1)
        own = labels == labels[i]
        if own.sum() == 1:
            scores.append(0.0)
            continue
        inside = apart[own].sum() / (own.sum() - 1)
        outside = min(apart[labels == c].mean() for c in set(labels) - {labels[i]})
        scores.append((outside - inside) / max(inside, outside))
    return float(np.mean(scores))


@given(
    n=st.integers(4, 40), k=st.integers(2, 5), far=st.sampled_from([0, 100]), seed=st.integers(0)
)
@settings(max_examples=40, deadline=None)
def test_silhouette_equals_scikit_learn(n: int, k: int, far: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(n, 3)) + far).astype(np.float32)
    labels = 2 * rng.integers(k, size=n)  # some numbers are not used
    if len(set(labels)) < 2:
        labels[0] = -1
    found = silhouette_score(torch.from_numpy(x), torch.from_numpy(labels))
    assert found == pytest.approx(by_loop(x.astype(np.float64), labels), abs=1e-4)
    if len(set(labels)) < n:
        assert found == pytest.approx(theirs(x.astype(np.float64), labels), abs=1e-4)


def test_block_size_does_not_change_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = torch.randn(50, 4), torch.randint(3, (50,))
    whole = silhouette_score(x, labels)
    monkeypatch.setattr(silhouette, "BLOCK", 120)  # two rows at a time
    assert silhouette_score(x, labels) == pytest.approx(whole, abs=1e-6)


def test_degenerate_clusterings_score_zero() -> None:
    x = torch.randn(5, 2)
    assert silhouette_score(x, torch.zeros(5, dtype=torch.int64)) == 0
    assert silhouette_score(x, torch.arange(5)) == 0  # one point per cluster
    assert (
        silhouette_score(torch.ones(4, 2), torch.tensor([0, 0, 1, 1])) == 0
    )  # all points are equal
