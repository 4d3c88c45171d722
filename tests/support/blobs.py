"""Points in well separated blobs, with labels as people give them."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

# How many of n texts of a known category are labelled.
DESIGNS = {
    "a tenth": lambda n: max(1, n // 10),
    "one per category": lambda n: 1,
    "three per category": lambda n: min(3, n),
    "ten per category": lambda n: min(10, n),
    "an archive": lambda n: max(1, round(0.6 * n)),
}


def blobs(
    sizes: Sequence[int], spread: float = 0.15, width: int = 16, seed: int = 0
) -> tuple[Tensor, np.ndarray]:
    """Points [N, width] around one random direction per blob, and the blob [N] of each."""
    draw = torch.Generator().manual_seed(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    centres = F.normalize(torch.randn(len(sizes), width, generator=draw), dim=1)
    return centres[truth] + spread * torch.randn(len(truth), width, generator=draw), truth


def label(truth: np.ndarray, known: int, design: str, seed: int = 0) -> np.ndarray:
    """Targets [N] of the first `known` blobs by one of the `DESIGNS`, -1 where unlabelled."""
    rng = np.random.default_rng(seed)
    targets = np.full(len(truth), -1)
    for category in range(known):
        rows = rng.permutation(np.flatnonzero(truth == category))
        targets[rows[: DESIGNS[design](len(rows))]] = category
    return targets
