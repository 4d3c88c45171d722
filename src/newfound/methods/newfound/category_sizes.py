"""What the sizes of known categories tell about whether two clusters are one category.

Where known categories are of one size, two clusters of half that size are likely halves of one
category, and two clusters of that size are likely two categories. Where known sizes differ widely,
sizes tell nothing. Sizes are taken to be log-normal, with the median and the spread of the known
categories that occur.
"""

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from newfound.methods.newfound.class_prior import occurs

MIN_KNOWN = 5  # known categories that it takes to tell how sizes vary
NOISE = 0.25  # standard deviation of the logarithm of a size that a clustering finds
WEIGHT = 0.5  # of the evidence of sizes beside mixing and cosine
LIMIT = 2.0  # of the weighted evidence, either way
NORMAL_RANGE = 1.349  # interquartile range of a normal distribution of deviation 1


@dataclass(frozen=True)
class SizeLaw:
    """Log-normal distribution of the sizes of categories."""

    mean: float  # of the logarithm
    deviation: float  # of the logarithm

    def merge_scores(self, sizes: Tensor) -> Tensor:
        """Return the evidence of sizes for one category rather than two, for each pair.

        w log [p(a + b) / (a + b)] - w log [p(a) p(b)], with p the density of the distribution and w
        the weight: either one category of size a + b that was cut anywhere, or two categories. The
        result is limited, because sizes that a clustering finds can be far off.

        Parameters
        ----------
        sizes : Tensor of shape [K]
            Number of texts of each cluster.

        Returns
        -------
        Tensor of shape [K, K]

        Examples
        --------
        >>> import torch
        >>> law = SizeLaw(mean=math.log(100), deviation=0.25)
        >>> scores = law.merge_scores(torch.tensor([50.0, 50.0, 100.0, 100.0]))
        >>> bool(scores[0, 1] > 0), bool(scores[2, 3] < 0)
        (True, True)
        """
        log = sizes.clamp(min=1).log()
        whole = (sizes[:, None] + sizes).clamp(min=1).log()
        one = self._log_density(whole) - whole
        two = self._log_density(log)
        return (WEIGHT * (one - two[:, None] - two)).clamp(-LIMIT, LIMIT)

    def _log_density(self, log: Tensor) -> Tensor:
        """Return the log density of sizes, given their logarithms."""
        spread = math.log(self.deviation * math.sqrt(2 * math.pi))
        return -((log - self.mean) / self.deviation).square() / 2 - log - spread


def size_law(labels: Tensor, targets: Tensor, known: int) -> SizeLaw | None:
    """Return the distribution of the sizes of known categories; None if too few of them occur.

    Parameters
    ----------
    labels : Tensor of shape [N]
        Category of each text; labelled texts have their own.
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    known : int
        Number of known categories.

    Examples
    --------
    >>> import torch
    >>> labels = torch.arange(8).repeat_interleave(20)
    >>> targets = torch.where(torch.arange(160) % 20 < 2, labels, -1)
    >>> law = size_law(labels, targets, 8)
    >>> round(math.exp(law.mean)), law.deviation
    (20, 0.25)
    """
    total = labels.bincount(minlength=known)[:known].cpu().numpy().astype(float)
    unlabelled = labels[targets < 0].bincount(minlength=known)[:known].cpu().numpy().astype(float)
    there = occurs(unlabelled)
    if there.sum() < MIN_KNOWN:
        return None
    low, median, high = np.percentile(np.log(total[there]), [25, 50, 75])
    return SizeLaw(float(median), math.hypot((high - low) / NORMAL_RANGE, NOISE))
