"""Student-t soft assignment and its self-training target (Xie et al., ICML 2016, Eqs. 1-3)."""

import torch
from torch import Tensor

from newfound.clustering.distances import full_precision


def soft_assignment(features: Tensor, centres: Tensor) -> Tensor:
    """Return q [N, K]: 1 / (1 + squared distance), with rows scaled to sum to 1 (Eq. 1).

    features [N, d], centres [K, d]. The nearest centre has the largest q.
    """
    with full_precision(features.device):  # a difference of large numbers
        features, centres = features.float(), centres.float()
        # A shift does not change distances, but reduces rounding if all vectors are far out.
        origin = centres.detach().mean(0)
        points, middles = features - origin, centres - origin
        squared = (
            points.square().sum(1, keepdim=True) + middles.square().sum(1) - 2 * points @ middles.T
        )
        kernel = 1 / (1 + squared.clamp(min=0))
        return kernel / kernel.sum(1, keepdim=True)


@torch.no_grad()
def target_distribution(q: Tensor) -> Tensor:
    """Return the target p [N, K] of self-training: q^2 / sum(q), rows sum to 1 (Eq. 3).

    Confident assignments gain weight, large clusters lose weight. `q` must be that of all texts,
    not of a batch, because the sum is over all texts. No gradient flows through it.
    """
    share = q.sum(0)  # [K]
    weighted = q.square() / share.clamp(min=torch.finfo(q.dtype).tiny)
    return weighted / weighted.sum(1, keepdim=True)


def self_training_loss(q: Tensor, p: Tensor) -> Tensor:
    """Return KL(p || q), summed over the K centres and averaged over the batch (Eq. 2).

    torch's default, the mean over all B * K entries, would shrink with the number of centres.
    """
    tiny = torch.finfo(q.dtype).tiny
    return (p * (p.clamp(min=tiny).log() - q.clamp(min=tiny).log())).sum(1).mean()
