"""The optimiser: schedule, decay, accumulation, divergence."""

from itertools import pairwise

import pytest
import torch

from newfound.backbone import Architecture, Backbone
from newfound.errors import InputError
from newfound.optimise import HalfCopies, Optimiser


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


def small_backbone() -> Backbone:
    torch.manual_seed(0)
    shape = Architecture(vocabulary=20, width=16, layers=2, heads=2, inner=32, positions=12)
    return Backbone(shape).eval()


def test_half_copies_give_nearly_the_gradients_of_full_precision() -> None:
    backbone = small_backbone()
    ids, mask = torch.randint(20, (6, 9)), torch.ones(6, 9, dtype=torch.bool)
    weights = list(backbone.parameters())
    wanted = torch.autograd.grad(backbone(ids, mask)[:, 0].square().sum(), weights)
    half = HalfCopies([backbone])
    # oneDNN's bfloat16 dies on machines that announce AMX and forbid it
    with torch.backends.mkldnn.flags(enabled=False), half.standing_in():
        hidden = backbone(ids, mask)
        assert hidden.dtype == torch.bfloat16
        hidden[:, 0].float().square().sum().backward()
    assert list(backbone.parameters())[0] is weights[0]  # the weights are back
    grads = [torch.full_like(weight, 7.0) for weight in half.masters]
    half.hand_over(grads)
    place = {id(weight): grad for weight, grad in zip(half.masters, grads, strict=True)}
    got = torch.cat([place[id(weight)].flatten() for weight in weights])
    full = torch.cat([grad.flatten() for grad in wanted])
    assert torch.cosine_similarity(got, full, dim=0) > 0.999
    assert got.norm() / full.norm() == pytest.approx(1, abs=0.02)
    assert all(copy.grad is None for copy in half.copies)


def test_half_copies_follow_the_weights_and_clear_what_was_not_used() -> None:
    backbone = small_backbone()
    backbone.words.requires_grad_(False)
    half = HalfCopies([backbone])
    assert all(copy.requires_grad for copy in half.copies)
    assert not any(weight is backbone.words.weight for weight in half.masters)
    with torch.no_grad():
        for weight in half.masters:
            weight.add_(1.0)
    half.refresh()
    for weight, copy in zip(half.masters, half.copies, strict=True):
        assert torch.equal(copy, weight.bfloat16())
    grads = [torch.full_like(weight, 7.0) for weight in half.masters]
    half.hand_over(grads)  # no backward pass went before
    assert all((grad == 0).all() for grad in grads)
