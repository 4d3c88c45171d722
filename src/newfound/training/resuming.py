"""Training loops that go on after a fault.

The state of a loop after an epoch is: the weights and moments of the optimiser, the random states
(that of torch is kept by `Checkpoints`), tensors that the loop changes in place, the best weights
so far, and the lines of the history.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.checkpoints import Checkpoints, Kept
from newfound.checkpoints.pieces import with_random_state
from newfound.progress import Advance
from newfound.training.best_weights import BestWeights
from newfound.training.optimiser import Optimiser

Draws = np.random.Generator | torch.Generator


def resumable_epochs(
    epochs: Sequence[int],
    checkpoints: Checkpoints,
    name: str,
    optimiser: Optimiser,
    draws: Draws,
    history: list[dict[str, Any]],
    advance: Advance,
    *,
    tensors: Mapping[str, Tensor] | None = None,
    best: BestWeights | None = None,
) -> Iterator[int]:
    """Yield the epochs of a training loop, and keep its state between them when it is due.

    If an earlier command kept the state, it is restored and the epochs before it are left out.

    Parameters
    ----------
    epochs : sequence of int
        Numbers of all epochs.
    checkpoints : Checkpoints
    name : str
        Name of the loop.
    optimiser : Optimiser
    draws : numpy or torch Generator
        Random generator that the batches are drawn with.
    history : list of dict
        The lines that the loop appends are kept.
    advance : callable
        Called with the number of epochs that are left out.
    tensors : mapping of str to Tensor, optional
        Tensors that the loop changes in place.
    best : BestWeights, optional

    Yields
    ------
    int
    """
    if not checkpoints.active:
        yield from epochs
        return
    key, lines = checkpoints.key(name), len(history)
    tensors = tensors or {}
    done = 0
    found = checkpoints.load(key)
    if found is not None:
        _restore(found, optimiser, draws, tensors, best)
        history += found.value["history"]
        done = int(found.value["epochs"])
        advance(done)
    since = checkpoints.clock()
    for number, epoch in enumerate(epochs[done:], start=done + 1):
        yield epoch
        if not checkpoints.due(since, 0):  # the usual case, decided before the size is computed
            continue
        state = {f"loop {name}": tensor for name, tensor in tensors.items()}
        state |= {f"optimiser {name}": tensor for name, tensor in optimiser.state().items()}
        if best is not None:
            state |= {f"best {i}": tensor for i, tensor in enumerate(best.kept or [])}
        value = {
            "epochs": number,
            "history": history[lines:],
            "steps": optimiser.done,
            "losses": optimiser.count,
            "best": None if best is None else [best.best, best.waited],
        }
        if isinstance(draws, torch.Generator):
            state["draws"] = draws.get_state()
        else:
            value["draws"] = draws.bit_generator.state
        kept = with_random_state(Kept(value, state))
        if checkpoints.due(since, kept.size):
            checkpoints.save(key, kept)
            since = checkpoints.clock()


@torch.no_grad()
def _restore(
    kept: Kept,
    optimiser: Optimiser,
    draws: Draws,
    tensors: Mapping[str, Tensor],
    best: BestWeights | None,
) -> None:
    """Set the state of a loop to what was kept."""
    value, found = kept.value, kept.tensors
    for name, tensor in tensors.items():
        tensor.copy_(found[f"loop {name}"])
    start = "optimiser "
    optimiser.restore(
        {name.removeprefix(start): t for name, t in found.items() if name.startswith(start)},
        steps=value["steps"],
        losses=value["losses"],
    )
    if best is not None:
        best.best, best.waited = value["best"]
        if "best 0" in found:
            device = optimiser.device
            best.kept = [found[f"best {i}"].to(device, copy=True) for i in range(len(best.weights))]
    if isinstance(draws, torch.Generator):
        draws.set_state(found["draws"])
    else:
        draws.bit_generator.state = value["draws"]
