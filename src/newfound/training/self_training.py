"""Self-training on K logits, which DTC and CDAC+ share.

1. Centres, from k-means over the logits, give each text a soft assignment q.
2. A sharper target p is computed from q of all texts.
3. Model and centres are trained so that q approaches p.
4. After every epoch a function of the method may replace p.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound.data.task import Task
from newfound.encoding.batching import Batch, shuffled_batches
from newfound.encoding.feature_cache import Inputs, TrainableFeatures, features_of
from newfound.progress import Stages
from newfound.training.best_weights import BestWeights
from newfound.training.losses.student_t import (
    self_training_loss,
    soft_assignment,
    target_distribution,
)
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Prepared
from newfound.training.pretraining import validation_inputs
from newfound.training.resuming import resumable_epochs

# (epoch from 1, q [R, K] of all rows after it) -> the new target [R, K]; None keeps the old one
Refresh = Callable[[int, Tensor], Tensor | None]


@dataclass(frozen=True)
class RefiningConfig:
    """Settings of self-training, taken from a method's own."""

    warm_up: int  # epochs on the first target, before `epochs`
    epochs: int
    learning_rate: float
    batch: int
    patience: int  # epochs without a better NMI of the validation texts
    tolerance: float  # share of texts that change cluster below which training ends


@torch.no_grad()
def start_logits(
    model: TrainableFeatures, inputs: Inputs, rows: np.ndarray, k: int, how: str
) -> None:
    """Add `k` logits to the model, which are zero for the mean feature of the texts in `rows`.

    Their weights are the principal directions of the features ("pca") or torch's initialisation
    ("random").
    """
    raw = features_of(model, inputs, rows, finished=False)
    layer = model.add_logits(k)
    if how == "pca":
        layer.weight.copy_(main_directions(raw, k))
    layer.bias.copy_(-layer.weight @ raw.mean(0))


def main_directions(features: Tensor, count: int) -> Tensor:
    """Return unit vectors [count, d] along which features [N, d] vary most, the first the most.

    Beyond the number of dimensions they are zero.
    """
    centred = features - features.mean(0)
    _, directions = torch.linalg.eigh(centred.T @ centred)  # columns, by growing variance
    found = directions.flip(1).T[:count]
    return torch.cat([found, found.new_zeros(count - len(found), features.shape[1])])


def refine(
    prepared: Prepared,
    task: Task,
    rows: np.ndarray,
    centres: Tensor,
    refresh: Refresh,
    config: RefiningConfig,
    *,
    seed: int,
    stages: Stages,
    changed: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Train model and centres [K, K] on the texts in `rows`; return the centres.

    Training stops when the NMI of the validation texts' clusters has not risen for `patience`
    epochs, and restores the best epoch; or when fewer texts than `tolerance` changed cluster
    between two targets. No other label is used. The learning rate is constant: clusters hardly
    change during a warm-up, which would look like convergence. `changed` holds tensors that
    `refresh` changes in place.
    """
    if config.epochs == 0:
        return centres
    model, inputs = prepared.model, prepared.inputs
    device, rng = model.device, np.random.default_rng(seed)
    learnt = nn.ParameterList([nn.Parameter(centres.clone())])  # trained like weights
    places = torch.from_numpy(rows).to(device)
    q = assignments(model, learnt[0], inputs, rows)
    # Indexed by text, not by position in a batch; only those in `rows` are read.
    target = torch.zeros(len(task.texts), len(centres), device=device)
    target[places] = target_distribution(q)
    labels = q.argmax(1)
    refreshed = torch.zeros((), dtype=torch.int64)  # times that the target was replaced

    def losses(batch: Batch) -> dict[str, Tensor]:
        logits = model.finish(model.from_states(*inputs.batch(batch)))
        q = soft_assignment(logits, learnt[0])
        return {"self_training": self_training_loss(q, target[batch.rows])}

    optimiser = Optimiser([model, learnt], config.learning_rate, graphs=inputs.resident)
    size = min(config.batch, len(rows))
    validation = validation_inputs(model, task)
    best = BestWeights([model, learnt], config.patience)
    with stages.stage("refining", config.warm_up + config.epochs) as advance:
        for epoch in resumable_epochs(
            range(1 - config.warm_up, config.epochs + 1),
            stages.checkpoints,
            "refining",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
            tensors={"target": target, "labels": labels, "refreshed": refreshed, **(changed or {})},
            best=best,
        ):
            model.train()
            for batch in inputs.batches(shuffled_batches(rows, size, rng)):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            line: dict[str, Any] = {"stage": "refining", "epoch": epoch + config.warm_up}
            line |= {"loss": sum(means.values()), **means}
            prepared.pretrained.history.append(line)
            advance(1)
            if epoch < 1:
                continue
            stop = False
            if validation is not None:
                line["validation_nmi"] = validation_nmi(model, learnt[0], validation[0], task)
                stop = best.update(line["validation_nmi"])
            q = assignments(model, learnt[0], inputs, rows)
            new = refresh(epoch, q)
            if new is not None:
                target[places] = new
                line["changed"] = float((q.argmax(1) != labels).float().mean())
                labels.copy_(q.argmax(1))
                refreshed += 1
                # The first refresh is too early to judge convergence.
                stop |= int(refreshed) > 1 and line["changed"] < config.tolerance
            if stop:
                break
        best.restore()
    return learnt[0].detach()


def validation_nmi(model: TrainableFeatures, centres: Tensor, inputs: Inputs, task: Task) -> float:
    """Return the NMI of the validation texts' clusters and their labels."""
    from sklearn.metrics import normalized_mutual_info_score  # slow to import

    found = assignments(model, centres, inputs).argmax(1).cpu().numpy()
    return float(normalized_mutual_info_score(task.validation_targets, found))


@torch.no_grad()
def assignments(
    model: TrainableFeatures, centres: Tensor, inputs: Inputs, rows: np.ndarray | None = None
) -> Tensor:
    """Return q [R, K] of all texts or the given rows, without dropout."""
    return soft_assignment(features_of(model, inputs, rows), centres)
