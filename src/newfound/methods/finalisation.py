"""The last step that methods share: from trained features to prototypes and a `Fitted`."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.assignment import calibrate
from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.n_categories import Estimate
from newfound.clustering.prototypes import class_means, match_prototypes
from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import FeatureMap
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import Prepared


def finalise_with_kmeans(
    prepared: Prepared, task: Task, *, seed: int, stages: Stages, starts: int = 10
) -> Fitted:
    """Fit prototypes by k-means that keeps labelled texts in their category.

    Centres of known categories start at the means of their labelled texts, the others by k-means++,
    `starts` times. Using the labels in this last step is worth several points of accuracy.
    """
    with stages.stage("finalising"):
        features = features_of(prepared.model, prepared.inputs)
        targets = torch.from_numpy(task.targets).to(features.device)
        centres = stages.checkpoints.compute_tensor(
            "finalising",
            lambda: (
                constrained_kmeans(features, prepared.k, targets, starts=starts, seed=seed).centres
            ),
        ).to(features.device)
        return make_fitted(
            prepared.model,
            task,
            features,
            centres,
            inputs=prepared.inputs,
            estimate=prepared.estimate,
            history=prepared.pretrained.history,
        )


def finalise_with_centres(
    feature_map: FeatureMap,
    task: Task,
    features: Tensor,
    centres: Tensor,
    *,
    inputs: Inputs | None = None,
    estimate: Estimate | None = None,
    history: list[dict[str, Any]] | None = None,
    notes: list[str] | None = None,
) -> Fitted:
    """Take a method's own centres [K, d] as prototypes, in the order of the known categories.

    The means of the labelled texts are matched to the centres one to one (Eqs. 2-3), which decides
    only which centre carries which name.
    """
    order = np.arange(len(centres))
    if len(task.known):
        targets = torch.from_numpy(task.targets).to(features.device)
        order = match_prototypes(class_means(features, targets, len(task.known)), centres).order
    ordered = centres[torch.from_numpy(order).to(centres.device)]
    return make_fitted(
        feature_map,
        task,
        features,
        ordered,
        inputs=inputs,
        estimate=estimate,
        history=history,
        notes=notes,
    )


def make_fitted(
    feature_map: FeatureMap,
    task: Task,
    features: Tensor,
    prototypes: Tensor,
    *,
    inputs: Inputs | None = None,
    estimate: Estimate | None = None,
    history: list[dict[str, Any]] | None = None,
    notes: list[str] | None = None,
) -> Fitted:
    """Calibrate the temperature and assemble what a method returns.

    Parameters
    ----------
    feature_map : FeatureMap
    task : Task
    features : Tensor of shape [N, d]
        Features of the task's texts.
    prototypes : Tensor of shape [K, d]
        Known categories first, in their order.
    inputs : Inputs, optional
        What the feature map's trainable part reads; without it the features stand for it.
    estimate, history, notes
        Passed on to `Fitted`.

    Returns
    -------
    Fitted
    """
    targets = torch.from_numpy(task.targets).to(features.device)
    points = prototypes.detach().cpu().numpy().astype(np.float32)
    vectors = features.cpu().numpy()
    held_out = np.where(task.learnable, -1, task.targets)
    known = len(task.known)
    return Fitted(
        features=feature_map,
        prototypes=points,
        known=task.known,
        temperature=calibrate(vectors, points, held_out),
        training_features=vectors,
        frozen_features=None if inputs is None else inputs.pooled_vectors(),
        labelled_prototypes=(
            class_means(features, targets, known).cpu().numpy() if known else None
        ),
        estimate=estimate,
        history=history or [],
        notes=notes or [],
    )
