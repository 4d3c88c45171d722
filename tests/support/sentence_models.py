"""Tiny sentence-transformers models, built and saved as users have them."""

from pathlib import Path
from typing import Any

from conftest import VOCABULARY, save_tiny_encoder

SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": len(VOCABULARY),
    "max_position_embeddings": 66,
    "pad_token_id": 0,
}


def save_sentence_model(
    folder: Path,
    family: str = "bert",
    *,
    pooling: str = "mean",
    dense: int | None = None,
    normalise: bool = False,
    **options: Any,
) -> Path:
    """Save a tiny model: a transformer, a pooling and, if wanted, a dense layer of so many units.

    `options` are passed on to SentenceTransformer, such as prompts.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    plain = folder.parent / f"{folder.name}-plain"
    plain.mkdir(parents=True, exist_ok=True)
    save_tiny_transformer(plain, family)
    transformer = modules.Transformer(str(plain))
    parts: list[Any] = [transformer, modules.Pooling(32, pooling_mode=pooling)]
    if dense:
        torch.manual_seed(1)
        parts.append(modules.Dense(32, dense))
    if normalise:
        parts.append(modules.Normalize())
    SentenceTransformer(modules=parts, device="cpu", **options).save(str(folder))
    return folder


def save_tiny_transformer(folder: Path, family: str) -> None:
    """Save a tiny transformer of any family with the tokeniser of the tiny encoders."""
    import torch
    from transformers import AutoConfig, AutoModel

    save_tiny_encoder(folder, "bert")  # its tokeniser; the rest is replaced
    shape: dict[str, Any] = dict(SHAPE)
    if family == "electra":
        shape["embedding_size"] = 16
    if family == "qwen3":
        shape |= {"num_key_value_heads": 2, "head_dim": 8}
    config = AutoConfig.for_model(family, **shape)
    torch.manual_seed(0)
    model = AutoModel.from_config(config)
    with torch.no_grad():  # fresh biases and norms are all zeros and ones: make each one tell
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    model.save_pretrained(folder)
