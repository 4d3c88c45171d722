"""A classifier whose scores are cosines with one direction per category."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.distances import cosines


class CosineClassifier(nn.Module):
    """Scores a feature by its cosine with one direction per category, seen from an origin.

    The length of a row does not affect its cosines, but it affects how fast the row learns: an
    optimiser step is as long for a short row as for a long one, and turns the short one further.

    Parameters
    ----------
    centres : Tensor of shape [K, d]
        Points that the directions start at.
    origin : Tensor of shape [d]
        Point that directions and features are seen from, such as the mean feature.
    learning_rate_factor : float
        How many times faster the directions turn than with rows of length one.

    Examples
    --------
    >>> import torch
    >>> classifier = CosineClassifier(torch.eye(2), torch.zeros(2))
    >>> classifier(torch.tensor([[2.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, centres: Tensor, origin: Tensor, learning_rate_factor: float = 1.0) -> None:
        super().__init__()
        self.origin: Tensor
        self.register_buffer("origin", origin.clone())  # [d]
        self.learning_rate_factor = learning_rate_factor
        self.rows = nn.Parameter(F.normalize(centres - origin, dim=1) / learning_rate_factor)

    def forward(self, features: Tensor) -> Tensor:
        """Return the cosine [N, K] of each feature [N, d] with each direction."""
        return cosines(features - self.origin, self.rows)

    @torch.no_grad()
    def prototypes(self, features: Tensor) -> Tensor:
        """Return points [K, d] such that the nearest to a feature has the largest cosine with it.

        All lie equally far from the origin, as far as `features` [N, d] do on average, so that
        distances measure how certain a category is.
        """
        radius = (features - self.origin).norm(dim=1).mean()
        return self.origin + radius * F.normalize(self.rows, dim=1)
