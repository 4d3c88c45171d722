"""The supervised contrastive loss (Khosla et al., NeurIPS 2020)."""

import torch
from torch import Tensor


def contrastive_loss(
    anchors: Tensor, others: Tensor, positive: Tensor, temperature: float
) -> Tensor:
    """Compute the supervised contrastive loss of two views.

    For each of the 2B rows it is the mean, over the row's positives, of -log softmax of
    similarity / temperature over all other rows.

    Parameters
    ----------
    anchors, others : Tensor of shape [B, d]
        Two views of the same texts, of unit length.
    positive : Tensor of shape [B, B], bool
        True where text j is a positive of text i; the diagonal counts as True.
    temperature : float

    Returns
    -------
    Tensor
        A scalar.
    """
    views = torch.cat([anchors, others])
    scores = (views / temperature) @ views.T  # [2B, 2B]
    itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
    wanted = positive | itself[: len(positive), : len(positive)]
    wanted = (wanted.repeat(2, 2) & ~itself).float()
    pulled = (scores * (wanted / wanted.sum(1, keepdim=True))).sum(1)
    return (scores.masked_fill(itself, float("-inf")).logsumexp(1) - pulled).mean()
