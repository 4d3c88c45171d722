"""Encoder families of the transformers library: their configuration and their weight names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from newfound.encoding.architecture import ACTIVATIONS, Architecture, Modern
from newfound.encoding.weights import check_shape
from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields

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
_MODERN_LAYER: dict[str, str | tuple[str, ...]] = {
    "attention_norm": "attn_norm",
    "qkv": "attn.Wqkv",
    "out": "attn.Wo",
    "output_norm": "mlp_norm",
    "up": "mlp.Wi",
    "down": "mlp.Wo",
}
_MODERN_WORD_HEAD = {"dense": "head.dense", "norm": "head.norm", "bias": "decoder.bias"}


@dataclass(frozen=True)
class Family:
    """Weight names and options of one encoder family."""

    layer_at: str
    layer: Mapping[str, str | tuple[str, ...]]
    word_head: Mapping[str, str]
    skips_positions: bool = False  # positions count from the padding id + 1


_BERT = Family("encoder.layer", _BERT_LAYER, _BERT_WORD_HEAD)
_ROBERTA = Family("encoder.layer", _BERT_LAYER, _ROBERTA_WORD_HEAD, skips_positions=True)
MODERN_BIASES = ("attention_bias", "mlp_bias", "norm_bias")  # that published models do not have
WHERE = "config.json"
FAMILIES = {
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "mpnet": Family("encoder.layer", _MPNET_LAYER, _ROBERTA_WORD_HEAD, skips_positions=True),
    "distilbert": Family("transformer.layer", _DISTILBERT_LAYER, _DISTILBERT_WORD_HEAD),
    "modernbert": Family("layers", _MODERN_LAYER, _MODERN_WORD_HEAD),
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
    problem = unsupported(config)
    if problem is not None:
        raise InputError(f"the encoder {where} {problem}")
    shapes = {"distilbert": _distilbert_shape, "modernbert": _modern_shape}
    try:
        shape = shapes.get(config["model_type"], _shape)(config)
        shape.check("config.json")
    except KeyError as missing:
        raise InputError(f"the config.json of the encoder {where} has no {missing}") from missing
    except DamagedFileError as error:
        raise InputError(
            f"the config.json of the encoder {where} is damaged ({error}); save the encoder again"
        ) from error
    return shape


def unsupported(config: Mapping[str, Any]) -> str | None:
    """Return why the backbone cannot run an encoder with this config.json; None if it can."""
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        return (
            f"is of type {str(family)[:40]!r}, which newfound does not support; choose one of type "
            f"{', '.join(sorted(FAMILIES))}"
        )
    names = ("hidden_act", "activation", "hidden_activation")
    activation = next((config[name] for name in names if name in config), "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        return "has an activation that newfound does not support"
    if config.get("position_embedding_type", "absolute") != "absolute":
        return "has relative positions, which newfound does not support"
    if family == "modernbert" and any(config.get(name) for name in MODERN_BIASES):
        return "has biases, which newfound does not support in this family"
    if family == "modernbert" and any(
        rope.get("rope_type", "default") != "default" for rope in _ropes(config)
    ):
        return "has scaled rotary positions, which newfound does not support"
    return None


def _ropes(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return ModernBERT's settings of rotary positions: of all layers, then of local ones."""
    given = config.get("rope_parameters")
    named = given if isinstance(given, dict) else {}
    found = [named.get(name) for name in ("full_attention", "sliding_attention")]
    return [rope if isinstance(rope, dict) else {} for rope in found]


