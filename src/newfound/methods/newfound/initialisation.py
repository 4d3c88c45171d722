"""A draft of the categories: k-means, then rounds of self-made labels on vectors that stand still.

What trains on its own labels comes to agree with its own mistakes: features move to where the
labels put them, and two categories that began as one lie together for good. So a round hands
nothing on but its labels. The next begins with a fresh head, at the means that these labels have
among vectors that nothing has moved.

Labels are balanced to expected shares. Where known categories differ in size by more than chance,
novel ones will, too, and nobody knows which are the large ones: there, and by half where labels are
too few to tell, the sizes that k-means and then each round found are expected in the next.

Drafts with other seeds come out otherwise. Where categories were merged or cut in two, the two
views of a text agree less, so the loss of the self-made labels says which draft to keep.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import nearest
from newfound.clustering.kmeans import seeded_kmeans
from newfound.clustering.optimal_transport import heeded_shares
from newfound.clustering.prototypes import class_means
from newfound.clustering.split_merge import relocate
from newfound.data.task import Task
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.self_labelling import CosineHead, Hints, SelfLabellingConfig, train
from newfound.progress import Stages

EPOCHS = 4  # of a round
RATE = 2e-3  # of the head's learning
QUEUE = 16  # recent texts a category that are balanced with a batch


@dataclass(frozen=True, eq=False)
class Draft:
    """Categories to begin from."""

    labels: Tensor  # [N]; labelled texts have their own
    shares: Tensor  # [K]: what each category is expected to have of the unlabelled texts
    doubt: float  # the loss of self-made labels in the last epoch; 0 where none were made


def best_draft(
    points: Tensor,
    task: Task,
    config: SelfLabellingConfig,
    hints: Hints,
    *,
    rounds: int,
    tries: int,
    seed: int,
    stages: Stages,
) -> Draft:
    """Of drafts that differ by their seeds, the one with the least doubt."""
    drafts = [
        make_draft(points, task, config, hints, rounds=rounds, seed=seed + turn, stages=stages)
        for turn in range(tries if rounds else 1)
    ]
    return min(drafts, key=lambda draft: draft.doubt)


def make_draft(
    points: Tensor,
    task: Task,
    config: SelfLabellingConfig,
    hints: Hints,
    *,
    rounds: int,
    seed: int,
    stages: Stages,
) -> Draft:
    """Categories of `points` [N, d]; `config` says how labels are made in each round."""
    targets, k = torch.from_numpy(task.targets).to(points.device), len(hints.shares)
    with stages.stage("clustering"):
        found = seeded_kmeans(points, k, targets, starts=1, seed=seed)
        if hints.relocate_every:
            found = relocate(points, targets, hints.odds, found, seed=seed)
    labels, doubt = found.labels, 0.0
    free = torch.from_numpy(~task.learnable).to(points.device)
    shares = heeded_shares(hints.shares, labels[free], hints.uneven)
    unit = F.normalize(points.float(), dim=1)
    inputs = Inputs(unit, np.ones(len(unit), np.int64), unit.device)
    for turn in range(seed, seed + rounds):
        torch.manual_seed(turn)
        model = PointFeatures(unit.shape[1]).to(unit.device)
        head = CosineHead(class_means(unit, labels, k), unit.mean(0))
        expecting = replace(hints, shares=shares)
        history = train(
            model, inputs, head, unit, task, config, turn, stages, expecting, name="drafting"
        )
        doubt = float(history[-1]["self_labels"]) if history else 0.0
        features = features_of(model, inputs)
        nearby = nearest(features, head.prototypes(features))[0]
        labels = torch.where(targets >= 0, targets, nearby)
        shares = heeded_shares(hints.shares, nearby[free], hints.uneven)
    return Draft(labels, shares, doubt)
