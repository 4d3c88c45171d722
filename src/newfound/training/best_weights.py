"""The weights of the best epoch, for early stopping."""

import numpy as np
import torch
from torch import Tensor, nn


class BestWeights:
    """Keeps the weights of the epoch with the highest score, for early stopping.

    Parameters
    ----------
    modules : list of nn.Module
        Modules whose trainable weights are kept.
    patience : int
        Epochs without a higher score after which to stop.
    """

    def __init__(self, modules: list[nn.Module], patience: int) -> None:
        self.weights: list[Tensor] = [
            weight for module in modules for weight in module.parameters() if weight.requires_grad
        ]
        self.kept: list[Tensor] | None = None
        self.best = -np.inf
        self.patience, self.waited = patience, 0

    def update(self, score: float) -> bool:
        """Record an epoch's score; return True if training should stop."""
        if score > self.best:
            self.best, self.waited = score, 0
            self.kept = [weight.detach().clone() for weight in self.weights]
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self) -> None:
        """Restore the weights of the best epoch."""
        if self.kept is not None:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.kept)
