"""Pseudo-label training with priors that come from the labels.

It differs from swapped prediction without priors (`training.swapped_prediction`):

1. The log-odds that a text is known are added to its scores of known categories before the optimal
   transport.
2. The transport is held to an estimated class prior, more or less strongly (`class_prior`).
3. Before some epochs split-merge moves change the classifier's directions; none in the last fifth
   of the epochs, so that the result is trained from where it ends.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from newfound.clustering.split_merge import split_merge_directions
from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs, TrainableFeatures, features_of
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.newfound.class_prior import ClassPrior
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.swapped_prediction import SwappedPredictionConfig, train_swapped

WITHOUT_MOVES = 0.2  # share of the epochs, at the end, without split-merge moves


@dataclass(frozen=True, eq=False)
class Priors:
    """Priors of the unlabelled texts, estimated from the labels."""

    known_log_odds: Tensor  # [N]: that a text is of a known category, from its neighbours' labels
    known_prior: bool  # whether pseudo-labels use these log-odds
    class_prior: ClassPrior


def train_pseudo_labels(
    model: TrainableFeatures | PointFeatures,
    inputs: Inputs,
    classifier: CosineClassifier,
    features: Tensor,
    task: Task,
    config: SwappedPredictionConfig,
    priors: Priors,
    *,
    seed: int,
    stages: Stages,
    stage: str,
    split_merge_every: int = 0,
) -> list[dict[str, Any]]:
    """Train model and classifier on labels and pseudo-labels, in place; return the losses.

    Parameters
    ----------
    model, inputs, classifier, features, task, config, seed, stages, stage
        As in `train_swapped`.
    priors : Priors
    split_merge_every : int
        Epochs between split-merge moves; 0: none.
    """
    targets = torch.from_numpy(task.targets).to(model.device)
    numbers = torch.arange(len(classifier.rows), device=model.device)
    known = (numbers < len(task.known)).float()  # [K]

    def log_prior(rows: Tensor) -> Tensor:
        return priors.known_log_odds[rows, None] * known  # [R, K]

    def move(epoch: int) -> bool:
        if not split_merge_due(epoch, config.epochs, split_merge_every):
            return False
        directions = split_merge_directions(
            features_of(model, inputs) - classifier.origin,
            targets,
            priors.known_log_odds,
            classifier.rows,
            seed=seed + epoch,
        )
        if directions is None:
            return False
        classifier.replace_directions(directions)
        return True

    return train_swapped(
        model,
        inputs,
        classifier,
        features,
        task,
        config,
        seed=seed,
        stages=stages,
        stage=stage,
        log_prior=log_prior if priors.known_prior else None,
        class_prior=priors.class_prior.shares,
        strength=priors.class_prior.strength,
        before_epoch=move,
    )


def split_merge_due(epoch: int, epochs: int, every: int) -> bool:
    """Return whether moves precede this epoch: never the first one, nor the last fifth of all."""
    last = (1 - WITHOUT_MOVES) * epochs
    return every > 0 and epoch > 1 and (epoch - 1) % every == 0 and epoch <= last