def _modern_shape(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture in a config.json of the type modernbert."""
    layers = config["num_hidden_layers"]
    every = config.get("global_attn_every_n_layers", 3)
    window = config.get("local_attention", 128)
    given = {"num_hidden_layers": layers, "global_attn_every_n_layers": every}
    check_fields(
        {**given, "local_attention": window}, dict.fromkeys([*given, "local_attention"], int), WHERE
    )
    kinds = config.get("layer_types")
    if not isinstance(kinds, list):  # as older versions of the library wrote it
        kinds = ["near" if i % max(1, every) else "full_attention" for i in range(layers)]
    everywhere, nearby = _ropes(config)
    modern = Modern.from_dict(
        {
            "global_layers": [i for i, kind in enumerate(kinds) if kind == "full_attention"],
            "window": window // 2,
            "global_base": everywhere.get("rope_theta", config.get("global_rope_theta", 160_000.0)),
            "local_base": nearby.get("rope_theta", config.get("local_rope_theta", 10_000.0)),
        },
        WHERE,
    )
    return Architecture(
        vocabulary=config["vocab_size"],
        width=config["hidden_size"],
        layers=layers,
        heads=config["num_attention_heads"],
        inner=config["intermediate_size"],
        positions=config["max_position_embeddings"],
        activation=config.get("hidden_activation", "gelu"),
        norm_epsilon=config.get("norm_eps", 1e-5),
        dropout=config.get("mlp_dropout", 0.0),
        attention_dropout=config.get("attention_dropout", 0.0),
        modern=modern,
    )


def _distilbert_shape(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture in a config.json of the type distilbert."""
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


def _shape(config: Mapping[str, Any]) -> Architecture:
    """Return the architecture in a config.json of another type."""
    skipped, family = 0, config["model_type"]
    check_fields(config, {"max_position_embeddings": int}, "config.json")
    if FAMILIES[family].skips_positions:  # MPNet's padding id is 1 whatever its config states
        padding = 1 if family == "mpnet" else config.get("pad_token_id", 1)
        check_fields({"pad_token_id": padding}, {"pad_token_id": int}, "config.json")
        skipped = padding + 1
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
    prefix = re.compile(r"^(bert|roberta|mpnet|distilbert|model)\.")
    renamed = {
        prefix.sub("", key)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): value.float()
        for key, value in stored.items()
        if value.is_floating_point()
    }
    try:
        found = _backbone_weights if shape.modern is None else _modern_weights
        backbone = dict(found(family, shape, renamed))
        return backbone, _word_head_weights(family, shape, renamed)
    except KeyError as missing:
        raise InputError(
            f"the weights of the encoder {where} have no {missing}; check that the file is complete"
        ) from missing
    except DamagedFileError as error:
        raise InputError(
            f"the weights of the encoder {where} do not match its config.json ({error}): save the "
            "encoder again"
        ) from error


def _word_head_weights(
    family: Family, shape: Architecture, stored: Mapping[str, Tensor]
) -> dict[str, Tensor] | None:
    """Return the weights of the masked-word head, None if there is none."""
    parts = family.word_head
    if f"{parts['dense']}.weight" not in stored or parts["bias"] not in stored:
        return None
    stored = dict(stored)
    if shape.modern is not None:  # without biases
        for name in ("dense", "norm"):
            stored.setdefault(f"{parts[name]}.bias", torch.zeros(shape.width))
    found = {
        f"{ours}.{kind}": stored[f"{parts[ours]}.{kind}"]
        for ours in ("dense", "norm")
        for kind in ("weight", "bias")
    }
    found["bias"] = stored[parts["bias"]]
    for name, weight in found.items():
        square = (shape.width, shape.width) if name == "dense.weight" else (shape.width,)
        check_shape(weight, (shape.vocabulary,) if name == "bias" else square, name)
    return {name: weight.clone() for name, weight in found.items()}


def _modern_weights(
    family: Family, shape: Architecture, stored: Mapping[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the value of each weight of a ModernBERT, after checking its shape."""
    places = {
        "words.weight": "embeddings.tok_embeddings.weight",
        "norm.weight": "embeddings.norm.weight",
        "final_norm.weight": "final_norm.weight",
    }
    for ours, size in shape.weights():
        if ours.startswith("layers."):
            _, number, name, _ = ours.split(".")
            theirs = f"{family.layer_at}.{number}.{family.layer[name]}.weight"
        else:
            theirs = places[ours]
        check_shape(stored[theirs], size, theirs)
        yield ours, stored[theirs].clone()


def _backbone_weights(
    family: Family, shape: Architecture, stored: Mapping[str, Tensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the value of each weight of the backbone, after checking its shape."""

    def take(name: str, *size: int) -> Tensor:
        check_shape(stored[name], size, name)
        return stored[name]

    width = shape.width
    yield "words.weight", take("embeddings.word_embeddings.weight", shape.vocabulary, width)
    name = "embeddings.position_embeddings.weight"
    positions = take(name, max((shape.positions, *stored[name].shape[:1])), width)
    positions = positions[-shape.positions :]
    name = "embeddings.token_type_embeddings.weight"
    if name in stored:
        positions = positions + take(name, max((1, *stored[name].shape[:1])), width)[0]
    yield "positions.weight", positions.clone()
    for kind in ("weight", "bias"):
        yield f"norm.{kind}", take(f"embeddings.LayerNorm.{kind}", width)
    if shape.relative_buckets:
        name = "encoder.relative_attention_bias.weight"
        yield "relative.weight", take(name, shape.relative_buckets, shape.heads)
    sizes = {"up": (shape.inner, width), "down": (width, shape.inner)}
    for number in range(shape.layers):
        for ours, theirs in family.layer.items():
            names = (theirs,) if isinstance(theirs, str) else theirs
            rows, *columns = sizes.get(ours, (width,) if ours.endswith("norm") else (width, width))
            for kind in ("weight", "bias"):
                size = (rows, *columns) if kind == "weight" else (rows,)
                stem = f"{family.layer_at}.{number}"
                parts = [take(f"{stem}.{name}.{kind}", *size) for name in names]
                yield f"layers.{number}.{ours}.{kind}", torch.cat(parts)
