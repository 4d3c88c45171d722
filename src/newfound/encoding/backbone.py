"""One transformer encoder for the BERT, RoBERTa, DistilBERT and MPNet families.

The four families are the same network (post-norm layers over word and position embeddings) with
different weight names, so one torch module implements them all. An own forward pass allows training
to start at any layer (see `feature_cache`) and to run as CUDA graphs, and it imports nothing but
torch. Tests compare each family with the transformers library.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.encoding.architecture import ACTIVATIONS, Architecture
from newfound.encoding.batching import Runs

# In training on a GPU, rows of up to this many tokens use unfused attention (`attend`). For short
# rows its forward and backward passes are faster than the fused kernels, which are made for long
# texts. That was measured up to 64 tokens; rows of packed texts may have twice as many.
SHORT = 128
# On a CPU, attention processes the keys of a text in vectors of this many, and the remainder one by
# one. Keys are therefore padded to whole vectors, unless the remainder is small.
LANES, SMALL_TAIL = 16, 5


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """Compute attention without a fused kernel: softmax(query key^T / sqrt(d) + bias) value.

    query, key, value [batch, heads, length, d], contiguous; bias broadcasts to
    [batch, heads, length, length].
    """
    batch, heads, length, width = query.shape
    flat = (batch * heads, length, width)
    scores = torch.baddbmm(
        bias.expand(batch, heads, length, length).reshape(batch * heads, length, length),
        query.reshape(flat),
        key.reshape(flat).transpose(1, 2),
        alpha=width**-0.5,
    )
    weights = F.dropout(scores.softmax(-1), dropout)
    return torch.bmm(weights, value.reshape(flat)).view(batch, heads, length, width)


class Linear(nn.Linear):
    """A linear layer without initialisation, which would take longer than loading weights."""

    def reset_parameters(self) -> None:
        """Leave the weights as they are."""


class Embedding(nn.Embedding):
    """An embedding without initialisation."""

    def reset_parameters(self) -> None:
        """Leave the weights as they are."""


class Layer(nn.Module):
    """A transformer layer: self-attention and feed-forward, each with residual and norm."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_dropout = shape.attention_dropout
        self.activation = ACTIVATIONS[shape.activation]
        self.qkv = Linear(shape.width, 3 * shape.width)
        self.out = Linear(shape.width, shape.width)
        self.attention_norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.up = Linear(shape.width, shape.inner)
        self.down = Linear(shape.inner, shape.width)
        self.output_norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        if torch.jit.is_tracing():  # for int8, where splitting the product costs more
            apart = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
            by_head = (batch, length, self.heads, width // self.heads)
            parts = [F.linear(hidden, weight, add).view(by_head) for weight, add in apart]
            query, key, value = (part.transpose(1, 2) for part in parts)
            mixed = F.scaled_dot_product_attention(query, key, value, bias)
            return self._finish(hidden, _by_token(mixed))
        qkv = self.qkv(hidden)
        dropout = self.attention_dropout if self.training else 0.0
        if hidden.is_cuda and self.training and length <= SHORT:
            # [batch, heads, length, width / heads] each
            by_head = qkv.view(batch, length, 3, self.heads, width // self.heads)
            query, key, value = by_head.permute(2, 0, 3, 1, 4).contiguous()
            mixed = _by_token(attend(query, key, value, bias, dropout))
        else:
            mixed = self._mix(qkv, bias, dropout)
        return self._finish(hidden, mixed)

    def over_runs(self, hidden: Tensor, runs: Runs, biases: Sequence[Tensor | None]) -> Tensor:
        """Return hidden states [T, width] of texts one after the other, with a bias per run."""
        parts = zip(runs.split(self.qkv(hidden)), biases, strict=True)
        mixed = [self._mix(qkv, bias, 0.0).flatten(0, 1) for qkv, bias in parts]
        return self._finish(hidden, torch.cat(mixed))

    def _mix(self, qkv: Tensor, bias: Tensor | None, dropout: float) -> Tensor:
        """Apply attention by a fused kernel to queries, keys and values [batch, length, 3 width].

        A bias for more keys than there are tokens asks for so many.
        """
        batch, length, _ = qkv.shape
        qkv = qkv.view(batch, length, 3, self.heads, -1)
        query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
        if bias is not None and bias.shape[-1] > length:
            padded = qkv.new_zeros(batch, bias.shape[-1], 2, *qkv.shape[3:])
            padded[:, :length] = qkv[:, :, 1:]
            key, value = (part.transpose(1, 2) for part in padded.unbind(2))
        return _by_token(F.scaled_dot_product_attention(query, key, value, bias, dropout))

    def _finish(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Apply all that follows attention; mixed [..., width] has the shape of hidden."""
        hidden = self.attention_norm(hidden + self.dropout(self.out(mixed)))
        inner = self.down(self.activation(self.up(hidden)))
        return self.output_norm(hidden + self.dropout(inner))


class Backbone(nn.Module):
    """A transformer encoder whose layers can be run in parts.

    Parameters
    ----------
    shape : Architecture

    Notes
    -----
    Weights are not initialised: load them with `load_state_dict`.
    """

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.shape = shape
        self.build(shape)

    def build(self, shape: Architecture) -> None:
        """Add the modules; the weights are not initialised."""
        self.words = Embedding(shape.vocabulary, shape.width)
        # Positions count from 0; segment embeddings (always segment 0 here) are folded in on load.
        self.positions = Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.dropout = nn.Dropout(shape.dropout)
        self.relative = (
            Embedding(shape.relative_buckets, shape.heads) if shape.relative_buckets else None
        )
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))

    def frozen_parts(self, count: int) -> list[nn.Module]:
        """Return the modules before and in the first `count` layers."""
        parts: list[nn.Module] = [self.words, self.positions, self.norm]
        if self.relative is not None:
            parts.append(self.relative)
        return parts + list(self.layers[:count])

    def embed(self, ids: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Return the embeddings [batch, length, width] of token ids [batch, length].

        offsets [batch, length] are the positions of tokens in their text; by default, in the row.
        """
        positions = self.positions.weight[: ids.shape[1]]
        if offsets is not None:  # as a product: the gradient of a look-up sorts, which is slow
            numbers = torch.arange(len(positions), device=ids.device)
            positions = (offsets[:, :, None] == numbers).to(positions.dtype) @ positions
        return self.dropout(self.norm(self.words(ids) + positions))

    def embed_joined(self, ids: Tensor, runs: Runs) -> Tensor:
        """Return the embeddings [T, width] of token ids [T] of texts one after the other."""
        return self.norm(self.words(ids) + self.positions.weight[runs.offset])

    def attention_bias(self, mask: Tensor) -> Tensor:
        """Return what attention adds to its scores: -inf where masked, MPNet's position bias.

        mask [batch, length] is True for real tokens, or [batch, length, length] is True where one
        token attends to another.
        """
        padding = mask.new_zeros(mask.shape, dtype=torch.float32).masked_fill(~mask, float("-inf"))
        # [batch, 1, 1 or length, length]
        padding = padding[:, None, None, :] if mask.ndim == 2 else padding[:, None]
        if self.relative is None:
            return padding
        buckets = _relative_buckets(mask.shape[-1], self.shape.relative_buckets, mask.device)
        return padding + self.relative(buckets).permute(2, 0, 1)  # [batch, heads, length, length]

    def run(self, hidden: Tensor, mask: Tensor, start: int, stop: int) -> Tensor:
        """Run layers start to stop-1 on hidden states [batch, length, width]."""
        bias = self.attention_bias(mask).to(hidden.dtype)
        tail = bias.shape[-1] % LANES
        # A trace must fit any length.
        unpadded = hidden.is_cuda or self.training or torch.jit.is_tracing()
        if tail > SMALL_TAIL and not unpadded:
            bias = F.pad(bias, (0, LANES - tail), value=float("-inf"))
        bias = bias.expand(-1, self.shape.heads, hidden.shape[1], -1)
        if hidden.is_cuda:  # once for all layers
            bias = bias.contiguous()
        for layer in self.layers[start:stop]:
            hidden = layer(hidden, bias)
        return hidden

    def run_joined(self, hidden: Tensor, runs: Runs, start: int, stop: int) -> Tensor:
        """Run layers start to stop-1 on hidden states [T, width] of texts one after the other.

        For prediction on a CPU: texts of all lengths share the products with the weights, and each
        attends to itself.
        """
        pairs = zip(runs.counts, runs.lengths, strict=True)
        biases = [self._run_bias(*pair) for pair in pairs]
        for layer in self.layers[start:stop]:
            assert isinstance(layer, Layer)
            hidden = layer.over_runs(hidden, runs, biases)
        return hidden

    def _run_bias(self, count: int, length: int) -> Tensor | None:
        """Return what attention adds for texts of equal length on a CPU, None if nothing."""
        tail = length % LANES
        if tail <= SMALL_TAIL and self.relative is None:
            return None
        bias = self.attention_bias(torch.ones(1, length, dtype=torch.bool))
        bias = bias.to(self.words.weight.dtype)
        if tail > SMALL_TAIL:
            bias = F.pad(bias, (0, LANES - tail), value=float("-inf"))
        return bias.expand(count, self.shape.heads, length, -1)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the hidden states [batch, length, width] of the last layer."""
        return self.run(self.embed(ids), mask, 0, self.shape.layers)


def _by_token(mixed: Tensor) -> Tensor:
    """Return the results of attention [batch, heads, length, d] as [batch, length, heads d]."""
    return mixed.transpose(1, 2).flatten(2)


def _relative_buckets(length: int, buckets: int, device: torch.device) -> Tensor:
    """Return MPNet's bucket of each (query, key) offset: exact if near, logarithmic if far."""
    place = torch.arange(length, device=device)
    offset = place[None, :] - place[:, None]  # key minus query
    half = buckets // 2
    side = (offset > 0).long() * half
    distance = offset.abs()
    exact = half // 2
    far = torch.log(distance.clamp(min=1).float() / exact) / torch.log(torch.tensor(128.0 / exact))
    far_bucket = (exact + (far * (half - exact)).long()).clamp(max=half - 1)
    return side + torch.where(distance < exact, distance, far_bucket)


class MaskedWordHead(nn.Module):
    """The masked-word head: scores of all words at masked tokens, tied to the embeddings."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.dense = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))

    def forward(self, hidden: Tensor, words: nn.Embedding) -> Tensor:
        expected = self.norm(F.gelu(self.dense(hidden.float())))
        # The embeddings may be in half precision (see `optimiser`); this head never is.
        return F.linear(expected.to(words.weight.dtype), words.weight).float() + self.bias
