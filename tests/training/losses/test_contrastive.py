"""The contrastive loss, compared with a loop."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.training.losses import contrastive as losses


def naive_contrast(a: torch.Tensor, b: torch.Tensor, positive: torch.Tensor, tau: float) -> float:
    rows, total, n = [*a, *b], 0.0, len(a)
    for i in range(2 * n):
        others = [j for j in range(2 * n) if j != i]
        bottom = sum(math.exp(float(rows[i] @ rows[j]) / tau) for j in others)
        mine = [j for j in others if bool(positive[i % n, j % n]) or i % n == j % n]
        terms = [math.log(math.exp(float(rows[i] @ rows[j]) / tau) / bottom) for j in mine]
        total += -sum(terms) / len(terms)
    return total / (2 * n)


@given(seed=st.integers(0, 1000), size=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_contrastive_loss_equals_a_loop(seed: int, size: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    a = torch.nn.functional.normalize(
        torch.randn(size, 3, generator=generator, dtype=torch.float64), dim=1
    )
    b = torch.nn.functional.normalize(
        torch.randn(size, 3, generator=generator, dtype=torch.float64), dim=1
    )
    positive = torch.rand(size, size, generator=generator) < 0.4
    wanted = naive_contrast(a, b, positive, 0.5)
    assert losses.contrastive_loss(a, b, positive, 0.5).item() == pytest.approx(wanted)
