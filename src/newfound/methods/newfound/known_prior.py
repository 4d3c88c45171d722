"""Prior probability that a text belongs to a known category, from the labels near it.

Where labels were given at random to the texts of a known category, another text of that category
has about as many labelled neighbours as its labelled texts have themselves; a text of a novel one
has fewer. Both counts are modelled as Poisson variables. Each category has its own rate: how many
of its texts carry a label may differ from category to category.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import nearest
from newfound.clustering.prototypes import class_means

MIN_PROBABILITY = 0.1  # of known and of novel each, however clear the neighbours' labels are
NOVEL_RATE = 0.4  # labels near a text of a novel category, per label near one of a known category
SMOOTHING = 2.0  # labelled texts of the mean rate that are added to those of each category


@torch.no_grad()
def known_log_odds(points: Tensor, neighbours: Tensor, targets: Tensor) -> Tensor:
    """Log-odds that each text belongs to a known category.

    Parameters
    ----------
    points : Tensor of shape [N, d]
        Points by which each text's most similar known category is found.
    neighbours : Tensor of shape [N, k]
        Row numbers of each text's nearest neighbours.
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.

    Returns
    -------
    Tensor of shape [N]
        Log-odds, clamped so that both outcomes keep `MIN_PROBABILITY`; zeros without labels.

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> neighbours = torch.tensor([[1], [0], [3], [2]])
    >>> (known_log_odds(points, neighbours, torch.tensor([0, 0, -1, -1])) > 0).tolist()
    [True, True, False, False]
    """
    labelled = targets >= 0
    count = labelled[neighbours].sum(1).float()  # [N]
    known = int(targets.max()) + 1 if len(targets) else 0
    if known == 0:
        return torch.zeros_like(count)
    numbers = targets[labelled].bincount(minlength=known).float()  # [M]
    mean = (count * labelled).sum() / labelled.sum()
    totals = torch.zeros_like(numbers).index_add_(0, targets[labelled], count[labelled])
    rates = (totals + SMOOTHING * mean) / (numbers + SMOOTHING)  # labels near a text of each
    # Of directions of unit length the nearest has the largest cosine; this works in blocks.
    means = F.normalize(class_means(points, targets, known), dim=1)
    similar = nearest(points, means)[0]  # [N]
    log_odds = count * math.log(1 / NOVEL_RATE) - (1 - NOVEL_RATE) * rates[similar]
    limit = math.log((1 - MIN_PROBABILITY) / MIN_PROBABILITY)
    return log_odds.clamp(-limit, limit)
