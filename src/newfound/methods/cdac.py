"""CDAC+: Constrained Deep Adaptive Clustering with cluster refinement (Lin et al., AAAI 2020).

The model learns K logits from pairs of texts, whose similarity is the cosine of their logits
(`newfound.training.losses.pairwise`). There is no pretraining.

1. Add a layer of K logits to the encoder.
2. Every epoch, pull similar pairs together and push dissimilar ones apart. Labels decide for pairs
   of labelled texts, two thresholds for all others; pairs between the thresholds are ignored. The
   thresholds move closer from epoch to epoch, from easy pairs to hard ones, until they meet.
3. Run k-means over the logits, which gives K centres.
4. Refine: self-train model and centres on a sharper target, recomputed after every epoch.
5. A text belongs to its nearest centre.

Departures from the published code:

- Refinement trains the model that is returned (TEXTOIR's optimiser holds a copy).
- Validation texts decide when to stop, never the hidden labels of training texts.
- A pair of labelled texts is in one mask only, and batches are shuffled.
- Logits start as the K principal directions of the features, and are zero for the mean text. The
  vectors of many encoders have similar directions, so every pair would start above the upper
  threshold; and few random directions hardly separate texts.
- The learning rate of refinement is constant.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, shuffled_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_centres
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.losses.pairwise import (
    choose_pairs,
    pair_loss,
    same_label,
    similarities,
    threshold_schedule,
)
from newfound.training.losses.student_t import target_distribution
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import PreparationConfig, Prepared, prepare
from newfound.training.resuming import resumable_epochs
from newfound.training.self_training import RefiningConfig, refine, start_logits


@dataclass(frozen=True)
class CDACConfig(PreparationConfig):
    """Settings of CDAC+; defaults follow TEXTOIR unless noted."""

    normalise: bool = setting(
        True, "scale features to unit length to count categories; logits are not scaled"
    )
    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(0, "maximum number of epochs of pretraining; CDAC+ has none")
    patience: int = setting(
        6, "epochs of refinement without a better NMI of the validation texts before it stops"
    )
    masked_words: bool = setting(False, "add masked-word modelling to pretraining")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    logits_start: Literal["pca", "random"] = setting(
        "pca", "initialisation of the K logits: principal directions of the features, or random"
    )
    tightening: float = setting(
        0.0099,
        "how much closer the thresholds move each epoch; they meet after 0.45 in all",
        low=1e-3,
    )
    labelled_weight: float = setting(5.0, "weight of the loss on pairs of labelled texts")
    thresholds: bool = setting(True, "ablation: False trains on pairs of labelled texts only")
    epochs: int = setting(100, "maximum number of epochs of refinement")
    learning_rate: float = setting(5e-5, "learning rate of both stages")
    batch: int = setting(256, "texts per step, all pairs of which are compared", low=1)
    tolerance: float = setting(
        0.001, "stop refinement when a smaller share of texts changed cluster in an epoch", high=1
    )
    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "trainable_layers": 0,
        "tightening": 0.03,
        "epochs": 10,
        "learning_rate": 5e-4,
        "starts": 3,
    },
    "balanced": {
        "tightening": 0.08,
        "epochs": 3,
        "learning_rate": 1e-4,
        "starts": 5,
    },
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: CDACConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with CDAC+."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    everything = np.arange(len(task.texts))
    start_logits(prepared.model, prepared.inputs, everything, prepared.k, config.logits_start)
    train_on_pairs(prepared, task, config, seed, stages)
    with stages.stage("clustering"):
        logits = features_of(prepared.model, prepared.inputs)
        centres = kmeans(logits, prepared.k, starts=config.starts, seed=seed).centres
    centres = refine(
        prepared,
        task,
        everything,
        centres,
        lambda epoch, q: target_distribution(q),
        RefiningConfig(
            warm_up=0,
            epochs=config.epochs,
            learning_rate=config.learning_rate,
            batch=config.batch,
            patience=config.patience,
            tolerance=config.tolerance,
        ),
        seed=seed,
        stages=stages,
    )
    with stages.stage("finalising"):
        return finalise_with_centres(
            prepared.model,
            task,
            features_of(prepared.model, prepared.inputs),
            centres,
            inputs=prepared.inputs,
            estimate=prepared.estimate,
            history=prepared.pretrained.history,
        )


def train_on_pairs(
    prepared: Prepared, task: Task, config: CDACConfig, seed: int, stages: Stages
) -> None:
    """Step 2: each epoch passes over the labelled texts, then over all texts."""
    model, inputs = prepared.model, prepared.inputs
    device, rng = model.device, np.random.default_rng(seed)
    # Held-out texts count as unlabelled: nothing may learn from their labels.
    labels = np.where(task.learnable, task.targets, -1)
    targets = torch.from_numpy(labels).to(device)
    everything, labelled = np.arange(len(task.texts)), np.flatnonzero(task.learnable)
    size, labelled_size = min(config.batch, len(everything)), min(config.batch, len(labelled))
    schedule = threshold_schedule(config.tightening)
    bounds = torch.zeros(2, device=device)  # upper and lower, changed in place

    def on_labels(batch: Batch) -> dict[str, Tensor]:
        similar = similarities(model.finish(model.from_states(*inputs.batch(batch))))
        _, same = same_label(targets[batch.rows])
        return {"labelled_pairs": config.labelled_weight * pair_loss(similar, same, ~same)}

    def on_all(batch: Batch) -> dict[str, Tensor]:
        similar = similarities(model.finish(model.from_states(*inputs.batch(batch))))
        upper, lower = (bounds[0], bounds[1]) if config.thresholds else (2.0, -1.0)
        chosen = choose_pairs(similar, targets[batch.rows], upper, lower)
        return {"pairs": pair_loss(similar, *chosen)}

    parts = [("labelled_pairs", on_labels, labelled, labelled_size)] if labelled_size else []
    parts += [("pairs", on_all, everything, size)]
    steps = sum(-(-len(rows) // count) for _, _, rows, count in parts)  # per epoch
    optimiser = Optimiser(
        [model],
        config.learning_rate,
        schedule_steps=steps * len(schedule),
        graphs=inputs.resident,
    )
    with stages.stage("training", len(schedule)) as advance:
        for epoch in resumable_epochs(
            range(1, len(schedule) + 1),
            stages.checkpoints,
            "training",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
        ):
            upper, lower = schedule[epoch - 1]
            bounds.copy_(torch.tensor([upper, lower]))
            model.train()
            means = {}
            for name, term, rows, count in parts:
                for batch in inputs.batches(shuffled_batches(rows, count, rng)):
                    optimiser.accumulate(term, batch)
                    optimiser.step()
                means[name] = optimiser.epoch_means()[name]
            line = {"stage": "training", "epoch": epoch, "loss": sum(means.values()), **means}
            prepared.pretrained.history.append(line | {"upper": upper, "lower": lower})
            advance(1)
