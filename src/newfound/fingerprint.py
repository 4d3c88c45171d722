"""The fingerprint of a discovery: digests of everything that its result depends on."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from newfound.data.corpus import Corpus
from newfound.devices import describe_device, plain
from newfound.encoding.loading import Encoder
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.versions import versions

# Settings that change no result, or only what is computed after the fit.
LEFT_OUT = ("cache", "device", "encoder", "outside", "false_alarms")


def fingerprint(
    corpus: Corpus,
    validation: Corpus | None,
    settings: Mapping[str, Any],
    encoder: AnyEncoder,
    device: torch.device,
) -> dict[str, str]:
    """Return digests by what they are of, in words that fit into a message.

    Parameters
    ----------
    corpus : Corpus
    validation : Corpus or None
    settings : mapping
        The settings of the run and, under "settings", those of the method.
    encoder : Encoder or VectorEncoder
    device : torch.device

    Returns
    -------
    dict of str to str
    """
    held_out = None if validation is None else [validation.texts, validation.labels]
    weights: list[Any] = [encoder.fingerprint]
    if isinstance(encoder, Encoder):
        weights += [encoder.backbone.shape.to_dict(), encoder.pooling]
        weights += [encoder.max_tokens, encoder.limit]
        weights.append(encoder.tokenizer.to_str())
    parts = {
        "texts": corpus.texts,
        "labels": corpus.labels,
        "validation texts": held_out,
        "settings": {name: settings[name] for name in settings if name not in LEFT_OUT},
        "word vectors": _stamp(settings["settings"].get("vectors")),
        "weights of the encoder": weights,
        "versions of packages": versions(),
        # The last digit of a sum depends on the threads and on the instruction set.
        "device or number of threads": [
            describe_device(device),
            torch.get_num_threads(),
            torch.backends.cpu.get_cpu_capability(),
            plain(),
        ],
    }
    if corpus.vectors is not None:
        both = [each.vectors for each in (corpus, validation) if each is not None]
        parts["vectors"] = [_digest(each) for each in both if each is not None]
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()
        for name, part in parts.items()
    }


def _digest(vectors: np.ndarray) -> list[Any]:
    """Return the type, the shape and the sha256 of an array."""
    content = np.ascontiguousarray(vectors).data
    return [str(vectors.dtype), vectors.shape, hashlib.sha256(content).hexdigest()]


def _stamp(file: str | None) -> list[int] | None:
    """Return size and time of a file that may be too large to digest; None without one."""
    if not file or not os.path.isfile(file):
        return None
    found = os.stat(file)
    return [found.st_size, found.st_mtime_ns]
