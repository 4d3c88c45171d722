"""Nearest neighbours among texts, never holding an N x N matrix."""

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 2**24  # similarities held at a time


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
