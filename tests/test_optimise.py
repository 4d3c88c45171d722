"""The optimiser: schedule, decay, accumulation, divergence."""

from itertools import pairwise

import pytest
import torch

from newfound.errors import InputError
from newfound.optimise import Optimiser


def linear() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def test_steps_equal_plain_adamw() -> None:
    ours, theirs = linear(), linear()
    x = torch.randn(8, 3)
    optimiser = Optimiser([ours], 0.1, weight_decay=0.2)
    plain = torch.optim.AdamW(
        [
            {"params": [theirs.weight], "weight_decay": 0.2},
            {"params": [theirs.bias], "weight_decay": 0.0},
        ],
        lr=0.1,
    )
    rows = torch.arange(8)
    for _ in range(4):
        optimiser.accumulate(lambda r, w: {"loss": ours(x[r]).square().mean()}, rows, 1)
        optimiser.step()
        plain.zero_grad()
        theirs(x).square().mean().backward()
        plain.step()
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert torch.allclose(ours.bias, theirs.bias, atol=1e-6)


def test_terms_accumulate_and_means_are_by_name() -> None:
    module, x = linear(), torch.randn(4, 3)

    def term(rows: torch.Tensor, width: int) -> dict[str, torch.Tensor]:
        y = module(x[rows])
        return {"a": y.square().mean(), "b": 2 * y.abs().mean()}

    optimiser = Optimiser([module], 0.1)
    rows = torch.arange(4)
    optimiser.accumulate(term, rows, 1)
    optimiser.accumulate(term, rows, 1)
    y = module(x)
    wanted = torch.autograd.grad(2 * (y.square().mean() + 2 * y.abs().mean()), module.weight)[0]
    assert torch.allclose(module.weight.grad, wanted, atol=1e-6)
    means = optimiser.epoch_means()
    assert means == pytest.approx({"a": y.square().mean().item(), "b": 2 * y.abs().mean().item()})


def test_warm_up_then_linear_decay_to_zero() -> None:
    optimiser = Optimiser([linear()], 1.0, schedule_steps=20, warmup=0.1)
    rates = []
    for _ in range(20):
        rates.append(optimiser._schedule())
        optimiser.done += 1
    assert rates[:2] == [0.5, 1.0]
    assert all(a > b for a, b in pairwise(rates[2:]))
    assert rates[-1] == pytest.approx(1 / 18)
    assert optimiser._schedule() == 0


def test_frozen_weights_are_left_alone() -> None:
    module = linear()
    module.weight.requires_grad_(False)
    before = module.weight.clone()
    optimiser = Optimiser([module], 0.1)
    rows = torch.arange(2)
    optimiser.accumulate(lambda r, w: {"x": module(torch.ones(2, 3)).sum()}, rows, 1)
    optimiser.step()
    assert torch.equal(module.weight, before)


def test_divergence_is_said_in_one_sentence() -> None:
    module = linear()
    optimiser = Optimiser([module], 0.1)
    rows = torch.arange(2)
    optimiser.accumulate(lambda r, w: {"x": module(torch.ones(2, 3)).sum() * torch.nan}, rows, 1)
    with pytest.raises(InputError, match="diverged"):
        optimiser.epoch_means()
