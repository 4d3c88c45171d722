"""Pairwise losses: similarities, masks, losses and thresholds, compared with loops."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.training.losses.pairwise import (
    choose_pairs,
    pair_loss,
    same_label,
    similarities,
    threshold_schedule,
)


def drawn(size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return logits [B, 4] and targets [B] of three labels or none."""
    draw = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(size, 4, generator=draw) + 1
    return logits, torch.randint(-1, 3, (size,), generator=draw)


@given(st.integers(1, 7), st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_similarities_equal_a_loop(size: int, seed: int) -> None:
    logits, _ = drawn(size, seed)
    found = similarities(logits)
    for i in range(size):
        for j in range(size):
            cosine = float(torch.cosine_similarity(logits[i], logits[j], dim=0))
            assert float(found[i, j]) == pytest.approx(min(max(cosine, 1e-10), 1), abs=1e-5)
    assert float(found.max()) <= 1


@given(st.integers(1, 7), st.integers(0, 10_000), st.floats(0.2, 1), st.floats(0, 0.8))
@settings(deadline=None, max_examples=80)
def test_chosen_pairs_equal_a_loop(size: int, seed: int, upper: float, lower: float) -> None:
    logits, targets = drawn(size, seed)
    similar = similarities(logits)
    positive, negative = choose_pairs(similar, targets, upper, lower)
    both, same = same_label(targets)
    for i in range(size):
        for j in range(size):
            a, b = int(targets[i]), int(targets[j])
            assert bool(both[i, j]) == (a >= 0 and b >= 0)
            assert bool(same[i, j]) == (a >= 0 and a == b)
            if a >= 0 and b >= 0:
                wanted = (a == b, a != b)
            else:
                wanted = (bool(similar[i, j] > upper), bool(similar[i, j] < lower))
            assert (bool(positive[i, j]), bool(negative[i, j])) == wanted


def test_pair_with_labels_is_in_one_mask_only() -> None:
    similar = torch.tensor([[1.0, 0.99, 0.01], [0.99, 1.0, 0.5], [0.01, 0.5, 1.0]])
    targets = torch.tensor(
        [0, 1, 0]
    )  # different labels for the similar pair, equal ones for the dissimilar
    positive, negative = choose_pairs(similar, targets, 0.9, 0.4)
    assert not positive[0, 1]
    assert negative[0, 1]
    assert positive[0, 2]
    assert not negative[0, 2]


def test_thresholds_may_be_tensors_that_change_in_place() -> None:
    similar, targets = torch.tensor([[1.0, 0.7], [0.7, 1.0]]), torch.tensor([-1, -1])
    bounds = torch.tensor([0.9, 0.4])
    assert not choose_pairs(similar, targets, bounds[0], bounds[1])[0][0, 1]
    bounds.copy_(torch.tensor([0.6, 0.4]))
    assert choose_pairs(similar, targets, bounds[0], bounds[1])[0][0, 1]


@given(st.integers(1, 7), st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_pair_loss_equals_a_loop(size: int, seed: int) -> None:
    logits, targets = drawn(size, seed)
    similar = similarities(logits)
    positive, negative = choose_pairs(similar, targets, 0.8, 0.3)
    total = 0.0
    for i in range(size):
        for j in range(size):
            s = float(similar[i, j])
            if positive[i, j]:
                total -= math.log(max(s, 1e-10))
            if negative[i, j]:
                total -= math.log(max(1 - s, 1e-10))
    # The mean is over all pairs, not over the chosen ones.
    assert float(pair_loss(similar, positive, negative)) == pytest.approx(
        total / size**2, rel=1e-4, abs=1e-5
    )


def test_gradients_are_finite_for_equal_texts() -> None:
    logits = torch.ones(3, 4)
    logits[2] = -1  # opposite to the others: a cosine below the clamp
    logits.requires_grad_()
    similar = similarities(logits)
    same = same_label(torch.tensor([0, 1, 0]))[
        1
    ]  # equal texts with different labels, and opposite ones
    loss = pair_loss(similar, same, ~same)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


def test_gradient_pulls_positives_and_pushes_negatives() -> None:
    logits = torch.tensor([[1.0, 0.2], [0.9, 0.6], [0.3, 1.0]], requires_grad=True)
    targets = torch.tensor([0, 0, 1])
    before = similarities(logits.detach())
    both, same = same_label(targets)
    pair_loss(similarities(logits), same, both & ~same).backward()
    assert logits.grad is not None
    after = similarities(logits.detach() - 0.1 * logits.grad)
    assert after[0, 1] > before[0, 1]
    assert after[0, 2] < before[0, 2]
    assert after[1, 2] < before[1, 2]


def test_thresholds_meet_after_46_epochs() -> None:
    schedule = threshold_schedule()
    assert len(schedule) == 46
    for epoch, (upper, lower) in enumerate(schedule):
        assert upper == pytest.approx(0.95 - 0.0099 * epoch)
        assert lower == pytest.approx(0.455 + 0.1 * 0.0099 * epoch)
        assert upper >= lower
    eta = 46 * 0.0099
    assert 0.95 - eta < 0.455 + 0.1 * eta  # the next thresholds would cross


@pytest.mark.parametrize(("step", "epochs"), [(1.0, 1), (0.2, 3), (0.03, 16), (0.001, 451)])
def test_larger_steps_take_fewer_epochs(step: float, epochs: int) -> None:
    assert abs(len(threshold_schedule(step)) - epochs) <= 1  # up to rounding
    assert len(threshold_schedule(step)) == sum(
        0.95 - i * step >= 0.455 + 0.1 * (i * step) for i in range(1000)
    )
