"""Contrastive losses."""

import torch
from torch import Tensor


def contrastive_loss(
    anchors: Tensor, others: Tensor, positive: Tensor, temperature: float
) -> Tensor:
    """Supervised contrast over two views: a row is pulled to its positives, pushed from the rest.

    anchors, others [B, d] of unit length: two views of the same B texts; positive [B, B] boolean,
    True where text j is a positive of text i (the diagonal counts as True). For each of the 2B rows
    the mean over its positives of -log softmax of similarity / temperature over all other rows.
    """
    views = torch.cat([anchors, others])
    scores = (views / temperature) @ views.T  # [2B, 2B]
    itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
    wanted = positive | itself[: len(positive), : len(positive)]
    wanted = (wanted.repeat(2, 2) & ~itself).float()
    pulled = (scores * (wanted / wanted.sum(1, keepdim=True))).sum(1)
    return (scores.masked_fill(itself, float("-inf")).logsumexp(1) - pulled).mean()
