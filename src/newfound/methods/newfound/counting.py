"""Count the categories: cluster into far too many, and merge; a small table several times.

What is left after merging is not only a number. It is also the clustering that the method starts
from: k-means with centres of its own would find other categories than those that were counted.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import nearest
from newfound.clustering.estimate import Estimate
from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.neighbours import nearest_neighbours, neighbour_count
from newfound.clustering.prototypes import class_means
from newfound.data.task import Task
from newfound.methods.newfound.class_prior import UNTOLD, WEAK, uniform_prior
from newfound.methods.newfound.config import SMALL_TABLE, NewfoundConfig
from newfound.methods.newfound.initialisation import train_round
from newfound.methods.newfound.known_prior import known_log_odds
from newfound.methods.newfound.many_known import estimate_with_many_known
from newfound.methods.newfound.merging import (
    Merged,
    link_number,
    starting_number,
)
from newfound.methods.newfound.pseudo_labels import Priors
from newfound.progress import Stages

COUNTS = 3  # times that a small table is counted; the median counts
FEW_KNOWN = 6  # known categories with which the strength is halfway, see `counting_strength`
MIN_TEXTS = 8  # that there must be to count categories
MIN_VARIANCE = 1e-12  # of the points


@dataclass(frozen=True, eq=False)
class Counted:
    """The number of categories, and the clustering that it was read from."""

    estimate: Estimate
    labels: Tensor | None  # [N], labelled texts have their own; None: there was nothing to count


def count_categories(points: Tensor, task: Task, config: NewfoundConfig, *, seed: int) -> Counted:
    """Estimate the number of categories.

    Parameters
    ----------
    points : Tensor of shape [N, d]
    task : Task
    config : NewfoundConfig
    seed : int
        Random seed of the first clustering; each further one adds one.

    Returns
    -------
    Counted
        The clustering with the median number. The range is that of all clusterings.
    """
    targets = torch.from_numpy(task.targets).to(points.device)
    unlabelled, known = int((targets < 0).sum()), len(task.known)
    if unlabelled == 0 or len(points) < MIN_TEXTS or float(points.var(0).sum()) < MIN_VARIANCE:
        least = max(known, 1)
        how = "there is nothing to discover: every text is labelled, or hardly any differ."
        return Counted(Estimate(least, [least], [1.0], least, least, how), None)
    k = starting_number(known, unlabelled)
    unit = F.normalize(points.float(), dim=1)
    count = neighbour_count(len(points), k, config.neighbour_share)
    neighbours = nearest_neighbours(points, max(count, link_number(len(points), k)))
    log_odds = known_log_odds(unit, neighbours[:, :count], targets)
    prior = uniform_prior(k, counting_strength(known)).to(points.device)
    priors = Priors(log_odds, config.known_prior, prior)
    runs = []
    for run in range(COUNTS if len(points) <= SMALL_TABLE else 1):
        start = constrained_kmeans(points, k, targets, starts=1, seed=seed + run).labels
        found, _ = train_round(
            unit, task, start, config, priors, seed=seed + run, stages=Stages(False)
        )
        labels = torch.where(targets >= 0, targets, found)
        counted = estimate_with_many_known(unit, neighbours, labels, targets, k, seed=seed + run)
        runs.append(counted)
    runs.sort(key=lambda run: run[0].n_categories)
    estimate, merged = runs[len(runs) // 2]
    estimate = replace(
        estimate, low=min(run.low for run, _ in runs), high=max(run.high for run, _ in runs)
    )
    return Counted(estimate, _completed(merged, unit, targets))


def counting_strength(known: int) -> float:
    """Return how firmly sizes are held in the clustering into far too many categories.

    Weakly, so that superfluous categories stay empty. But a handful of known categories would then
    absorb everything, so with few of them sizes are held more firmly.

    Examples
    --------
    >>> [round(counting_strength(known), 2) for known in (0, 2, 6, 12, 60)]
    [0.2, 0.49, 0.35, 0.23, 0.2]
    """
    if known == 0:
        return WEAK
    return WEAK + (UNTOLD - WEAK) / (1 + (known / FEW_KNOWN) ** 3)


def _completed(merged: Merged, unit: Tensor, targets: Tensor) -> Tensor:
    """Return labels [N] in which texts of dropped categories have joined the nearest one."""
    means = F.normalize(class_means(unit, merged.labels, merged.k), dim=1)
    labels = torch.where(merged.labels < 0, nearest(unit, means)[0], merged.labels)
    return torch.where(targets >= 0, targets, labels)
