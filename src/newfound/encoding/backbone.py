"""One transformer encoder for the BERT, RoBERTa, DistilBERT and MPNet families.

The four families are the same network (post-norm layers over word and position embeddings) with
different weight names, so one torch module implements them all. An own forward pass allows training
to start at any layer (see `feature_cache`) and to run as CUDA graphs, and it imports nothing but
torch. Tests compare each family with the transformers library.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields


@dataclass(frozen=True)
class Architecture:
    """Sizes and options of a backbone, which are saved with its weights."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    activation: str = "gelu"
    norm_epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    relative_buckets: int = 0  # MPNet's relative position bias; 0 = none

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict for a JSON file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any], where: str) -> "Architecture":
        """Return the architecture from `to_dict`, or raise DamagedFileError about file `where`."""
        required = ("vocabulary", "width", "layers", "heads", "inner", "positions")
        check_fields(value, dict.fromkeys(required, int), where)
        numbers = ("norm_epsilon", "dropout", "attention_dropout", "relative_buckets")
        given = [name for name in numbers if name in value]  # the others have defaults
        check_fields(value, dict.fromkeys(given, (int, float)), where)
        unknown = value.keys() - {*required, *numbers, "activation"}
        if unknown or value.get("activation", "gelu") not in ACTIVATIONS:
            raise DamagedFileError(f"{where} does not describe an encoder")
        sizes = [value[name] for name in (*required, *given)]
        if min(sizes) < 0 or not value["heads"] or value["width"] % value["heads"]:
            raise DamagedFileError(f"{where} has sizes that no encoder can have")
        return cls(**value)


ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


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
            return self._finish(hidden, mixed)
        qkv = self.qkv(hidden).view(batch, length, 3, self.heads, width // self.heads)
        dropout = self.attention_dropout if self.training else 0.0
        if hidden.is_cuda and self.training and length <= SHORT:
            # [batch, heads, length, width / heads] each
            query, key, value = qkv.permute(2, 0, 3, 1, 4).contiguous()
            mixed = attend(query, key, value, bias, dropout)
        else:
            query, key, value = (part.transpose(1, 2) for part in qkv.unbind(2))
            if bias.shape[-1] > length:
                padded = qkv.new_zeros(batch, bias.shape[-1], 2, *qkv.shape[3:])
                padded[:, :length] = qkv[:, :, 1:]
                key, value = (part.transpose(1, 2) for part in padded.unbind(2))
            mixed = F.scaled_dot_product_attention(query, key, value, bias, dropout)
        return self._finish(hidden, mixed)

    def _finish(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        """Apply all that follows attention; mixed [batch, heads, length, width / heads]."""
        mixed = mixed.transpose(1, 2).reshape(hidden.shape)
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
        self.words = Embedding(shape.vocabulary, shape.width)
        # Positions count from 0; segment embeddings (always segment 0 here) are folded in on load.
        self.positions = Embedding(shape.positions, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=shape.norm_epsilon)
        self.dropout = nn.Dropout(shape.dropout)
        self.relative = (
            Embedding(shape.relative_buckets, shape.heads) if shape.relative_buckets else None
        )
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))

    def embed(self, ids: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Return the embeddings [batch, length, width] of token ids [batch, length].

        offsets [batch, length] are the positions of tokens in their text; by default, in the row.
        """
        positions = self.positions.weight[: ids.shape[1]]
        if offsets is not None:  # as a product: the gradient of a look-up sorts, which is slow
            numbers = torch.arange(len(positions), device=ids.device)
            positions = (offsets[:, :, None] == numbers).to(positions.dtype) @ positions
        return self.dropout(self.norm(self.words(ids) + positions))

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

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the hidden states [batch, length, width] of the last layer."""
        return self.run(self.embed(ids), mask, 0, self.shape.layers)


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


# --- weights saved by the transformers library ------------------------------------------------

_BERT_LAYER: dict[str, str | tuple[str, ...]] = {
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "out": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "output_norm": "output.LayerNorm",
}
_MPNET_LAYER: dict[str, str | tuple[str, ...]] = {
    **_BERT_LAYER,
    "qkv": ("attention.attn.q", "attention.attn.k", "attention.attn.v"),
    "out": "attention.attn.o",
    "attention_norm": "attention.LayerNorm",
}
_DISTILBERT_LAYER: dict[str, str | tuple[str, ...]] = {
    "qkv": ("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    "out": "attention.out_lin",
    "attention_norm": "sa_layer_norm",
    "up": "ffn.lin1",
    "down": "ffn.lin2",
    "output_norm": "output_layer_norm",
}
_BERT_WORD_HEAD = {
    "dense": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}
_ROBERTA_WORD_HEAD = {
    "dense": "lm_head.dense",
    "norm": "lm_head.layer_norm",
    "bias": "lm_head.bias",
}
_DISTILBERT_WORD_HEAD = {
    "dense": "vocab_transform",
    "norm": "vocab_layer_norm",
    "bias": "vocab_projector.bias",
}


@dataclass(frozen=True)
class Family:
    """Weight names and options of one encoder family."""

    layer_at: str
    layer: Mapping[str, str | tuple[str, ...]]
    word_head: Mapping[str, str]
    skips_positions: bool = False  # positions count from the padding id + 1


_BERT = Family("encoder.layer", _BERT_LAYER, _BERT_WORD_HEAD)
_ROBERTA = Family("encoder.layer", _BERT_LAYER, _ROBERTA_WORD_HEAD, skips_positions=True)
FAMILIES = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": Family("encoder.layer", _MPNET_LAYER, _ROBERTA_WORD_HEAD, skips_positions=True),
    "distilbert": Family("transformer.layer", _DISTILBERT_LAYER, _DISTILBERT_WORD_HEAD),
}


def read_architecture(config: Mapping[str, Any], where: str) -> Architecture:
    """Read the architecture from a config.json of the transformers library.

    Parameters
    ----------
    config : mapping
        Content of config.json.
    where : str
        Name of the encoder in messages.

    Returns
    -------
    Architecture

    Raises
    ------
    InputError
        If the encoder is of an unsupported type.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise InputError(
            f"the encoder {where} is of type {family!r}, which newfound does not support; "
            f"choose one of type {', '.join(sorted(FAMILIES))}"
        )
    if config.get("hidden_act", config.get("activation", "gelu")) not in ACTIVATIONS:
        raise InputError(f"the encoder {where} has an activation that newfound does not support")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(
            f"the encoder {where} has relative positions, which newfound does not support"
        )
    try:
        if family == "distilbert":
            return Architecture(
                vocabulary=config["vocab_size"],
                width=config["dim"],
                layers=config["n_layers"],
                heads=config["n_heads"],
                inner=config["hidden_dim"],
                positions=config["max_position_embeddings"],
                activation=config.get("activation", "gelu"),
                dropout=config.get("dropout", 0.1),
                attention_dropout=config.get("attention_dropout", 0.1),
            )
        skipped = 0
        if FAMILIES[family].skips_positions:  # MPNet's padding id is 1 whatever its config states
            skipped = 2 if family == "mpnet" else config.get("pad_token_id", 1) + 1
        buckets = config.get("relative_attention_num_buckets", 32) if family == "mpnet" else 0
        return Architecture(
            vocabulary=config["vocab_size"],
            width=config["hidden_size"],
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            inner=config["intermediate_size"],
            positions=config["max_position_embeddings"] - skipped,
            activation=config.get("hidden_act", "gelu"),
            norm_epsilon=config.get("layer_norm_eps", 1e-12),
            dropout=config.get("hidden_dropout_prob", 0.1),
            attention_dropout=config.get("attention_probs_dropout_prob", 0.1),
            relative_buckets=buckets,
        )
    except KeyError as missing:
        raise InputError(f"the config.json of the encoder {where} has no {missing}") from missing


def convert_weights(
    family: Family, shape: Architecture, stored: Mapping[str, Tensor], where: str
) -> tuple[dict[str, Tensor], dict[str, Tensor] | None]:
    """Convert weights of the transformers library.

    Parameters
    ----------
    family : Family
    shape : Architecture
    stored : mapping of str to Tensor
        State dict of the transformers library.
    where : str
        Name of the encoder in messages.

    Returns
    -------
    backbone : dict of str to Tensor
        State dict of `Backbone`.
    word_head : dict of str to Tensor, or None
        State dict of `MaskedWordHead`, if the weights have one.
    """
    prefix = re.compile(r"^(bert|roberta|mpnet|distilbert)\.")
    renamed = {
        prefix.sub("", key)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): value.float()
        for key, value in stored.items()
        if value.is_floating_point()
    }
    try:
        backbone = dict(_backbone_weights(family, shape, renamed))
    except KeyError as missing:
        raise InputError(
            f"the weights of the encoder {where} have no {missing}; check that the file is complete"
        ) from missing
    parts = family.word_head
    if f"{parts['dense']}.weight" not in renamed or parts["bias"] not in renamed:
        return backbone, None
    word_head = {
        f"{ours}.{kind}": renamed[f"{parts[ours]}.{kind}"]
        for ours in ("dense", "norm")
        for kind in ("weight", "bias")
    }
    word_head["bias"] = renamed[parts["bias"]]
    return backbone, word_head


def _backbone_weights(
    family: Family, shape: Architecture, stored: Mapping[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the value of each weight of the backbone."""
    positions = stored["embeddings.position_embeddings.weight"][-shape.positions :]
    if "embeddings.token_type_embeddings.weight" in stored:
        positions = positions + stored["embeddings.token_type_embeddings.weight"][0]
    yield "words.weight", stored["embeddings.word_embeddings.weight"]
    yield "positions.weight", positions.clone()
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", stored[f"embeddings.LayerNorm.{kind}"]
    if shape.relative_buckets:
        yield "relative.weight", stored["encoder.relative_attention_bias.weight"]
    for number in range(shape.layers):
        for ours, theirs in family.layer.items():
            names = (theirs,) if isinstance(theirs, str) else theirs
            for kind in ("weight", "bias"):
                parts = [stored[f"{family.layer_at}.{number}.{name}.{kind}"] for name in names]
                yield f"layers.{number}.{ours}.{kind}", torch.cat(parts)
