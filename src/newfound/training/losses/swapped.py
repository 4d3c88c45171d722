"""Swapped prediction: each view of a text is taught the pseudo-label that the other view gives."""

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.optimal_transport import sinkhorn


def swapped_loss(
    first: Tensor,
    second: Tensor,
    queue: Tensor,
    *,
    temperature: float,
    epsilon: float,
    iterations: int,
    log_prior: Tensor | None = None,
    class_prior: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of each view with the pseudo-labels of the other view.

    loss = -1/(2B) sum_i sum_k [q2_ik log p1_ik + q1_ik log p2_ik], where p is the softmax of the
    cosines divided by the temperature and q are pseudo-labels by optimal transport. Both views and
    the queue are transported together, with one solution for all.

    Parameters
    ----------
    first, second : Tensor of shape [B, K]
        Cosines of the two views with the categories.
    queue : Tensor of shape [Q, K]
        Cosines of recent texts, so that a batch smaller than K can be transported.
    temperature : float
        Temperature of the classifier.
    epsilon, iterations
        Entropy regularisation and Sinkhorn iterations of the optimal transport.
    log_prior : Tensor of shape [2B + Q, K], optional
        Log prior of each category for each row: second view, first view, queue.
    class_prior : Tensor of shape [K], optional
        Expected share of each category; uniform by default.

    Returns
    -------
    Tensor
        A scalar; no gradient flows through the pseudo-labels.
    """
    scores = torch.cat([second, first, queue])
    if log_prior is not None:
        scores = scores + epsilon * log_prior
    pseudo_labels = sinkhorn(scores, epsilon, iterations, class_prior)
    logits = torch.cat([first, second]) / temperature
    return F.cross_entropy(logits, pseudo_labels[: len(logits)])
