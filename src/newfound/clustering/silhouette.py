"""The silhouette score on the device of the features, without an N x N matrix in memory."""

import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import full_precision

BLOCK = 2**24  # distances in memory at a time


@torch.no_grad()
def silhouette_score(features: Tensor, labels: Tensor) -> float:
    """Compute the mean silhouette, as scikit-learn does.

    With a the mean distance of a point to the other points of its cluster, and b the mean distance
    to the points of the nearest other cluster, its silhouette is (b - a) / max(a, b), and 0 if it
    is alone in its cluster.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    labels : Tensor of shape [N]

    Returns
    -------
    float
        From -1 to 1; 0 for a single cluster.

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0], [0.0], [9.0], [9.0]])
    >>> silhouette_score(points, torch.tensor([0, 0, 1, 1]))
    1.0
    """
    _, cluster, counts = labels.unique(return_inverse=True, return_counts=True)
    n, k = len(features), len(counts)
    if k < 2:
        return 0.0
    with full_precision(features.device):
        points = features.float() - features.float().mean(0)  # centred, for precision
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
            # 0 / 0 is a point that coincides with its own cluster and with another one.
            alone = counts[own] == 1
            total += torch.where(alone, 0, score.nan_to_num(0)).double().sum()
    return float(total) / n
