"""The ModernBERT family: pre-norm layers, rotary positions, gated feed-forward, local attention.

Rotary positions and local attention depend on the distance of two tokens only, so texts can be
packed into rows as they are for `Backbone`: all tokens of a text lie side by side.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.encoding.architecture import ACTIVATIONS, Architecture
from newfound.encoding.backbone import SHORT, Backbone, Embedding, Linear, attend
from newfound.encoding.batching import Runs


class ModernLayer(nn.Module):
    """A ModernBERT layer: self-attention and gated feed-forward, each on a normalised input."""

    def __init__(self, shape: Architecture, number: int) -> None:
        super().__init__()
        width, epsilon = shape.width, shape.norm_epsilon
        self.heads = shape.heads
        self.attention_dropout = shape.attention_dropout
        self.activation = ACTIVATIONS[shape.activation]
        # The embeddings are normalised already.
        self.attention_norm: nn.Module = nn.Identity()
        if number:
            self.attention_norm = nn.LayerNorm(width, eps=epsilon, bias=False)
        self.qkv = Linear(width, 3 * width, bias=False)
        self.out = Linear(width, width, bias=False)
        self.output_norm = nn.LayerNorm(width, eps=epsilon, bias=False)
        self.up = Linear(width, 2 * shape.inner, bias=False)
        self.down = Linear(shape.inner, width, bias=False)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, hidden: Tensor, bias: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        qkv = self.qkv(self.attention_norm(hidden))
        qkv = qkv.view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # [batch, heads, length, width / heads] each
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        dropout = self.attention_dropout if self.training else 0.0
        if hidden.is_cuda and self.training and length <= SHORT:
            mixed = attend(query, key, value.contiguous(), bias, dropout)
        else:
            mixed = F.scaled_dot_product_attention(query, key, value, bias, dropout)
        mixed = self.out(mixed.transpose(1, 2).reshape(hidden.shape))
        hidden = hidden + F.dropout(mixed, self.attention_dropout, self.training)
        inner, gate = self.up(self.output_norm(hidden)).chunk(2, dim=-1)
        return hidden + self.down(self.dropout(self.activation(inner) * gate))


class ModernBackbone(Backbone):
    """A ModernBERT encoder whose layers can be run in parts.

    Parameters
    ----------
    shape : Architecture
        With the options of `Modern`.
    """

    def build(self, shape: Architecture) -> None:
        """Add the modules; the weights are not initialised."""
        assert shape.modern is not None
        self.modern = shape.modern
        self.words = Embedding(shape.vocabulary, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon, bias=False)
        self.dropout = nn.Dropout(shape.dropout)
        self.layers = nn.ModuleList(ModernLayer(shape, number) for number in range(shape.layers))
        self.final_norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon, bias=False)

    def frozen_parts(self, count: int) -> list[nn.Module]:
        """Return the modules before and in the first `count` layers; at the end, the last norm."""
        last = [self.final_norm] if count == self.shape.layers else []
        return [self.words, self.norm, *self.layers[:count], *last]

    def embed(self, ids: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Return the embeddings [batch, length, width] of token ids [batch, length]."""
        return self.dropout(self.norm(self.words(ids)))

    def embed_joined(self, ids: Tensor, runs: Runs) -> Tensor:
        """Return the embeddings [T, width] of token ids [T] of texts one after the other."""
        return self.embed(ids)

    def run(self, hidden: Tensor, mask: Tensor, start: int, stop: int) -> Tensor:
        """Run layers start to stop-1 on hidden states [batch, length, width]."""
        length, heads = hidden.shape[1], self.shape.heads
        places = torch.arange(length, device=hidden.device)
        near = (places[None, :] - places[:, None]).abs() <= self.modern.window  # [length, length]
        sees = mask[:, None, :] if mask.ndim == 2 else mask  # [batch, 1 or length, length]
        everywhere, nearby = (
            _bias(where, hidden.dtype).expand(-1, heads, length, -1)
            for where in (sees, sees & near | _itself(places))
        )
        if hidden.is_cuda:  # once for all layers
            everywhere, nearby = everywhere.contiguous(), nearby.contiguous()
        width = self.shape.width // heads
        of_all = angles(places, width, self.modern.global_base, hidden.dtype)
        of_near = angles(places, width, self.modern.local_base, hidden.dtype)
        for number in range(start, stop):
            if number in self.modern.global_layers:
                hidden = self.layers[number](hidden, everywhere, *of_all)
            else:
                hidden = self.layers[number](hidden, nearby, *of_near)
        return self.final_norm(hidden) if start < stop == self.shape.layers else hidden

    def run_joined(self, hidden: Tensor, runs: Runs, start: int, stop: int) -> Tensor:
        """Run layers start to stop-1 on hidden states [T, width] of texts one after the other."""
        parts = [
            self.run(part, part.new_ones(part.shape[:2], dtype=torch.bool), start, stop)
            for part in runs.split(hidden)
        ]
        return torch.cat([part.flatten(0, 1) for part in parts])


def make_backbone(shape: Architecture) -> Backbone:
    """Return a backbone of this architecture, without initialised weights."""
    return Backbone(shape) if shape.modern is None else ModernBackbone(shape)


def angles(places: Tensor, width: int, base: float, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosine and sine [length, width] of the rotary angles place / base^(2i / width)."""
    steps = torch.arange(0, width, 2, device=places.device, dtype=torch.float32)
    angle = places.float()[:, None] * base ** (-steps / width)  # [length, width / 2]
    both = torch.cat([angle, angle], dim=-1)
    return both.cos().to(kind), both.sin().to(kind)


def rotate(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the halves of each state [batch, heads, length, width] by the angles of its place."""
    first, second = states.chunk(2, dim=-1)
    return states * cos + torch.cat([-second, first], dim=-1) * sin


def _bias(sees: Tensor, kind: torch.dtype) -> Tensor:
    """Return what attention adds to its scores [batch, 1, ...]: -inf where a token is not seen."""
    hidden = sees.new_zeros(sees.shape, dtype=torch.float32).masked_fill(~sees, float("-inf"))
    return hidden[:, None].to(kind)


def _itself(places: Tensor) -> Tensor:
    """Return where a token meets itself [length, length]: padding, too, needs something to see."""
    return places[None, :] == places[:, None]
