"""Initial clustering: k-means, then rounds of pseudo-label training on fixed points.

A model that trains on its own pseudo-labels confirms its own mistakes: features move to where the
labels put them, and two categories that began as one stay merged. So a round passes on nothing but
its labels; the next starts again from points that no training has moved.

1. Run k-means with the labelled texts pinned, on the spectral features of the points
   (`clustering.spectral`).
2. Train one round with weakly held sizes, and estimate the class prior from what it finds
   (`class_prior.estimate_class_prior`).
3. Start from step 1 again. Every round: start a residual head and a cosine classifier at the
   means of the present labels, train them on pseudo-labels, assign each text to its nearest
   prototype.
4. Repeat with other seeds and keep the clustering of least pseudo-label loss: where categories were
   merged or split, the two views of a text agree less.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.checkpoints import Kept
from newfound.clustering.distances import nearest
from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.prototypes import class_means
from newfound.clustering.spectral import spectral_features
from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.newfound.class_prior import (
    STRONG,
    STRONG_ENCODER,
    STRONG_ESTIMATED,
    UNTOLD,
    WEAK,
    ClassPrior,
    estimate_class_prior,
    uniform_prior,
)
from newfound.methods.newfound.config import NewfoundConfig
from newfound.methods.newfound.pseudo_labels import Priors, train_pseudo_labels
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier

STARTS = 10  # of the k-means


@dataclass(frozen=True, eq=False)
class InitialClustering:
    """The categories that training starts from."""

    labels: Tensor  # [N]; labelled texts have their own
    class_prior: ClassPrior
    loss: float  # of the pseudo-labels in the last epoch; 0 without rounds
    history: list[dict[str, Any]]  # losses of each epoch


def initial_clustering(
    points: Tensor,
    neighbours: Tensor,
    task: Task,
    k: int,
    config: NewfoundConfig,
    known_log_odds: Tensor,
    *,
    seed: int,
    stages: Stages,
    estimated: bool = False,
) -> InitialClustering:
    """Compute initial clusterings with different seeds and return the one of least loss.

    Its history holds the losses of all of them; `run` numbers the clusterings, and `chosen` marks
    the lines of the one that is returned.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    neighbours : Tensor of shape [N, n]
        Nearest neighbours among the points, the nearest first.
    task : Task
    k : int
        Number of categories.
    config : NewfoundConfig
    known_log_odds : Tensor of shape [N]
        Log-odds that each text is of a known category.
    seed : int
        Random seed of the first run; each run adds one.
    stages : Stages
    estimated : bool
        Whether k is an estimate; sizes are then held less strongly.
    """
    targets = torch.from_numpy(task.targets).to(points.device)
    unit = F.normalize(points.float(), dim=1)
    with stages.stage("clustering"):
        spectral = spectral_features(points, neighbours, k)
        starts = [
            constrained_kmeans(spectral, k, targets, starts=STARTS, seed=seed + run).labels
            for run in range(config.initialisation_runs(len(task.texts)))
        ]
    weak = uniform_prior(k, WEAK if len(task.known) else UNTOLD).to(points.device)
    priors = Priors(known_log_odds, config.known_prior, weak)
    history: list[dict[str, Any]] = []
    if config.class_prior and len(task.known):
        found, losses = train_round(unit, task, starts[0], config, priors, seed=seed, stages=stages)
        history += [{**line, "run": 0, "round": 0, "chosen": True} for line in losses]
        strong = STRONG if config.frozen else STRONG_ENCODER
        strong = STRONG_ESTIMATED if estimated else strong
        priors = replace(priors, class_prior=estimate_class_prior(found, targets, k, strong))
    runs = []
    for run, labels in enumerate(starts):
        loss, lines = 0.0, list[dict[str, Any]]()
        for round_ in range(config.initialisation_rounds):
            found, losses = train_round(
                unit, task, labels, config, priors, seed=seed + run + round_, stages=stages
            )
            labels = torch.where(targets >= 0, targets, found)
            loss = float(losses[-1]["pseudo_labels"]) if losses else 0.0
            lines += [{**line, "run": run + 1, "round": round_ + 1} for line in losses]
        runs.append(InitialClustering(labels, priors.class_prior, loss, lines))
    best = min(runs, key=lambda clustering: clustering.loss)
    for clustering in runs:
        history += [{**line, "chosen": clustering is best} for line in clustering.history]
    numbered = [{**line, "epoch": epoch} for epoch, line in enumerate(history, start=1)]
    return replace(best, history=numbered)


def train_round(
    unit: Tensor,
    task: Task,
    labels: Tensor,
    config: NewfoundConfig,
    priors: Priors,
    *,
    seed: int,
    stages: Stages,
) -> tuple[Tensor, list[dict[str, Any]]]:
    """Train a new head and classifier from the means of these labels; return what they assign.

    Parameters
    ----------
    unit : Tensor of shape [N, d]
        Points of unit length.
    task : Task
    labels : Tensor of shape [N]
        Categories to start from.
    config : NewfoundConfig
    priors : Priors
    seed : int
    stages : Stages

    Returns
    -------
    Tensor of shape [N]
        The nearest prototype of every text, labelled ones included.
    list of dict
        Losses of each epoch.
    """

    def work() -> Kept:
        found, losses = _train_round(unit, task, labels, config, priors, seed=seed, stages=stages)
        return Kept(losses, {"found": found})

    kept = stages.checkpoints.compute("initialisation", work)
    return kept.tensors["found"].to(unit.device), kept.value


def _train_round(
    unit: Tensor,
    task: Task,
    labels: Tensor,
    config: NewfoundConfig,
    priors: Priors,
    *,
    seed: int,
    stages: Stages,
) -> tuple[Tensor, list[dict[str, Any]]]:
    """Do the work of `train_round`."""
    k = len(priors.class_prior.shares)
    inputs = Inputs(unit, np.ones(len(unit), np.int64), unit.device)
    torch.manual_seed(seed)
    model = PointFeatures(unit.shape[1]).to(unit.device)
    classifier = CosineClassifier(class_means(unit, labels, k), unit.mean(0))
    losses = train_pseudo_labels(
        model,
        inputs,
        classifier,
        unit,
        task,
        config.initialisation(len(unit), k),
        priors,
        seed=seed,
        stages=stages,
        stage="initialisation",
    )
    features = features_of(model, inputs)
    return nearest(features, classifier.prototypes(features))[0], losses
