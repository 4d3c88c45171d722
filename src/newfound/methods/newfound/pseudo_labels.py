"""Pseudo-label training with priors that come from the labels.

It differs from swapped prediction without priors (`training.swapped_prediction`):

1. The log-odds that a text is known are added to its scores of known categories before the optimal
   transport.
2. The transport is held to an estimated class prior, more or less strongly (`class_prior`).
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs
from newfound.encoding.feature_maps import EncoderFeatures, PointFeatures
from newfound.methods.newfound.class_prior import ClassPrior
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.swapped_prediction import SwappedPredictionConfig, train_swapped


@dataclass(frozen=True, eq=False)
class Priors:
    """Priors of the unlabelled texts, estimated from the labels."""

    known_log_odds: Tensor  # [N]: that a text is of a known category, from its neighbours' labels
    known_prior: bool  # whether pseudo-labels use these log-odds
    class_prior: ClassPrior


def train_pseudo_labels(
    model: EncoderFeatures | PointFeatures,
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
) -> list[dict[str, Any]]:
    """Train model and classifier on labels and pseudo-labels, in place; return the losses.

    Parameters
    ----------
    model, inputs, classifier, features, task, config, seed, stages, stage
        As in `train_swapped`.
    priors : Priors
    """
    numbers = torch.arange(len(classifier.rows), device=model.device)
    known = (numbers < len(task.known)).float()  # [K]

    def log_prior(rows: Tensor) -> Tensor:
        return priors.known_log_odds[rows, None] * known  # [R, K]

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
    )
