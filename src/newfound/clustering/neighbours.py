"""Nearest neighbours among texts, never holding an N x N matrix, and what their labels say."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 2**24  # similarities held at a time
DOUBT = 0.1  # however clear the labels near a text are
STRAY = 0.1  # labels near a text of a novel category, for each one near a text of a known one


@torch.no_grad()
def nearest_neighbours(features: Tensor, count: int) -> Tensor:
    """The `count` texts most similar by cosine to each text, itself left out: [N, count]."""
    unit = F.normalize(features.float(), dim=1)
    count = min(count, len(unit) - 1)
    rows = max(1, BLOCK // len(unit))
    found = torch.empty(len(unit), count, dtype=torch.int64, device=unit.device)
    for start in range(0, len(unit), rows):
        block = unit[start : start + rows]
        similar = block @ unit.T  # [rows, N]
        own = torch.arange(len(block), device=unit.device)
        similar[own, start + own] = -2.0
        found[start : start + rows] = similar.topk(count, dim=1).indices
    return found


@torch.no_grad()
def known_odds(neighbours: Tensor, targets: Tensor) -> Tensor:
    """Log odds [N] that a text is of a known category, by the labels among its neighbours [N, k].

    Where labels were given to texts of known categories at random, a text of such a category has
    about as many labelled neighbours as labelled texts have; a text of a novel one has few. Both
    numbers are Poisson's. Known and novel remain possible, each with a chance of DOUBT at least.
    Where nothing is labelled (targets [N] are -1) nothing is known: zeros.
    """
    labelled = targets >= 0
    count = labelled[neighbours].sum(1).float()  # [N]
    usual = (count * labelled).sum() / labelled.sum().clamp(min=1)
    odds = count * math.log(1 / STRAY) - (1 - STRAY) * usual
    most = math.log((1 - DOUBT) / DOUBT)
    return odds.clamp(-most, most)
