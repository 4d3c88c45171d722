"""The silhouette score on the device of the features, never holding an N x N matrix."""

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import full_precision

BLOCK = 2**24  # distances held at a time


@torch.no_grad()
def silhouette_score(features: Tensor, labels: Tensor) -> float:
    """How much nearer points lie to their own cluster than to the next, from -1 to 1.

    features [N, d], labels [N]. For a point with mean distance a to the others of its cluster and b
    to those of the nearest other one it is (b - a) / max(a, b), and 0 for a point alone; the score
    is the mean, as scikit-learn's. A single cluster has no next one: its score is 0.
    """
    _, cluster, counts = labels.unique(return_inverse=True, return_counts=True)
    n, k = len(features), len(counts)
    if k < 2:
        return 0.0
    with full_precision(features.device):
        points = features.float() - features.float().mean(0)  # far out, rounding would show
        norms = points.square().sum(1)
        members = F.one_hot(cluster, k).to(points.dtype)  # [N, K]
        total = torch.zeros((), dtype=torch.float64, device=points.device)
        rows = max(1, BLOCK // n)
        for start in range(0, n, rows):
            part = points[start : start + rows]
            apart = norms[start : start + rows, None] + norms - 2 * part @ points.T  # [rows, N]
            apart.clamp_min_(0).sqrt_()
            itself = torch.arange(len(part), device=points.device)
            apart[itself, start + itself] = 0
            own = cluster[start : start + rows, None]
            sums = apart @ members  # [rows, K]
            inside = sums.gather(1, own) / (counts[own] - 1).clamp(min=1)
            outside = (sums / counts).scatter_(1, own, torch.inf).amin(1, keepdim=True)
            score = (outside - inside) / torch.maximum(inside, outside)
            # 0 / 0: a point that coincides with its own cluster and with another one.
            alone = counts[own] == 1
            total += torch.where(alone, 0, score.nan_to_num(0)).double().sum()
    return float(total) / n
