"""AdamW with warm-up and decay, and training steps as CUDA graphs.

On a large GPU, small encoders spend their time on launching kernels. There a step (forward and
backward pass of the loss terms for one batch shape, then AdamW) is captured once as a CUDA graph
and replayed. The backbone computes with bfloat16 copies of its weights, which are made once per
step, because autocast would launch a kernel for every use of every weight. Heads, losses and AdamW
stay in full precision. On a CPU the same calls run directly.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from newfound.devices import plain
from newfound.encoding.backbone import Backbone
from newfound.encoding.batching import Batch
from newfound.errors import InputError

Term = Callable[[Batch], dict[str, Tensor]]  # losses by name
Shape = tuple[tuple[Term, tuple[int, ...]], ...]  # of a step: its terms and batch shapes
MEMORY = ("step", "exp_avg", "exp_avg_sq")  # AdamW's state of a weight, as torch.optim names it


class CpuAdamW:
    """The part of torch.optim.AdamW that a CPU needs: its state and its fused step.

    torch.optim.AdamW imports torch's compiler (torch._dynamo) when it is first used, which takes
    about a second; the public function that computes its steps does not. docs/performance.md has
    the measurement.

    Parameters
    ----------
    groups : list of (list of Tensor, float)
        Weights with their weight decay.
    rate : Tensor
        Learning rate, a scalar that may be changed in place.
    epsilon : float
    """

    def __init__(
        self, groups: list[tuple[list[Tensor], float]], rate: Tensor, epsilon: float = 1e-8
    ) -> None:
        self.groups, self.rate, self.epsilon = groups, rate, epsilon
        self.state = {  # of each weight, by the names that torch.optim uses
            weight: {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }
            for weights, _ in groups
            for weight in weights
        }

    @torch.no_grad()
    def step(self) -> None:
        """Take one step along the weights' gradients."""
        for weights, decay in self.groups:
            states = [self.state[weight] for weight in weights]
            adamw(
                weights,
                [weight.grad for weight in weights if weight.grad is not None],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.rate,
                weight_decay=decay,
                eps=self.epsilon,
                maximize=False,
            )


