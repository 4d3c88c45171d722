"""Heads: what learns on the pooled vector of a text, and the features that it gives."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALL_INNER = 256  # inner width of a small residual head


class TanhHead(nn.Module):
    """The released DPN's head: dropout(tanh(Linear(pooled)))."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, pooled: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.dense(pooled)))


class ResidualHead(nn.Module):
    """A small MLP added to the pooled vector, initialised as the identity."""

    def __init__(self, width: int, inner: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, pooled: Tensor, views: int = 1) -> Tensor:
        """Return [views B, width] from pooled [B, width], each view with its own dropout."""
        inner = F.gelu(self.up(pooled))  # the same for all views
        if views > 1:
            pooled, inner = pooled.repeat(views, 1), inner.repeat(views, 1)
        return pooled + self.down(self.dropout(inner))


# Rows of a matrix product: with fewer, libraries add up in another order than with many.
MIN_ROWS = 8

HEADS: dict[str, Any] = {
    "none": lambda width: nn.Identity(),
    "tanh": TanhHead,
    "residual": ResidualHead,
    "small-residual": lambda width: ResidualHead(width, SMALL_INNER),
}


class HeadFeatures(nn.Module):
    """What feature maps with a head share: from a pooled vector to a feature.

    A subclass has `width` and `device`, and calls `set_head`.
    """

    width: int  # of a pooled vector, and of the head's output
    head: nn.Module
    logits: nn.Linear | None

    def set_head(self, head: str, normalise: bool, logits: int | None) -> None:
        """Add a head by its name and, if `logits` is given, so many logits on it."""
        self.head_name = head
        self.head = HEADS[head](self.width)
        self.logits = nn.Linear(self.width, logits) if logits else None
        self.normalise = normalise

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        """Width of a feature: that of the head, or the number of logits."""
        return self.width if self.logits is None else self.logits.out_features

    def add_logits(self, count: int) -> nn.Linear:
        """Add a layer of `count` logits, which become the features, without normalisation."""
        self.logits = nn.Linear(self.width, count).to(self.device)
        self.normalise = False
        return self.logits

    def views_of(self, pooled: Tensor, views: int) -> Tensor:
        """Return raw features [views B, width] of pooled vectors, each view with own dropout."""
        if isinstance(self.head, ResidualHead):
            return self.head(pooled.float(), views)
        return self.head(pooled.float().repeat(views, 1))

    def from_pooled(self, pooled: Tensor) -> Tensor:
        """Return features of pooled vectors [B, width]; their last digits do not depend on B."""
        missing = max(0, MIN_ROWS - len(pooled))
        rows = F.pad(pooled.float(), (0, 0, 0, missing))
        return self.finish(self.head(rows))[: len(pooled)]

    def finish(self, raw: Tensor) -> Tensor:
        """Return features from raw ones: apply logits and normalisation, if configured."""
        last = raw if self.logits is None else self.logits(raw)
        return F.normalize(last.float(), dim=-1) if self.normalise else last.float()
