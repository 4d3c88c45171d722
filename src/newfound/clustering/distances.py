"""Distances and cosines, and the nearest centre of each point in bounded memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

# Maximum elements of a points x centres block, and of the points in it: 16 MB each.
BLOCK = 2**22


def distances(features: Tensor, prototypes: Tensor) -> Tensor:
    """Return Euclidean distances [B, K]; the gradient is finite at distance zero."""
    squared = (
        features.square().sum(1, keepdim=True)
        + prototypes.square().sum(1)
        - 2 * features @ prototypes.T
    )
    # Below the clamp the gradient is zero, where the square root's would be infinite.
    return squared.clamp(min=1e-10).sqrt()


def cosines(features: Tensor, prototypes: Tensor) -> Tensor:
    """Return cosine similarities [B, K]."""
    return F.normalize(features, dim=1) @ F.normalize(prototypes, dim=1).T


def nearest(features: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Find the nearest centre of each point, in bounded memory.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    centres : Tensor of shape [K, d]

    Returns
    -------
    labels : Tensor of shape [N], int64
        Nearest centre of each point.
    distances : Tensor of shape [N]
        Squared distance to it.
    """
    with torch.no_grad(), full_precision(features.device):
        # A shift does not change distances, but reduces rounding if all vectors are far out.
        origin = centres.float().mean(0)
        shifted = centres.float() - origin
        bias = -0.5 * shifted.square().sum(1)
        labels = torch.empty(len(features), dtype=torch.int64, device=features.device)
        distances = torch.empty(len(features), device=features.device)
        width = max(1, BLOCK // max(centres.shape))
        for begin in range(0, len(features), width):
            part = features[begin : begin + width].float() - origin
            best, index = torch.addmm(bias, part, shifted.T).max(1)
            labels[begin : begin + width] = index
            distances[begin : begin + width] = part.square().sum(1).sub_(best, alpha=2)
        return labels, distances.clamp_min_(0)


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Multiply in float32 inside the block: distances are small differences of large numbers."""
    matmul = torch.backends.cuda.matmul
    # From torch 2.9 on, only the new switch may be read, whichever one the caller has set.
    new = hasattr(matmul, "fp32_precision")
    switch, exact = ("fp32_precision", "ieee") if new else ("allow_tf32", False)
    before = getattr(matmul, switch)
    setattr(matmul, switch, exact)
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        setattr(matmul, switch, before)
