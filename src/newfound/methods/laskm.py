"""LASKM: Label Assignment with Semi-supervised K-Means (Vaze et al., CVPR 2022), as in TEXTOIR.

The encoder is trained by contrastive learning in a projected space; there is no pretraining.

1. Make two views of each text by two passes with dropout.
2. Pull together the two views of a text, and labelled texts of one category; push everything else
   in the batch apart. The two contrastive losses are added with weights.
3. Restore the epoch with the best clustering accuracy of the validation texts.
4. Run k-means with pinned labels over the features; a text belongs to the nearest centre.

Departures from TEXTOIR:

- Exactly half of every batch is labelled. Weighted sampling achieves that only on average, and a
  batch without labels makes the supervised loss undefined.
- A text that occurs twice in a batch is not a negative of itself.
- Without validation texts the loss decides when to stop.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.kmeans import kmeans
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, paired_batches
from newfound.encoding.feature_cache import Inputs, TrainableFeatures, features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_kmeans
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.best_weights import BestWeights
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import PreparationConfig, Prepared, prepare
from newfound.training.pretraining import validation_inputs
from newfound.training.resuming import resumable_epochs


@dataclass(frozen=True)
class LASKMConfig(PreparationConfig):
    """Settings of LASKM; defaults follow TEXTOIR."""

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(0, "maximum number of epochs of pretraining")
    pretrain_labelled_batch: int = setting(128, "labelled texts per step in pretraining", low=1)
    masked_words: bool = setting(False, "add masked-word modelling to pretraining")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    epochs: int = setting(
        100, "maximum number of epochs of contrastive training; `patience` applies, too"
    )
    learning_rate: float = setting(5e-5, "learning rate of contrastive training")
    batch: int = setting(128, "texts per step, each in two views; half of them labelled", low=2)
    temperature: float = setting(0.07, "temperature of the contrastive loss", low=1e-3)
    projection: int = setting(
        256, "width of the space that the contrastive loss is computed in", low=1
    )
    supervised: float = setting(
        0.5,
        "weight of the loss on labels; that on views has the rest (Vaze et al.: 0.35)",
        high=1,
    )
    starts: int = setting(100, "starts of the last k-means", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "trainable_layers": 0,
        "epochs": 10,
        "learning_rate": 1e-4,
        "starts": 5,
    },
    "balanced": {"epochs": 3, "starts": 10},
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: LASKMConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by contrastive training, then k-means with pinned labels."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    train(prepared, task, config, seed, stages)
    return finalise_with_kmeans(prepared, task, seed=seed, stages=stages, starts=config.starts)


def train(prepared: Prepared, task: Task, config: LASKMConfig, seed: int, stages: Stages) -> None:
    """Train the model by contrastive learning; restore the best epoch by validation accuracy."""
    model, inputs = prepared.model, prepared.inputs
    n, device = len(task.texts), model.device
    if config.epochs == 0 or n < 2 or not any(w.requires_grad for w in model.parameters()):
        return
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    projection = nn.Sequential(
        nn.Linear(model.width, model.width), nn.ReLU(), nn.Linear(model.width, config.projection)
    ).to(device)
    targets = torch.from_numpy(task.targets).to(device)
    # Held-out texts keep their label from training, so they count as unlabelled here.
    free, learnable = np.flatnonzero(~task.learnable), np.flatnonzero(task.learnable)
    if config.supervised == 0:
        learnable = learnable[:0]
    labelled_size = min(config.batch // 2, len(learnable))
    free = free if len(free) and labelled_size else np.arange(n)
    size = min(config.batch - labelled_size, len(free))
    steps = -(-n // (size + labelled_size))

    def losses(batch: Batch) -> dict[str, Tensor]:
        raw = model.from_states(*inputs.batch(batch))
        rows = batch.rows.chunk(2)[0]  # every text occurs twice
        first, second = F.normalize(projection(raw).float(), dim=1).chunk(2)  # [B, projection]
        return contrast(first, second, rows, targets[rows], size, config)

    optimiser = Optimiser(
        [model, projection],
        config.learning_rate,
        schedule_steps=steps * config.epochs,
        graphs=inputs.resident,
    )
    validation = validation_inputs(model, task)
    best = BestWeights([model, projection], config.patience)
    with stages.stage("training", config.epochs) as advance:
        for epoch in resumable_epochs(
            range(1, config.epochs + 1),
            stages.checkpoints,
            "training",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
            best=best,
        ):
            model.train()
            # As many steps as one pass over all texts, although half of each batch is labelled.
            some = rng.permutation(free)[: steps * size]
            drawn = paired_batches(some, size, learnable, labelled_size, rng)
            for batch in inputs.batches(np.concatenate([drawn, drawn], axis=1)):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            total = sum(means.values())
            line = {"stage": "training", "epoch": epoch, "loss": total, **means}
            score = -total
            if validation is not None:
                score = clustering_accuracy(model, *validation, seed)
                line["validation_accuracy"] = score
            prepared.pretrained.history.append(line)
            advance(1)
            if best.update(score):
                break
        best.restore()


def contrast(
    first: Tensor, second: Tensor, rows: Tensor, targets: Tensor, size: int, config: LASKMConfig
) -> dict[str, Tensor]:
    """Return the two weighted losses of a batch of two views; texts from `size` on are labelled.

    first, second [B, projection] of unit length; rows [B] are the texts' numbers, targets [B].
    """
    same_text = rows[:, None] == rows
    of_views = contrastive_loss(first, second, same_text, config.temperature)
    if len(rows) == size:
        return {"views": of_views}
    same_label = targets[size:, None] == targets[size:]
    of_labels = contrastive_loss(first[size:], second[size:], same_label, config.temperature)
    return {
        "views": (1 - config.supervised) * of_views,
        "labels": config.supervised * of_labels,
    }


def clustering_accuracy(
    model: TrainableFeatures, inputs: Inputs, targets: Tensor, seed: int
) -> float:
    """Return the accuracy of k-means on the validation texts, from 0 to 1."""
    from newfound.clustering.metrics import accuracy  # slow to import: it needs scikit-learn

    classes = targets.unique().numel()
    found = kmeans(features_of(model, inputs, half=True), classes, seed=seed).labels
    return accuracy(found.cpu().numpy(), targets.cpu().numpy(), ()).all / 100
