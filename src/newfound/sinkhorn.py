"""Sinkhorn's balanced assignment: soft labels that use every category equally often."""

import torch
from torch import Tensor

TINY = 1e-30  # a category that no text comes near still gets a finite scale


def sinkhorn(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    """Soft assignment [N, K] from scores [N, K]: each row sums to 1, each column to about N / K.

    exp(scores / epsilon) is scaled column by column, then row by row, `iterations` times. Rows come
    last, so a text's shares are exact and the columns' as near as the iterations bring them; with
    none of them this is the softmax of each row, without balance.

    Only the two sets of scales change, so an iteration costs two products of a matrix with a
    vector. Nothing is learnt through it.
    """
    with torch.no_grad():
        logs = scores.float() / epsilon
        # The largest of each row is subtracted first, so that nothing overflows and no row
        # vanishes; `rows` begins with what this took from a row.
        top = logs.amax(1)
        kernel = (logs - top[:, None]).exp()  # [N, K]
        rows = (top - top.max()).exp()  # [N]
        columns = logs.new_ones(logs.shape[1])  # [K]
        share = logs.shape[0] / logs.shape[1]
        for _ in range(iterations):
            columns = share / (rows @ kernel).clamp(min=TINY)
            rows = 1 / (kernel @ columns)
        shares = kernel * columns
        return shares / shares.sum(1, keepdim=True)
