"""Prior probability that a text belongs to a known category, from the labels near it.

Where labels were given to texts of known categories at random, a text of a known category has about
as many labelled neighbours as labelled texts have themselves; a text of a novel one has few. Both
counts are modelled as Poisson variables.
"""

import math

import torch
from torch import Tensor

MIN_PROBABILITY = 0.1  # of known and of novel each, however clear the neighbours' labels are
NOVEL_RATE = 0.1  # labels near a text of a novel category, per label near one of a known category


@torch.no_grad()
def known_log_odds(neighbours: Tensor, targets: Tensor) -> Tensor:
    """Log-odds that each text belongs to a known category.

    Parameters
    ----------
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
    >>> neighbours = torch.tensor([[1], [0], [3], [2]])
    >>> (known_log_odds(neighbours, torch.tensor([0, 0, -1, -1])) > 0).tolist()
    [True, True, False, False]
    """
    labelled = targets >= 0
    count = labelled[neighbours].sum(1).float()  # [N]
    expected = (count * labelled).sum() / labelled.sum().clamp(min=1)  # of a known category
    log_odds = count * math.log(1 / NOVEL_RATE) - (1 - NOVEL_RATE) * expected
    limit = math.log((1 - MIN_PROBABILITY) / MIN_PROBABILITY)
    return log_odds.clamp(-limit, limit)
