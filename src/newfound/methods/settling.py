"""The last step that methods share: from trained features to the prototypes that predict."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.assign import fit_temperature
from newfound.estimate import Estimate
from newfound.kmeans import seeded_kmeans
from newfound.prototypes import class_means
from newfound.task import FeatureMap, Fitted, Task


def settle(
    feature_map: FeatureMap,
    task: Task,
    features: Tensor,
    clusters: np.ndarray,
    k: int,
    *,
    seed: int,
    estimate: Estimate | None = None,
    history: list[dict[str, Any]] | None = None,
) -> Fitted:
    """Prototypes by k-means from the method's clusters, labelled texts held in their category.

    features [N, d] are the feature map's own; clusters [N] count the known categories first. The
    labels in this last step are worth several points of accuracy, and cost a second.
    """
    targets = torch.from_numpy(task.targets).to(features.device)
    clusters_now = torch.from_numpy(clusters).to(features.device)
    centres = class_means(features, clusters_now, k)
    known = len(task.known)
    labelled = class_means(features, targets, known)
    centres[:known] = labelled
    found = seeded_kmeans(features, k, targets, initial=centres, seed=seed)
    prototypes = found.centres.cpu().numpy().astype(np.float32)
    vectors = features.cpu().numpy()
    # How sure to be is learnt from labelled texts that training did not see, if there are enough.
    unseen = np.where(task.learnable, -1, task.targets)
    judged = unseen if (unseen >= 0).sum() >= 20 else task.targets
    return Fitted(
        features=feature_map,
        prototypes=prototypes,
        known=task.known,
        temperature=fit_temperature(vectors, prototypes, judged),
        training_features=vectors,
        labelled_prototypes=labelled.cpu().numpy() if known else None,
        estimate=estimate,
        history=history or [],
    )
