"""Self-Labeling: a cosine classifier learns from pseudo-labels by optimal transport.

Without a constraint on category sizes pseudo-labels collapse into few categories, so they come from
optimal transport with categories of equal size. The DPN paper compares with a "self-labeling
framework" that it does not specify. This is the form of Fini et al., A Unified Objective for Novel
Class Discovery, ICCV 2021, whose transport goes back to Asano et al., ICLR 2020.

1. Pretrain on the labels (cross-entropy).
2. Run k-means with pinned labels; its centres are the directions that a cosine classifier starts
   with.
3. Train model and classifier by swapped prediction: the target of a labelled text is its label, the
   target of any other the pseudo-label of its other view (`training.swapped_prediction`).
4. The category of a text is the one whose direction has the largest cosine with it.

Departures from the published form (temperature, epsilon and iterations are its own):

- Cosines are taken from the mean of the pretrained features. Some encoders place all texts in a
  narrow cone, where every cosine is near one and a label moves all texts towards its category.
- Directions start at the centres of k-means, not at random. At a learning rate that suits an
  encoder, random ones hardly move.
- A queue of recent texts joins the transport of a batch, which may hold fewer texts than there are
  categories. The queue keeps features, not scores, so that the present classifier scores them.
- A step takes unlabelled and labelled texts in fixed numbers, and the two losses are added.
- Words are replaced only if all layers learn. Above frozen layers the two views are two passes with
  dropout.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from newfound.clustering.kmeans import constrained_kmeans
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.feature_cache import features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import make_fitted
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.preparation import PreparationConfig, prepare
from newfound.training.swapped_prediction import SwappedPredictionConfig, train_swapped


@dataclass(frozen=True)
class SelfLabellingConfig(PreparationConfig):
    """Settings of Self-Labeling; temperature, epsilon and iterations are the published ones."""

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_labelled_batch: int = setting(128, "labelled texts per step in pretraining", low=1)
    masked_words: bool = setting(False, "add masked-word modelling to pretraining")
    trainable_layers: Layers = setting("all", "how many of the last layers learn in training")
    epochs: int = setting(50, "epochs of training")
    learning_rate: float = setting(1e-5, "learning rate of training")
    batch: int = setting(128, "unlabelled texts per step, each in two views", low=1)
    labelled_batch: int = setting(32, "labelled texts per step, each in two views", low=1)
    temperature: float = setting(0.1, "temperature of the classifier", low=1e-3)
    epsilon: float = setting(
        0.05, "entropy regularisation of the optimal transport: the larger, the softer", low=1e-3
    )
    sinkhorn_iterations: int = setting(
        3, "iterations of the optimal transport of pseudo-labels; 0: category sizes are free"
    )
    queue: int = setting(32, "recent texts per category that join the transport of a batch")
    replaced_words: float = setting(
        0.225, "share of words replaced at random in each view, if all layers learn", high=1
    )
    starts: int = setting(10, "starts of the first k-means", low=1)

    def swapped_prediction(self) -> SwappedPredictionConfig:
        """Return the part that training reads."""
        return SwappedPredictionConfig(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            batch=self.batch,
            labelled_batch=self.labelled_batch,
            temperature=self.temperature,
            epsilon=self.epsilon,
            sinkhorn_iterations=self.sinkhorn_iterations,
            queue=self.queue,
            replaced_words=self.replaced_words,
        )


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "classifier_from_means": True,
        "trainable_layers": 0,
        "epochs": 10,
        "learning_rate": 5e-4,
        "queue": 16,
        "starts": 3,
    },
    "balanced": {
        "pretrain_epochs": 20,
        "classifier_from_means": True,
        "patience": 5,
        "trainable_layers": 1,
        "epochs": 3,
        "learning_rate": 3e-5,
        "starts": 5,
    },
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: SelfLabellingConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with Self-Labeling."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    model, inputs, history = prepared.model, prepared.inputs, prepared.pretrained.history
    with stages.stage("clustering"):
        features = features_of(model, inputs)
        targets = torch.from_numpy(task.targets).to(features.device)
        found = constrained_kmeans(features, prepared.k, targets, starts=config.starts, seed=seed)
    classifier = CosineClassifier(found.centres, features.mean(0))
    history += train_swapped(
        model,
        inputs,
        classifier,
        features,
        task,
        config.swapped_prediction(),
        seed=seed,
        stages=stages,
    )
    with stages.stage("finalising"):
        features = features_of(model, inputs)
        return make_fitted(
            model,
            task,
            features,
            classifier.prototypes(features),
            inputs=inputs,
            estimate=prepared.estimate,
            history=history,
        )
