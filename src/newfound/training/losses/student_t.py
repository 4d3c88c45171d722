"""Student-t soft assignment and its self-training target (Xie et al., ICML 2016, Eqs. 1-3)."""

import torch
from torch import Tensor

from newfound.clustering.distances import full_precision


def soft_assignment(features: Tensor, centres: Tensor) -> Tensor:
    """How much each text belongs to each centre [N, K]: 1 / (1 + squared distance), rows sum to 1.

    features [N, d], centres [K, d]. The nearest centre always has the largest share.
    """
    with full_precision(features.device):  # a difference of large numbers, even under autocast
        features, centres = features.float(), centres.float()
        # Distances do not change under a shift, but rounding does when all vectors lie far out.
        origin = centres.detach().mean(0)
        points, middles = features - origin, centres - origin
        squared = (
            points.square().sum(1, keepdim=True) + middles.square().sum(1) - 2 * points @ middles.T
        )
        kernel = 1 / (1 + squared.clamp(min=0))
        return kernel / kernel.sum(1, keepdim=True)


@torch.no_grad()
def target_distribution(q: Tensor) -> Tensor:
    """The sharper distribution that q [N, K] is trained towards; rows sum to 1, no gradient.

    q squared over the centre's share of all texts: certain assignments gain, crowded centres lose.
    `q` must hold the whole set, not a batch: the shares are meant over all texts.
    """
    share = q.sum(0)  # [K]
    sharp = q.square() / share.clamp(min=torch.finfo(q.dtype).tiny)
    return sharp / sharp.sum(1, keepdim=True)


def self_training_loss(q: Tensor, p: Tensor) -> Tensor:
    """KL(p || q): summed over the K centres, averaged over the rows of a batch.

    Not torch's default mean over all B * K entries, which would shrink with the number of centres.
    """
    tiny = torch.finfo(q.dtype).tiny
    return (p * (p.clamp(min=tiny).log() - q.clamp(min=tiny).log())).sum(1).mean()
