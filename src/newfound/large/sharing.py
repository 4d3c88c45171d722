"""Share the encoding of a large table among worker processes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound.checkpoints import Kept
from newfound.encoding.array_files import scratch_array
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import SHORT_NAMES, Encoder, load_encoder
from newfound.errors import InputError
from newfound.progress import Stages

PART = 8_192  # texts that a worker encodes at a time, and that are kept together

# Calls a `PartWork` with each item and yields its position and result in any order, such as
# `functools.partial(newfound.sharding.ray_workers.call_on_ray, workers=4)`.
Engine = Callable[[Any, Sequence[list[str]]], Iterator[tuple[int, Any]]]


@dataclass(frozen=True)
class PartWork:
    """Encodes lists of texts; it can be sent to other processes, which load the encoder once.

    Attributes
    ----------
    name : str
        Short name, folder or Hub id of the encoder.
    pooling : str
    max_tokens, limit : int
        Tokens of a part of a text, and of a text, that are used.
    fingerprint : str
        Of the encoder that is meant.
    device : str
    """

    name: str
    pooling: str
    max_tokens: int
    limit: int
    fingerprint: str
    device: str

    @classmethod
    def of(cls, encoder: Encoder) -> "PartWork":
        """Return the work of an encoder on its kind of device."""
        name, folder = encoder.name, Path(encoder.name)
        if name not in SHORT_NAMES and folder.is_dir():
            name = str(folder.resolve())  # a worker may have another working directory
        device = encoder.device.type
        sizes = encoder.max_tokens, encoder.limit
        return cls(name, encoder.pooling, *sizes, encoder.fingerprint, device)

    @cached_property
    def model(self) -> EncoderFeatures:
        """The encoder before any training, on the device."""
        encoder = load_encoder(self.name, pooling=self.pooling)
        if encoder.fingerprint != self.fingerprint:
            raise InputError(
                f"a worker has other weights of the encoder {self.name}; install the same encoder "
                "on every machine"
            )
        encoder = replace(encoder, max_tokens=self.max_tokens, limit=self.limit)
        model = EncoderFeatures(encoder, frozen_layers=encoder.layers)
        return model.to(torch.device(self.device)).eval()

    def load(self) -> None:
        """Load the encoder, before the first part."""
        _ = self.model

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Return the pooled vectors float16 [N, width] of texts."""
        frozen = self.model.with_frozen(texts)[1]
        assert frozen is not None
        return frozen.astype(np.float16)  # exact: they were rounded before


def encode_shared(
    encoder: Encoder, texts: Sequence[str], stages: Stages, engine: Engine
) -> np.ndarray:
    """Return the pooled vectors [N, width] of texts, encoded by the workers of an engine.

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of str
    stages : Stages
        Shows the progress; its checkpoints keep the parts that are done.
    engine : callable

    Returns
    -------
    ndarray of float16
        Memory-mapped.
    """
    values = scratch_array((len(texts), encoder.backbone.shape.width))
    key, missing = stages.checkpoints.key("encoding"), []
    with stages.stage("encoding", len(texts)) as advance:
        for start in range(0, len(texts), PART):
            kept = stages.checkpoints.load(f"{key}.{start}")
            if kept is None:
                missing.append(start)
                continue
            values[start : start + PART] = kept.tensors["states"].numpy()
            advance(len(texts[start : start + PART]))
        parts = [list(texts[start : start + PART]) for start in missing]
        for position, found in engine(PartWork.of(encoder), parts):
            if not isinstance(found, np.ndarray):  # the workers were lost
                raise InputError(f"some texts could not be encoded: {found}")
            start = missing[position]
            values[start : start + PART] = found
            states = torch.from_numpy(np.array(found))  # an array of Ray is read-only
            stages.checkpoints.save(f"{key}.{start}", Kept(None, {"states": states}))
            advance(len(found))
    return values
