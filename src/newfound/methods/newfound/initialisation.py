"""Initial clustering: k-means, then rounds of pseudo-label training on fixed points.

A model that trains on its own pseudo-labels confirms its own mistakes: features move to where the
labels put them, and two categories that began as one stay merged. So a round passes on nothing but
its labels; the next starts again from points that no training has moved.

1. Run k-means with the labelled texts pinned, and improve it by split-merge moves.
2. Update the class prior by the sizes found (`class_prior.update_class_prior`).
3. Every round: start a residual head and a cosine classifier at the means of the present labels,
   train them on pseudo-labels, assign each text to its nearest prototype, update the class prior.
4. Repeat with other seeds and keep the clustering of least pseudo-label loss: where categories were
   merged or split, the two views of a text agree less.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import nearest
from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.prototypes import class_means
from newfound.clustering.split_merge import split_merge
from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.newfound.class_prior import update_class_prior
from newfound.methods.newfound.pseudo_labels import Priors, train_pseudo_labels
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.swapped_prediction import SwappedPredictionConfig


@dataclass(frozen=True, eq=False)
class InitialClustering:
    """The categories that training starts from."""

    labels: Tensor  # [N]; labelled texts have their own
    class_prior: Tensor  # [K]: share of the unlabelled texts that each category has
    loss: float  # of the pseudo-labels in the last epoch; 0 without rounds
    history: list[dict[str, Any]] = field(default_factory=list)  # losses of each epoch


def best_initial_clustering(
    points: Tensor,
    task: Task,
    config: SwappedPredictionConfig,
    priors: Priors,
    *,
    rounds: int,
    runs: int,
    split_merge_every: int,
    seed: int,
    stages: Stages,
) -> InitialClustering:
    """Compute initial clusterings with different seeds and return the one of least loss.

    Its history holds the losses of all of them; `run` numbers the clusterings, and `chosen` marks
    the lines of the one that is returned.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    task : Task
    config : SwappedPredictionConfig
        Settings of every round.
    priors : Priors
    rounds : int
        Rounds of pseudo-label training; 0: k-means only, once.
    runs : int
        How many clusterings to compute.
    split_merge_every : int
        Epochs between split-merge moves; 0: none, neither after k-means.
    seed : int
        Random seed of the first run; each run adds one.
    stages : Stages
    """
    found = [
        initial_clustering(
            points,
            task,
            config,
            priors,
            rounds=rounds,
            split_merge_every=split_merge_every,
            seed=seed + run,
            stages=stages,
        )
        for run in range(runs if rounds else 1)
    ]
    best = min(found, key=lambda clustering: clustering.loss)
    lines = [
        {**line, "run": run, "chosen": clustering is best}
        for run, clustering in enumerate(found, start=1)
        for line in clustering.history
    ]
    history = [{**line, "epoch": epoch} for epoch, line in enumerate(lines, start=1)]
    return replace(best, history=history)


def initial_clustering(
    points: Tensor,
    task: Task,
    config: SwappedPredictionConfig,
    priors: Priors,
    *,
    rounds: int,
    split_merge_every: int,
    seed: int,
    stages: Stages,
) -> InitialClustering:
    """Compute one initial clustering of `points` [N, d]; see `best_initial_clustering`."""
    targets, k = torch.from_numpy(task.targets).to(points.device), len(priors.class_prior)
    with stages.stage("clustering"):
        found = constrained_kmeans(points, k, targets, starts=1, seed=seed)
        if split_merge_every:
            found = split_merge(points, targets, priors.known_log_odds, found, seed=seed)
    labels, loss = found.labels, 0.0
    free = torch.from_numpy(~task.learnable).to(points.device)
    class_prior = update_class_prior(priors.class_prior, labels[free], priors.size_variation)
    unit = F.normalize(points.float(), dim=1)
    inputs = Inputs(unit, np.ones(len(unit), np.int64), unit.device)
    history: list[dict[str, Any]] = []
    for round_ in range(rounds):
        torch.manual_seed(seed + round_)
        model = PointFeatures(unit.shape[1]).to(unit.device)
        classifier = CosineClassifier(class_means(unit, labels, k), unit.mean(0))
        losses = train_pseudo_labels(
            model,
            inputs,
            classifier,
            unit,
            task,
            config,
            replace(priors, class_prior=class_prior),
            seed=seed + round_,
            stages=stages,
            stage="initialisation",
            split_merge_every=split_merge_every,
        )
        loss = float(losses[-1]["pseudo_labels"]) if losses else 0.0
        history += [{**line, "round": round_ + 1} for line in losses]
        features = features_of(model, inputs)
        assigned = nearest(features, classifier.prototypes(features))[0]
        labels = torch.where(targets >= 0, targets, assigned)
        class_prior = update_class_prior(priors.class_prior, assigned[free], priors.size_variation)
    return InitialClustering(labels, class_prior, loss, history)
