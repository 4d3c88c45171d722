"""Sinkhorn's balanced assignment: soft labels that use every category equally often."""

import torch
from torch import Tensor


def sinkhorn(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    """Soft assignment [N, K] from scores [N, K]: each row sums to 1, each column to about N / K.

    exp(scores / epsilon) is scaled column by column, then row by row, `iterations` times. Rows come
    last, so a text's shares are exact and the columns' as near as the iterations bring them; with
    none of them this is the softmax of each row, without balance. All is done in logarithms, where
    the largest value is subtracted before each sum, so that no scores are too far apart.
    """
    logs = scores.float() / epsilon
    for _ in range(iterations):
        # The marginals 1/K and 1/N are constants, which the last scaling of the rows removes.
        logs = logs - torch.logsumexp(logs, 0, keepdim=True)
        logs = logs - torch.logsumexp(logs, 1, keepdim=True)
    return logs.softmax(1)
