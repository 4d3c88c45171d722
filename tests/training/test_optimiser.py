"""The optimiser: schedule, decay, accumulation, divergence."""

import subprocess
import sys
from itertools import pairwise

import pytest
import torch

from newfound.encoding.architecture import Architecture
from newfound.encoding.backbone import Backbone
from newfound.encoding.batching import Batch
from newfound.errors import InputError
from newfound.training.optimiser import HalfCopies, Optimiser


def linear() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def test_steps_equal_torch_adamw() -> None:
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
    batch = Batch.of(torch.arange(8))
    for _ in range(4):
        optimiser.accumulate(lambda batch: {"loss": ours(x[batch.rows]).square().mean()}, batch)
        optimiser.step()
        plain.zero_grad()
        theirs(x).square().mean().backward()
        plain.step()
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert torch.allclose(ours.bias, theirs.bias, atol=1e-6)


def test_steps_on_a_cpu_do_not_import_the_compiler() -> None:
    code = """
import sys, torch
from newfound.encoding.batching import Batch
from newfound.training.optimiser import Optimiser
module = torch.nn.Linear(3, 2)
optimiser = Optimiser([module], 0.1)
optimiser.accumulate(lambda batch: {"x": module(torch.ones(2, 3)).sum()}, Batch.of(torch.arange(2)))
optimiser.step()
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gradients_of_terms_accumulate_and_losses_are_averaged_by_name() -> None:
    module, x = linear(), torch.randn(4, 3)

    def term(batch: Batch) -> dict[str, torch.Tensor]:
        y = module(x[batch.rows])
        return {"a": y.square().mean(), "b": 2 * y.abs().mean()}

    optimiser = Optimiser([module], 0.1)
    batch = Batch.of(torch.arange(4))
    optimiser.accumulate(term, batch)
    optimiser.accumulate(term, batch)
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


def test_frozen_weights_do_not_change() -> None:
    module = linear()
    module.weight.requires_grad_(False)
    before = module.weight.clone()
    optimiser = Optimiser([module], 0.1)
    batch = Batch.of(torch.arange(2))
    optimiser.accumulate(lambda batch: {"x": module(torch.ones(2, 3)).sum()}, batch)
    optimiser.step()
    assert torch.equal(module.weight, before)


def test_divergence_raises_an_input_error() -> None:
    module = linear()
    optimiser = Optimiser([module], 0.1)
    batch = Batch.of(torch.arange(2))
    optimiser.accumulate(lambda batch: {"x": module(torch.ones(2, 3)).sum() * torch.nan}, batch)
    with pytest.raises(InputError, match="diverged"):
        optimiser.epoch_means()


def small_backbone() -> Backbone:
    torch.manual_seed(0)
    shape = Architecture(vocabulary=20, width=16, layers=2, heads=2, inner=32, positions=12)
    backbone = Backbone(shape).eval()
    for weight in backbone.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return backbone


def test_half_copies_approximate_full_precision_gradients() -> None:
    backbone = small_backbone()
    ids, mask = torch.randint(20, (6, 9)), torch.ones(6, 9, dtype=torch.bool)
    weights = list(backbone.parameters())
    wanted = torch.autograd.grad(backbone(ids, mask)[:, 0].square().sum(), weights)
    half = HalfCopies([backbone])
    # oneDNN's bfloat16 crashes on machines that report AMX but do not allow it.
    with torch.backends.mkldnn.flags(enabled=False), half.standing_in():
        hidden = backbone(ids, mask)
        assert hidden.dtype == torch.bfloat16
        hidden[:, 0].float().square().sum().backward()
    assert next(backbone.parameters()) is weights[0]  # the weights are restored
    grads = [torch.full_like(weight, 7.0) for weight in half.masters]
    half.hand_over(grads)
    place = {id(weight): grad for weight, grad in zip(half.masters, grads, strict=True)}
    got = torch.cat([place[id(weight)].flatten() for weight in weights])
    full = torch.cat([grad.flatten() for grad in wanted])
    assert torch.cosine_similarity(got, full, dim=0) > 0.999
    assert got.norm() / full.norm() == pytest.approx(1, abs=0.02)
    assert all(copy.grad is None for copy in half.copies)


def test_half_copies_follow_the_weights_and_clear_unused_gradients() -> None:
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
    half.hand_over(grads)  # without a backward pass
    assert all((grad == 0).all() for grad in grads)


@pytest.mark.parametrize("torch_s_own", [False, True])
def test_weights_with_reset_state_step_like_new_ones(torch_s_own: bool) -> None:
    torch.manual_seed(1)
    ours, x, batch = linear(), torch.randn(8, 3), Batch.of(torch.arange(8))
    optimiser = Optimiser([ours], 0.1, weight_decay=0.2)
    if torch_s_own:  # as on a GPU
        groups = [
            {"params": [ours.weight], "weight_decay": 0.2},
            {"params": [ours.bias], "weight_decay": 0.0},
        ]
        optimiser._adamw = torch.optim.AdamW(groups, lr=0.1, fused=True)
    step_by_step(optimiser, ours, x, batch, 0)
    optimiser.forget([ours.weight])  # no state before the first step
    step_by_step(optimiser, ours, x, batch, 3)
    memory = [list(optimiser._adamw.state[weight].values()) for weight in ours.parameters()]
    theirs = torch.nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    optimiser.forget([ours.weight])
    assert all((part == 0).all() for part in memory[0])  # in place, because a CUDA graph reads them
    assert all((part != 0).any() for part in memory[1])
    step_by_step(optimiser, ours, x, batch, 1)
    step_by_step(Optimiser([theirs], 0.1, weight_decay=0.2), theirs, x, batch, 1)
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-6)
    assert not torch.allclose(ours.bias, theirs.bias, atol=1e-3)  # its state is of three steps


def step_by_step(
    optimiser: Optimiser, module: torch.nn.Module, x: torch.Tensor, batch: Batch, steps: int
) -> None:
    def term(batch: Batch) -> dict[str, torch.Tensor]:
        return {"loss": (module(x[batch.rows]) - x[batch.rows][:, :2].exp()).square().mean()}

    for _ in range(steps):
        optimiser.accumulate(term, batch)
        optimiser.step()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_state_is_reset_in_a_cuda_graph() -> None:
    modules = [torch.nn.Linear(3, 2).cuda() for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    x, batch = torch.randn(8, 3).cuda(), Batch.of(torch.arange(8).cuda())

    def steps_of(module: torch.nn.Module, graphs: bool) -> None:
        optimiser = Optimiser([module], 0.1, graphs=graphs)

        def term(batch: Batch) -> dict[str, torch.Tensor]:
            return {"loss": module(x[batch.rows]).square().mean()}

        for step in range(10):
            if step == 6:
                optimiser.forget(module.parameters())
            optimiser.accumulate(term, batch)
            optimiser.step()

    steps_of(modules[0], True)
    steps_of(modules[1], False)
    assert torch.allclose(modules[0].weight, modules[1].weight, atol=1e-4)
