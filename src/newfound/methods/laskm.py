"""LASKM (Vaze et al., Generalized Category Discovery, CVPR 2022), in TEXTOIR's form for texts.

The encoder learns by contrast in a projected space: the two views of a text belong together, and so
do labelled texts of one category; everything else in the batch is pushed apart. The two views are
two passes with dropout. There is no pretraining. Then k-means, with the labelled texts held in
their categories, gives the centres; the category of a text is the nearest of them.

Where this departs from TEXTOIR:
- Half of every batch is labelled, exactly; drawing texts with weights makes it so only on average,
  and leaves a batch without a label now and then, for which the supervised part is not a number.
- A text that stands twice in a batch is no negative of itself.
- Without validation texts the loss says when to stop.
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
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import settle
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Start, StartConfig, begin
from newfound.training.pretraining import Best, validation_inputs


@dataclass(frozen=True)
class LASKMConfig(StartConfig):
    """Settings of LASKM; the defaults are TEXTOIR's."""

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(0, "most epochs of pretraining")
    pretrain_labelled_batch: int = setting(128, "labelled texts a step in pretraining", low=1)
    masked_words: bool = setting(False, "masked-word modelling in pretraining, too")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    epochs: int = setting(100, "most epochs of contrast; `patience` holds for them, too")
    learning_rate: float = setting(5e-5, "learning rate of contrast")
    batch: int = setting(128, "texts a step, each in two views; half of them labelled", low=2)
    temperature: float = setting(0.07, "sharpness of the contrast", low=1e-3)
    projection: int = setting(256, "width of the space that the contrast is computed in", low=1)
    supervised: float = setting(
        0.5,
        "weight of the contrast of labels; that of views has the rest (Vaze et al.: 0.35)",
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
    encoder: Encoder,
    config: LASKMConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by contrast, then k-means with pinned labels."""
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    train(start, task, config, seed, stages)
    return settle(start, task, seed=seed, stages=stages, starts=config.starts)


def train(start: Start, task: Task, config: LASKMConfig, seed: int, stages: Stages) -> None:
    """Train the model by contrast; the epoch whose validation texts cluster best is kept."""
    model, inputs = start.model, start.inputs
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
        rows = batch.rows.chunk(2)[0]  # every text is there twice
        first, second = F.normalize(projection(raw).float(), dim=1).chunk(2)  # [B, projection]
        return contrast(first, second, rows, targets[rows], size, config)

    optimiser = Optimiser(
        [model, projection],
        config.learning_rate,
        schedule_steps=steps * config.epochs,
        graphs=inputs.resident,
    )
    validation = validation_inputs(model, task)
    best = Best([model, projection], config.patience)
    with stages.stage("training", config.epochs) as advance:
        for epoch in range(1, config.epochs + 1):
            model.train()
            # As many steps as a pass over all texts takes, though half of each batch is labelled.
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
            start.pretrained.history.append(line)
            advance(1)
            if best.saw(score):
                break
        best.restore()


def contrast(
    first: Tensor, second: Tensor, rows: Tensor, targets: Tensor, size: int, config: LASKMConfig
) -> dict[str, Tensor]:
    """The two losses of a batch, weighted: two views of texts, labelled ones from `size` on.

    first, second [B, projection] of unit length; rows [B] says which texts they are, targets [B].
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
    model: EncoderFeatures, inputs: Inputs, targets: Tensor, seed: int
) -> float:
    """How well k-means finds the categories of the validation texts, from 0 to 1."""
    from newfound.clustering.metrics import (
        accuracy,  # takes a second that other methods need not wait
    )

    classes = targets.unique().numel()
    found = kmeans(features_of(model, inputs, half=True), classes, seed=seed).labels
    return accuracy(found.cpu().numpy(), targets.cpu().numpy(), ()).all / 100