class HalfCopies:
    """bfloat16 copies of the weights of backbones, which replace them during a step."""

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        kind = torch.float32 if plain() else torch.bfloat16
        backbones = {m for module in modules for m in module.modules() if isinstance(m, Backbone)}
        self.places: list[tuple[nn.Module, str, nn.Parameter, nn.Parameter]] = []
        for owner in (m for backbone in backbones for m in backbone.modules()):
            for name, weight in owner.named_parameters(recurse=False):
                copy = nn.Parameter(weight.detach().to(kind, copy=True), weight.requires_grad)
                self.places.append((owner, name, weight, copy))
        learning = [(weight, copy) for _, _, weight, copy in self.places if weight.requires_grad]
        self.masters: list[Tensor] = [weight for weight, _ in learning]
        self.copies: list[Tensor] = [copy for _, copy in learning]

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Replace the weights of the backbones by their copies inside the block."""
        for owner, name, _, copy in self.places:
            owner._parameters[name] = copy
        try:
            yield
        finally:
            for owner, name, weight, _ in self.places:
                owner._parameters[name] = weight

    def hand_over(self, grads: list[Tensor]) -> None:
        """Copy the gradients of the copies to `grads`, those of the weights, in float32."""
        found = [copy.grad for copy in self.copies]
        pairs = [(grad, new) for grad, new in zip(grads, found, strict=True) if new is not None]
        if len(pairs) < len(grads):
            torch._foreach_zero_(grads)
        if pairs:
            torch._foreach_copy_([grad for grad, _ in pairs], [new for _, new in pairs])
        for copy in self.copies:
            copy.grad = None

    @torch.no_grad()
    def refresh(self) -> None:
        """Update the copies from the weights."""
        if self.copies:
            torch._foreach_copy_([copy.detach() for copy in self.copies], self.masters)


class Optimiser:
    """AdamW that accumulates the gradients of loss terms over batches before each step.

    Parameters
    ----------
    modules : iterable of nn.Module
        Modules whose trainable weights are optimised.
    learning_rate : float
    schedule_steps : int, optional
        Number of steps of the schedule: linear warm-up, then linear decay to zero. By default the
        learning rate is constant.
    warmup : float
        Share of the steps that is warm-up.
    weight_decay : float
        Weight decay of matrices; biases and norms are not decayed.
    epsilon : float
        Epsilon of AdamW.
    graphs : bool
        Whether steps on a GPU run as CUDA graphs.
    """

    def __init__(
        self,
        modules: Iterable[nn.Module],
        learning_rate: float,
        *,
        schedule_steps: int | None = None,
        warmup: float = 0.1,
        weight_decay: float = 0.01,
        epsilon: float = 1e-8,
        graphs: bool = True,
    ) -> None:
        modules = list(modules)
        named = [item for module in modules for item in module.named_parameters()]
        chosen = [(name, weight) for name, weight in named if weight.requires_grad]
        self.parameters = [weight for _, weight in chosen]
        self.device = self.parameters[0].device
        on_gpu = self.device.type == "cuda"
        self.graphs = graphs and on_gpu and not plain()
        self.learning_rate = learning_rate
        self.schedule_steps, self.warmup = schedule_steps, warmup
        self.done = 0
        self._rate = torch.tensor(learning_rate, device=self.device)
        # Biases and norms are vectors, which are not decayed.
        decayed: list[Tensor] = [w for _, w in chosen if w.ndim > 1]
        vectors: list[Tensor] = [w for _, w in chosen if w.ndim <= 1]
        groups = [(g, d) for g, d in ((decayed, weight_decay), (vectors, 0.0)) if g]
        self._adamw = (
            torch.optim.AdamW(
                [{"params": weights, "weight_decay": decay} for weights, decay in groups],
                lr=self._rate,
                eps=epsilon,
                fused=True,
                capturable=True,
            )
            if on_gpu
            else CpuAdamW(groups, self._rate, epsilon)
        )
        for weight in self.parameters:
            weight.grad = torch.zeros_like(weight)
        self._half = HalfCopies(modules) if on_gpu else None
        self._waiting: list[tuple[Term, Batch]] = []  # terms of the next step
        self._recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, list[Batch]]] = {}
        self._seen: set[Shape] = set()
        self._pool = torch.cuda.graph_pool_handle() if self.graphs else None
        self._sums: dict[str, Tensor] = {}
        self.count = 0  # batches since the last `epoch_means`

    def accumulate(self, term: Term, batch: Batch) -> None:
        """Add the gradient of a term's losses over a batch, and their values to `epoch_means`.

        On a GPU the term is queued, and `step` runs all queued terms as one CUDA graph.
        """
        self.count += 1
        if self.device.type == "cuda":
            self._waiting.append((term, batch))
        else:
            self._run(term, batch)

    def _run(self, term: Term, batch: Batch) -> None:
        """Run the forward and backward passes of a term."""
        losses = term(batch)
        torch.stack([loss.float() for loss in losses.values()]).sum().backward()
        for name, loss in losses.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros((), device=self.device)
            self._sums[name] += loss.detach().float()

    def step(self) -> None:
        """Update the weights by the accumulated gradient, and clear it."""
        rate = self.learning_rate * self._schedule()
        self._rate.fill_(rate)
        self.done += 1
        if self._half is None:
            self._move()
            return
        terms, self._waiting = self._waiting, []
        shape = tuple((term, batch.shape) for term, batch in terms)
        if not self.graphs:
            self._whole_step(terms)
        elif shape in self._recorded:
            graph, static = self._recorded[shape]
            for mine, (_, batch) in zip(static, terms, strict=True):
                mine.rows.copy_(batch.rows)
                mine.parts.copy_(batch.parts)
                mine.places.copy_(batch.places)
            graph.replay()
        elif shape in self._seen:
            static = [batch.clone() for _, batch in terms]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                self._whole_step(
                    [(term, mine) for (term, _), mine in zip(terms, static, strict=True)]
                )
            self._recorded[shape] = (graph, static)
            graph.replay()
        else:  # the first step of a shape runs without a graph, as a warm-up for capture
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._whole_step(terms)
            torch.cuda.current_stream().wait_stream(stream)
            self._seen.add(shape)

    def _whole_step(self, terms: list[tuple[Term, Batch]]) -> None:
        """Run a step on a GPU, from batches to updated weights."""
        assert self._half is not None
        with self._half.standing_in():
            for term, batch in terms:
                self._run(term, batch)
        self._half.hand_over([w.grad for w in self._half.masters if w.grad is not None])
        self._move()
        self._half.refresh()

    def _move(self) -> None:
        grads = [weight.grad for weight in self.parameters if weight.grad is not None]
        self._adamw.step()
        torch._foreach_zero_(grads)

    @torch.no_grad()
    def forget(self, weights: Iterable[Tensor]) -> None:
        """Reset AdamW's state of these weights; the learning-rate schedule continues.

        The state is changed in place, so that CUDA graphs use the new state.
        """
        for weight in weights:
            for memory in self._adamw.state.get(weight, {}).values():
                memory.zero_()

    def state(self) -> dict[str, Tensor]:
        """Return the weights, AdamW's state of each and the sums of the losses; not as copies."""
        found = {f"sum {name}": total for name, total in self._sums.items()}
        for i, weight in enumerate(self.parameters):
            found[f"weight {i}"] = weight.detach()
            memory = self._adamw.state.get(weight, {})
            found |= {f"{name} {i}": memory[name] for name in MEMORY if name in memory}
        return found

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor], *, steps: int, losses: int) -> None:
        """Set what `state` returned, the steps done and `count`; no step may have been taken."""
        self.done, self.count = steps, losses
        for i, weight in enumerate(self.parameters):
            weight.copy_(state[f"weight {i}"])
            kept = {name: state[f"{name} {i}"] for name in MEMORY if f"{name} {i}" in state}
            self._adamw.state[weight] = {
                name: value.to(self.device, copy=True) for name, value in kept.items()
            }
        for name, total in state.items():
            if name.startswith("sum "):
                self._sums[name.removeprefix("sum ")] = total.to(self.device, copy=True)
        if self._half is not None:
            self._half.refresh()

    def _schedule(self) -> float:
        """Return the factor of the learning rate for the next step."""
        if self.schedule_steps is None:
            return 1.0
        warm = max(1, round(self.warmup * self.schedule_steps))
        if self.done < warm:
            return (self.done + 1) / warm
        left = (self.schedule_steps - self.done) / max(1, self.schedule_steps - warm)
        return float(np.clip(left, 0.0, 1.0))

    def epoch_means(self) -> dict[str, float]:
        """Return the mean of each loss since the last call; this synchronises with the GPU."""
        means = {name: float(total) / max(1, self.count) for name, total in self._sums.items()}
        for total in self._sums.values():
            total.zero_()
        self.count = 0
        if not all(map(math.isfinite, means.values())):
            raise InputError(
                "training diverged (the loss is not finite); choose a smaller learning rate"
            )
        return means
