"""DTC: Deep Transfer Clustering with a temporally averaged target (Han et al., ICCV 2019).

The form that TEXTOIR runs on texts: the paper's variant "TEP", without a consistency term.

1. Pretrain on the labels (cross-entropy).
2. Add a layer of K logits; run k-means over the unlabelled texts' logits, which gives K centres.
3. Self-train model and centres: teach each text's soft assignment q to the centres a sharper target
   p. The first epochs keep the first p; later p comes from a running average of q over the epochs,
   which is less noisy than a single epoch.
4. A text belongs to its nearest centre.

Departures from TEXTOIR:

- The K logits start as the K principal directions of the features, as in the paper. TEXTOIR
  initialises them at random, which makes the assignments so uniform that self-training changes
  little.
- Features are the encoder's pooled vector, as for all methods here, without a dense layer and ReLU.
- The learning rate of self-training is constant.
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
from newfound.encoding.feature_cache import features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_centres
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.losses.student_t import target_distribution
from newfound.training.preparation import PreparationConfig, Prepared, prepare
from newfound.training.self_training import RefiningConfig, refine, start_logits


@dataclass(frozen=True)
class DTCConfig(PreparationConfig):
    """Settings of DTC; defaults follow TEXTOIR unless noted."""

    normalise: bool = setting(
        True, "scale features to unit length to count categories; logits are not scaled"
    )
    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    patience: int = setting(
        10, "epochs without a better validation accuracy, later NMI, before training stops"
    )
    pretrain_learning_rate: float = setting(5e-4, "learning rate of pretraining (theirs: 2e-5)")
    pretrain_labelled_batch: int = setting(128, "labelled texts per step in pretraining", low=1)
    masked_words: bool = setting(False, "add masked-word modelling to pretraining")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in self-training")
    logits_start: Literal["pca", "random"] = setting(
        "pca", "initialisation of the K logits: principal directions of the features, or random"
    )
    warm_up: int = setting(10, "epochs of self-training on the first target")
    epochs: int = setting(100, "maximum number of epochs of self-training after that")
    refresh: int = setting(5, "recompute the target every so many epochs; 0 (ablation): never")
    momentum: float = setting(0.6, "weight of earlier epochs in the averaged assignment", high=0.99)
    learning_rate: float = setting(2e-5, "learning rate of self-training, constant")
    batch: int = setting(128, "texts per step in self-training", low=1)
    tolerance: float = setting(
        0.001,
        "without validation texts: stop when a smaller share of texts changed between targets",
        high=1,
    )
    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "trainable_layers": 0,
        "warm_up": 2,
        "epochs": 20,
        "learning_rate": 5e-4,
        "starts": 3,
    },
    "balanced": {
        "pretrain_epochs": 20,
        "patience": 5,
        "pretrain_learning_rate": 5e-5,
        "warm_up": 1,
        "epochs": 6,
        "learning_rate": 1e-4,
        "starts": 5,
    },
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: DTCConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DTC."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    centres = train(prepared, task, config, seed, stages)
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


def train(prepared: Prepared, task: Task, config: DTCConfig, seed: int, stages: Stages) -> Tensor:
    """Add K logits to the model and self-train it with K centres; return the centres."""
    model, inputs = prepared.model, prepared.inputs
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rows = task.unlabelled
    if len(rows) < prepared.k:  # nearly everything is labelled
        rows = np.arange(len(task.texts))
    with stages.stage("clustering"):
        start_logits(model, inputs, rows, prepared.k, config.logits_start)
        features = features_of(model, inputs, rows)
        centres = kmeans(features, prepared.k, starts=config.starts, seed=seed).centres
    total = centres.new_zeros(len(rows), prepared.k)
    return refine(
        prepared,
        task,
        rows,
        centres,
        AveragedTarget(total, config.momentum, config.refresh),
        RefiningConfig(
            warm_up=config.warm_up,
            epochs=config.epochs,
            learning_rate=config.learning_rate,
            batch=config.batch,
            patience=config.patience,
            tolerance=0.0 if task.validation_texts else config.tolerance,
        ),
        seed=seed,
        stages=stages,
        changed={"total": total},
    )


class AveragedTarget:
    """The target from a running average over epochs: Z <- momentum Z + (1 - momentum) q.

    `total`, which is Z [R, K] and is changed in place, starts at zero, so Z / (1 - momentum^t) is
    the average after epoch t. The target is recomputed after epochs 1, 1 + every, 1 + 2 every and
    so on; never if `every` is 0.
    """

    def __init__(self, total: Tensor, momentum: float, every: int) -> None:
        self.total, self.momentum, self.every = total, momentum, every

    def __call__(self, epoch: int, q: Tensor) -> Tensor | None:
        """Return the new target [R, K] after an epoch (from 1) that gave q [R, K], or None."""
        self.total.copy_(self.momentum * self.total + (1 - self.momentum) * q)
        if self.every == 0 or (epoch - 1) % self.every:
            return None
        return target_distribution(self.total / (1 - self.momentum**epoch))
