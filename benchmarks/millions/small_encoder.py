"""A small encoder of the real width, for measurements in which the real one would take hours."""

from pathlib import Path

import torch
from safetensors.torch import save_file

from newfound.encoding.loading import load_encoder
from newfound.files import write_json

INNER, HEADS = 8, 4
DESCRIBED = "word embeddings of minilm"


def write_small_encoder(folder: Path, real: str) -> Path:
    """Write the word embeddings of a real encoder as an encoder whose one layer changes nothing.

    Vectors are as wide as those of the real encoder, so that memory and time of everything but the
    encoder are the same.

    Parameters
    ----------
    folder : Path
        A new folder.
    real : str
        Short name, folder or Hub id of a BERT encoder.

    Returns
    -------
    Path
        The folder.
    """
    encoder = load_encoder(real)
    shape, backbone = encoder.backbone.shape, encoder.backbone
    folder.mkdir(parents=True)
    encoder.tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "model_type": "bert",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": 1,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": shape.positions,
    }
    write_json(folder / "config.json", settings)
    width, layer = shape.width, "encoder.layer.0"
    weights = {
        "embeddings.word_embeddings.weight": backbone.words.weight,
        "embeddings.position_embeddings.weight": torch.zeros(shape.positions, width),
    }
    sizes = {
        **{f"attention.self.{part}": (width, width) for part in ("query", "key", "value")},
        "attention.output.dense": (width, width),
        "intermediate.dense": (INNER, width),
        "output.dense": (width, INNER),
    }
    for name, size in sizes.items():
        weights[f"{layer}.{name}.weight"] = torch.zeros(size)
        weights[f"{layer}.{name}.bias"] = torch.zeros(size[0])
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        weights[f"{name}.LayerNorm.weight"] = torch.ones(width)
        weights[f"{name}.LayerNorm.bias"] = torch.zeros(width)
    save_file(
        {n: w.detach().clone().contiguous() for n, w in weights.items()},
        folder / "model.safetensors",
    )
    return folder
