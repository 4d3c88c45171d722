"""Nearest neighbours of texts by cosine similarity, without an N x N matrix in memory."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.encoding.workers import run_batches

BLOCK = 2**24  # similarities in memory at a time
MAX_NEIGHBOURS = 512  # limits memory for many texts


@torch.no_grad()
def nearest_neighbours(features: Tensor, count: int) -> Tensor:
    """Find the texts most similar to each text by cosine, the text itself left out.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    count : int
        Neighbours per text; at most N - 1 are returned.

    Returns
    -------
    Tensor of shape [N, count]
        Row numbers, the most similar text first.

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> nearest_neighbours(points, 1).tolist()
    [[1], [0], [1]]
    """
    unit = F.normalize(features.float(), dim=1)
    count = min(count, len(unit) - 1)
    rows = max(1, BLOCK // len(unit))
    found = torch.empty(len(unit), count, dtype=torch.int64, device=unit.device)

    def compare(block: np.ndarray) -> None:
        first, last = int(block[0]), int(block[-1]) + 1
        similar = unit[first:last] @ unit.T  # [rows, N]
        own = torch.arange(last - first, device=unit.device)
        similar[own, first + own] = -2.0
        found[first:last] = similar.topk(count, dim=1).indices

    blocks = np.split(np.arange(len(unit)), range(rows, len(unit), rows))
    run_batches(compare, blocks, unit.device)
    return found


def neighbour_count(texts: int, categories: int, share: float) -> int:
    """Return the number of neighbours to use: a share of the mean category size, at least one.

    Parameters
    ----------
    texts, categories : int
        Numbers of texts and categories.
    share : float

    Returns
    -------
    int


    Examples
    --------
    >>> neighbour_count(texts=9003, categories=77, share=0.4)
    47
    """
    return max(1, min(texts - 1, MAX_NEIGHBOURS, round(share * texts / categories)))
