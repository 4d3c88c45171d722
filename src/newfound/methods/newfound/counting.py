"""Count the categories: cluster into far too many and merge, then again from twice the number.

1. Cluster into far too many categories, and merge those that the labels show to be one
   (`merging`). This gives a rough number.
2. Cluster into twice as many novel categories as were left, and merge again: most clusters are now
   halves of categories, like the halves of known ones that the merge rule is learnt from.

A small table is counted several times in each pass, and the median counts.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.estimate import Estimate
from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.neighbours import nearest_neighbours, neighbour_count
from newfound.clustering.spectral import LINKS, spectral_features
from newfound.data.task import Task
from newfound.methods.newfound.class_prior import UNTOLD, WEAK, uniform_prior
from newfound.methods.newfound.config import NewfoundConfig
from newfound.methods.newfound.initialisation import STARTS, train_round
from newfound.methods.newfound.known_prior import known_log_odds
from newfound.methods.newfound.many_known import estimate_with_many_known
from newfound.methods.newfound.merging import link_number, starting_number
from newfound.methods.newfound.pseudo_labels import Priors
from newfound.progress import Stages

COUNTS = 3  # times that a small table is counted; the median counts
SMALL_TABLE = 4_000  # texts up to which a table is counted several times
AGAIN = 2  # novel categories of the second pass, per novel category that the first one found
FEW_KNOWN = 6  # known categories with which the strength is halfway, see `counting_strength`
MIN_TEXTS = 8  # that there must be to count categories
MIN_TEXTS_EACH = 3  # per category that the second pass begins with
MIN_VARIANCE = 1e-12  # of the points


def count_categories(points: Tensor, task: Task, config: NewfoundConfig, *, seed: int) -> Estimate:
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
    Estimate
        The median number of the second pass. The range is that of all its clusterings.
    """
    unlabelled, known = int((task.targets < 0).sum()), len(task.known)
    if unlabelled == 0 or len(points) < MIN_TEXTS or float(points.var(0).sum()) < MIN_VARIANCE:
        least = max(known, 1)
        how = "there is nothing to discover: every text is labelled, or hardly any differ."
        return Estimate(least, [least], [1.0], least, least, how)
    k = starting_number(known, unlabelled)
    rough = _count_from(k, points, task, config, spectral=False, seed=seed)
    novel = max(1, rough.n_categories - known)
    most = max(known + novel, len(points) // MIN_TEXTS_EACH)
    k = min(known + AGAIN * novel, most, known + unlabelled)
    return _count_from(k, points, task, config, spectral=True, seed=seed)


def _count_from(
    k: int, points: Tensor, task: Task, config: NewfoundConfig, *, spectral: bool, seed: int
) -> Estimate:
    """Cluster into k categories, on the points or on their spectral features, and merge."""
    count = neighbour_count(len(points), k, config.neighbour_share)
    neighbours = nearest_neighbours(points, max(count, link_number(len(points), k), LINKS))
    targets = torch.from_numpy(task.targets).to(points.device)
    unit = F.normalize(points.float(), dim=1)
    log_odds = known_log_odds(unit, neighbours[:, :count], targets)
    prior = uniform_prior(k, counting_strength(len(task.known))).to(points.device)
    priors = Priors(log_odds, config.known_prior, prior)
    space, starts = points, 1
    if spectral:
        space, starts = spectral_features(points, neighbours, k), STARTS
    found = []
    for draw in range(seed, seed + (COUNTS if len(points) <= SMALL_TABLE else 1)):
        start = constrained_kmeans(space, k, targets, starts=starts, seed=draw).labels
        assigned, _ = train_round(
            unit, task, start, config, priors, seed=draw, stages=Stages(False)
        )
        labels = torch.where(targets >= 0, targets, assigned)
        found.append(estimate_with_many_known(unit, neighbours, labels, targets, k, seed=draw))
    found.sort(key=lambda estimate: estimate.n_categories)
    return replace(
        found[len(found) // 2],
        low=min(estimate.low for estimate in found),
        high=max(estimate.high for estimate in found),
    )


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
