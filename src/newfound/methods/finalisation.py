"""The last step that methods share: from trained features to the prototypes that predict."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.assignment import calibrate
from newfound.clustering.kmeans import seeded_kmeans
from newfound.clustering.n_categories import Estimate
from newfound.clustering.prototypes import class_means, match_prototypes
from newfound.data.task import Task
from newfound.encoding.feature_cache import features_of
from newfound.encoding.feature_maps import FeatureMap
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import Start


def settle(start: Start, task: Task, *, seed: int, stages: Stages, starts: int = 10) -> Fitted:
    """Prototypes by k-means that holds labelled texts in their category and starts at their means.

    The other centres start by k-means++, several times. Labels in this last step are worth several
    points of accuracy for a second.
    """
    with stages.stage("settling"):
        features = features_of(start.model, start.inputs)
        targets = torch.from_numpy(task.targets).to(features.device)
        found = seeded_kmeans(features, start.k, targets, starts=starts, seed=seed)
        return fitted_with(
            start.model,
            task,
            features,
            found.centres,
            estimate=start.estimate,
            history=start.pretrained.history,
        )


def settle_on(
    feature_map: FeatureMap,
    task: Task,
    features: Tensor,
    centres: Tensor,
    *,
    estimate: Estimate | None = None,
    history: list[dict[str, Any]] | None = None,
    notes: list[str] | None = None,
) -> Fitted:
    """Prototypes are a method's own centres [K, d], moved not at all.

    Labelled means are matched to them one to one, which only says whose name each one carries.
    """
    order = np.arange(len(centres))
    if len(task.known):
        targets = torch.from_numpy(task.targets).to(features.device)
        order = match_prototypes(class_means(features, targets, len(task.known)), centres).order
    ordered = centres[torch.from_numpy(order).to(centres.device)]
    return fitted_with(
        feature_map, task, features, ordered, estimate=estimate, history=history, notes=notes
    )


def fitted_with(
    feature_map: FeatureMap,
    task: Task,
    features: Tensor,
    centres: Tensor,
    *,
    estimate: Estimate | None = None,
    history: list[dict[str, Any]] | None = None,
    notes: list[str] | None = None,
) -> Fitted:
    """What a method returns, from the features of its texts and its centres, known ones first."""
    targets = torch.from_numpy(task.targets).to(features.device)
    prototypes = centres.detach().cpu().numpy().astype(np.float32)
    vectors = features.cpu().numpy()
    unseen = np.where(task.learnable, -1, task.targets)
    known = len(task.known)
    return Fitted(
        features=feature_map,
        prototypes=prototypes,
        known=task.known,
        temperature=calibrate(vectors, prototypes, unseen),
        training_features=vectors,
        labelled_prototypes=(
            class_means(features, targets, known).cpu().numpy() if known else None
        ),
        estimate=estimate,
        history=history or [],
        notes=notes or [],
    )
