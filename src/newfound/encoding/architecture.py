"""Sizes and options of the backbones, which are saved with their weights and checked."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from newfound.encoding.weights import check_shape
from newfound.errors import DamagedFileError
from newfound.files import check_fields, check_items

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}
SIZES = ("vocabulary", "width", "layers", "heads", "inner", "positions")
MIN_POSITIONS = 3  # of a text with one token between two special ones


@dataclass(frozen=True)
class Modern:
    """Options of the ModernBERT family (see `modern_backbone`)."""

    global_layers: tuple[int, ...]  # whose tokens attend to all others
    window: int  # tokens on each side that the other layers attend to
    global_base: float  # of the rotary angles
    local_base: float

    @classmethod
    def from_dict(cls, value: Any, where: str) -> "Modern":
        """Return the options from a dict, or raise DamagedFileError about file `where`."""
        kinds: dict[str, type | tuple[type, ...]] = {
            "global_layers": (list, tuple),
            "window": int,
            "global_base": (int, float),
            "local_base": (int, float),
        }
        check_fields({"modern": value}, {"modern": dict}, where)
        check_fields(value, kinds, where)
        check_items(list(value["global_layers"]), int, where)
        if value.keys() != kinds.keys() or value["window"] < 0:
            raise DamagedFileError(f"{where} does not describe an encoder")
        if not all(1 <= value[base] < 1e12 for base in ("global_base", "local_base")):
            raise DamagedFileError(f"{where} has positions that no encoder can have")
        return cls(**{**value, "global_layers": tuple(value["global_layers"])})


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
    modern: Modern | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict for a JSON file."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, value: dict[str, Any], where: str) -> "Architecture":
        """Return the architecture from `to_dict`, or raise DamagedFileError about file `where`."""
        unknown = value.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise DamagedFileError(f"{where} does not describe an encoder")
        check_fields(value, dict.fromkeys(SIZES, int), where)
        if "modern" in value:
            value = {**value, "modern": Modern.from_dict(value["modern"], where)}
        shape = cls(**value)
        shape.check(where)
        return shape

    def check(self, where: str) -> None:
        """Raise DamagedFileError about file `where` if no encoder can have these sizes."""
        numbers = ("norm_epsilon", "dropout", "attention_dropout")
        kinds: dict[str, type | tuple[type, ...]] = {
            **dict.fromkeys((*SIZES, "relative_buckets"), int),
            **dict.fromkeys(numbers, (int, float)),
            "activation": str,
        }
        check_fields(asdict(self), kinds, where)
        if self.activation not in ACTIVATIONS:
            raise DamagedFileError(f"{where} has the activation {self.activation[:40]!r}")
        if min(getattr(self, name) for name in SIZES) < 1 or self.width % self.heads:
            raise DamagedFileError(f"{where} has sizes that no encoder can have")
        if self.positions < MIN_POSITIONS or self.relative_buckets not in (0, *range(4, 4096)):
            raise DamagedFileError(f"{where} has positions that no encoder can have")
        if not 0 < self.norm_epsilon < 1 or not all(
            0 <= share < 1 for share in (self.dropout, self.attention_dropout)
        ):
            raise DamagedFileError(f"{where} has a dropout or an epsilon out of range")

    def weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the name and the shape of each weight of the backbone, layer by layer."""
        yield "words.weight", (self.vocabulary, self.width)
        if self.modern is not None:
            yield from self._modern_weights()
            return
        yield "positions.weight", (self.positions, self.width)
        yield from _with_bias("norm", (self.width,))
        if self.relative_buckets:
            yield "relative.weight", (self.relative_buckets, self.heads)
        for number in range(self.layers):
            for name, shape in {
                "qkv": (3 * self.width, self.width),
                "out": (self.width, self.width),
                "attention_norm": (self.width,),
                "up": (self.inner, self.width),
                "down": (self.width, self.inner),
                "output_norm": (self.width,),
            }.items():
                yield from _with_bias(f"layers.{number}.{name}", shape)

    def _modern_weights(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the weights of a ModernBERT, except for the word embeddings."""
        yield "norm.weight", (self.width,)
        for number in range(self.layers):
            for name, shape in {
                "attention_norm": (self.width,),
                "qkv": (3 * self.width, self.width),
                "out": (self.width, self.width),
                "output_norm": (self.width,),
                "up": (2 * self.inner, self.width),
                "down": (self.width, self.inner),
            }.items():
                if number or name != "attention_norm":
                    yield f"layers.{number}.{name}.weight", shape
        yield "final_norm.weight", (self.width,)


def _with_bias(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and the shapes of a weight and its bias."""
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def check_backbone(
    shape: Architecture, weights: Mapping[str, Tensor], prefix: str, where: str
) -> None:
    """Raise DamagedFileError unless the weights are those of such a backbone.

    To be called before a `Backbone` is built, which allocates what the architecture states.
    """
    for name, size in shape.weights():
        if prefix + name not in weights:
            raise DamagedFileError(f"{where} has no {prefix + name!r}")
        check_shape(weights[prefix + name], size, f"{where}: {name}")
    words = weights[f"{prefix}words.weight"]
    if not words.sum() and not words.any():  # the sum is quicker
        raise DamagedFileError(f"{where}: words.weight is all zeros")
