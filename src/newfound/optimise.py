"""AdamW with warm-up and decay, and the replay of training steps as CUDA graphs.

Small encoders on a large GPU spend their time launching kernels, not computing. So each loss term
(forward and backward, for one batch shape) and the optimiser's step are recorded once and replayed.
On a CPU the same calls simply run.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor, nn

from newfound.errors import InputError

Term = Callable[[Tensor, int], dict[str, Tensor]]  # (rows [B], width) -> losses by name


class HostAdamW:
    """What torch.optim.AdamW does on a CPU, without the seconds that its first use takes to import.

    groups: weights that share a decay. The step is torch's own fused one.
    """

    def __init__(self, groups: list[tuple[list[Tensor], float]]) -> None:
        self.groups = [
            (
                weights,
                [torch.zeros_like(w) for w in weights],  # means of gradients
                [torch.zeros_like(w) for w in weights],  # means of their squares
                [torch.zeros(()) for _ in weights],  # steps done
                decay,
            )
            for weights, decay in groups
        ]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One step along the weights' gradients."""
        for weights, means, squares, steps, decay in self.groups:
            torch._foreach_add_(steps, 1)
            torch._fused_adamw_(
                weights,
                [w.grad for w in weights if w.grad is not None],
                means,
                squares,
                [],
                steps,
                lr=rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=decay,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
                grad_scale=None,
                found_inf=None,
            )


class Optimiser:
    """Accumulates the gradients of loss terms over batches of rows, then steps.

    `schedule_steps` sets the linear warm-up (a tenth) and the linear decay to zero; with None the
    learning rate is constant.
    """

    def __init__(
        self,
        modules: Iterable[nn.Module],
        learning_rate: float,
        *,
        schedule_steps: int | None = None,
        warmup: float = 0.1,
        weight_decay: float = 0.01,
        clip: float | None = None,
        graphs: bool = True,
    ) -> None:
        modules = list(modules)
        named = [item for module in modules for item in module.named_parameters()]
        chosen = [(name, weight) for name, weight in named if weight.requires_grad]
        self.parameters = [weight for _, weight in chosen]
        self.device = self.parameters[0].device
        on_gpu = self.device.type == "cuda"
        self.graphs = graphs and on_gpu
        self.learning_rate, self.clip = learning_rate, clip
        self.schedule_steps, self.warmup = schedule_steps, warmup
        self.done = 0
        self._rate = torch.tensor(learning_rate, device=self.device)
        # Biases and norms are vectors: they are not decayed.
        decayed: list[Tensor] = [w for _, w in chosen if w.ndim > 1]
        plain: list[Tensor] = [w for _, w in chosen if w.ndim <= 1]
        groups = [(g, d) for g, d in ((decayed, weight_decay), (plain, 0.0)) if g]
        self._adamw = (
            torch.optim.AdamW(
                [{"params": weights, "weight_decay": decay} for weights, decay in groups],
                lr=self._rate,
                fused=True,
                capturable=True,
            )
            if on_gpu
            else HostAdamW(groups)
        )
        for weight in self.parameters:
            weight.grad = torch.zeros_like(weight)
        self._recorded: dict[tuple[Term, int, int], tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self._seen: set[tuple[Term, int, int]] = set()
        self._step_graph: torch.cuda.CUDAGraph | None = None
        self._pool = torch.cuda.graph_pool_handle() if self.graphs else None
        self._sums: dict[str, Tensor] = {}
        self._count = 0

    def accumulate(self, term: Term, rows: Tensor, width: int) -> None:
        """Add the gradient of a term's losses over a batch; their values go into epoch_means."""
        self._count += 1
        key = (term, len(rows), width)
        if not self.graphs:
            self._run(term, rows, width)
        elif key in self._recorded:
            graph, static_rows = self._recorded[key]
            static_rows.copy_(rows)
            graph.replay()
        elif key in self._seen:
            static_rows = rows.clone()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                self._run(term, static_rows, width)
            self._recorded[key] = (graph, static_rows)
            graph.replay()
        else:  # the first time runs plainly, which also warms the libraries up for recording
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._run(term, rows, width)
            torch.cuda.current_stream().wait_stream(stream)
            self._seen.add(key)

    def _run(self, term: Term, rows: Tensor, width: int) -> None:
        on_gpu = self.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu, cache_enabled=False):
            losses = term(rows, width)
        torch.stack([loss.float() for loss in losses.values()]).sum().backward()
        for name, loss in losses.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros((), device=self.device)
            self._sums[name] += loss.detach().float()

    def step(self) -> None:
        """Move the weights along the accumulated gradient and clear it."""
        rate = self.learning_rate * self._schedule()
        self._rate.fill_(rate)
        self.done += 1
        if not self.graphs:
            self._step()
        elif self._step_graph is not None:
            self._step_graph.replay()
        elif self.done < 3:
            self._step()
        else:
            self._step_graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._step_graph, pool=self._pool):
                self._step()
            self._step_graph.replay()

    def _step(self) -> None:
        grads = [weight.grad for weight in self.parameters if weight.grad is not None]
        if self.clip is not None:
            norm = torch.nn.utils.get_total_norm(grads)
            torch.nn.utils.clip_grads_with_norm_(self.parameters, self.clip, norm)
        if isinstance(self._adamw, HostAdamW):
            self._adamw.step(float(self._rate))
        else:
            self._adamw.step()
        torch._foreach_zero_(grads)

    def _schedule(self) -> float:
        if self.schedule_steps is None:
            return 1.0
        warm = max(1, round(self.warmup * self.schedule_steps))
        if self.done < warm:
            return (self.done + 1) / warm
        left = (self.schedule_steps - self.done) / max(1, self.schedule_steps - warm)
        return float(np.clip(left, 0.0, 1.0))

    def epoch_means(self) -> dict[str, float]:
        """The mean of each loss since the last call; the only point that waits for the GPU."""
        means = {name: float(total) / max(1, self._count) for name, total in self._sums.items()}
        for total in self._sums.values():
            total.zero_()
        self._count = 0
        if not all(map(math.isfinite, means.values())):
            raise InputError(
                "training diverged (the loss is not a number); choose a smaller learning rate"
            )
        return means
