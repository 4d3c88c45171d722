"""The swapped-prediction loss, compared with a loop."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.clustering.optimal_transport import sinkhorn
from newfound.training.losses.swapped import swapped_loss

OPTIONS: dict[str, Any] = {"temperature": 0.1, "epsilon": 0.05, "iterations": 3}


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 9), st.integers(1, 5), st.integers(0, 999))
def test_swapped_loss_equals_a_loop(size: int, waiting: int, k: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    first, second, queue = (2 * torch.rand(n, k, generator=draw) - 1 for n in (size, size, waiting))
    pseudo_labels = sinkhorn(torch.cat([first, second, queue]), 0.05, 3)  # any order gives the same
    total = 0.0
    for i in range(size):
        for scores, wanted in ((first[i], pseudo_labels[size + i]), (second[i], pseudo_labels[i])):
            chances = (scores / 0.1).softmax(0)
            total -= sum(float(wanted[j]) * float(chances[j].log()) for j in range(k))
    found = swapped_loss(first, second, queue, **OPTIONS)
    assert float(found) == pytest.approx(total / (2 * size), abs=1e-3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_log_prior_multiplies_the_scores_before_the_transport(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    first, second, queue = (2 * torch.rand(n, 4, generator=draw) - 1 for n in (5, 5, 3))
    prior = torch.randn(13, 4, generator=draw)
    shares = (torch.cat([second, first, queue]) / 0.05).exp() * prior.exp()
    pseudo_labels = sinkhorn(shares.log(), 1.0, 3)
    wanted = F.cross_entropy(torch.cat([first, second]) / 0.1, pseudo_labels[:10])
    found = swapped_loss(first, second, queue, **OPTIONS, log_prior=prior)
    assert float(found) == pytest.approx(float(wanted), rel=1e-4)


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
def test_class_prior_and_strength_reach_the_transport(strength: float) -> None:
    draw = torch.Generator().manual_seed(0)
    first, second, queue = (2 * torch.rand(n, 3, generator=draw) - 1 for n in (5, 5, 4))
    prior = torch.tensor([0.7, 0.2, 0.1])
    labels = sinkhorn(torch.cat([second, first, queue]), 0.05, 3, prior, strength)
    wanted = F.cross_entropy(torch.cat([first, second]) / 0.1, labels[:10])
    found = swapped_loss(first, second, queue, **OPTIONS, class_prior=prior, strength=strength)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)
