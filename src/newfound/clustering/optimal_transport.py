"""Optimal transport of texts to categories by Sinkhorn iterations, with a class-size prior."""

import torch
from torch import Tensor

TINY = 1e-30  # a category that no text comes near still gets a finite scale


def sinkhorn(
    scores: Tensor, epsilon: float, iterations: int, class_prior: Tensor | None = None
) -> Tensor:
    """Assign texts to categories softly, each category with about its share of the texts.

    exp(scores / epsilon) is scaled column by column, then row by row, `iterations` times. Rows come
    last, so row sums are exact and column sums as close as the iterations bring them (relaxed
    marginals). Only the two sets of scales change, so an iteration costs two matrix-vector
    products. No gradient flows through it.

    Parameters
    ----------
    scores : Tensor of shape [N, K]
        Similarity of each text to each category.
    epsilon : float
        Entropy regularisation: the larger, the softer the assignment.
    iterations : int
        With 0 the result is the softmax of each row, without any constraint on category sizes.
    class_prior : Tensor of shape [K], optional
        Expected share of each category, summing to 1; uniform by default.

    Returns
    -------
    Tensor of shape [N, K]
        Each row sums to 1, each column to about N times its share.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[1.0, 0.9], [1.0, 0.0]])
    >>> sinkhorn(scores, 0.1, iterations=20).argmax(1).tolist()
    [1, 0]
    """
    with torch.no_grad():
        logs = scores.float() / epsilon
        # The largest of each row is subtracted first, so that nothing overflows and no row
        # vanishes; `rows` begins with what this took from a row.
        top = logs.amax(1)
        kernel = (logs - top[:, None]).exp()  # [N, K]
        rows = (top - top.max()).exp()  # [N]
        columns = logs.new_ones(logs.shape[1])  # [K]
        share = logs.shape[0] / logs.shape[1] if class_prior is None else len(logs) * class_prior
        for _ in range(iterations):
            columns = share / (rows @ kernel).clamp(min=TINY)
            rows = 1 / (kernel @ columns)
        found = kernel * columns
        return found / found.sum(1, keepdim=True)
