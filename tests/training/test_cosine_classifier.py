"""The cosine classifier: scores, prototypes and learning rate."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.clustering.assignment import assign
from newfound.training.cosine_classifier import CosineClassifier


def unit(rows: int, width: int, seed: int) -> Tensor:
    return F.normalize(torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999), st.floats(0.1, 9))
def test_the_nearest_prototype_has_the_largest_cosine(seed: int, length: float) -> None:
    origin = unit(1, 4, seed + 2)[0]
    classifier = CosineClassifier(3 * unit(5, 4, seed), origin)
    with torch.no_grad():
        classifier.rows.mul_(
            torch.tensor([[0.3], [1.0], [2.0], [5.0], [0.7]])
        )  # as training leaves it
    features = length * unit(20, 4, seed + 1)
    prototypes = classifier.prototypes(features)
    nearest = assign(features.numpy(), prototypes.numpy(), 1.0)[0]
    scores = classifier(features).detach()
    assert (scores.argmax(1).numpy() == nearest).all()
    for i, text in enumerate(features):
        for j, row in enumerate(classifier.rows.detach()):
            wanted = torch.cosine_similarity(text - origin, row, dim=0)
            assert float(scores[i, j]) == pytest.approx(float(wanted), abs=1e-5)


def test_learning_rate_factor_turns_directions_further_and_leaves_cosines() -> None:
    origin, centres, features = unit(1, 8, 2)[0], unit(5, 8, 0), unit(20, 8, 1)
    turned = []
    for factor in (1.0, 10.0):
        classifier = CosineClassifier(centres, origin, factor)
        before = classifier(features).detach()
        assert torch.allclose(before, CosineClassifier(centres, origin)(features), atol=1e-5)
        adamw = torch.optim.AdamW([classifier.rows], lr=1e-4)
        classifier(features)[:, 0].sum().backward()
        adamw.step()
        turned.append(float((classifier(features) - before)[:, 0].mean().detach()))
    assert turned[1] == pytest.approx(10 * turned[0], rel=0.05)
