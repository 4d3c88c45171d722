"""Scale the vectors of a frozen encoder, and encode texts with it in parts that are kept."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from newfound.encoding.array_files import new_array, read_array, scratch_array
from newfound.encoding.vectors.frozen_encoder import FrozenEncoder
from newfound.errors import InputError
from newfound.progress import Advance, Stages

LENGTH = 5.0  # of a scaled vector: the mean of the default encoder, for which heads are tuned
BLOCK = 8192  # vectors that are scaled at a time
PART = 4096  # texts that are encoded and kept together


def scaled(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, w] of length LENGTH in half precision; none may be zero."""
    found = np.empty(vectors.shape, np.float16)
    for start in range(0, len(vectors), BLOCK):
        part = vectors[start : start + BLOCK].astype(np.float64)
        # By the largest value first: the square of a number may be too large.
        part /= np.abs(part).max(1, keepdims=True)
        found[start : start + BLOCK] = LENGTH * part / np.linalg.norm(part, axis=1, keepdims=True)
    return found


def encode_scaled(
    source: FrozenEncoder, texts: Sequence[str], width: int | None, advance: Advance | None = None
) -> np.ndarray:
    """Return the scaled vectors [N, width] of texts, after checking those of the encoder.

    Parameters
    ----------
    source : FrozenEncoder
    texts : sequence of str
    width : int or None
        Dimensions that the vectors must have; None accepts any.
    advance : callable, optional
        Called with the number of texts done.

    Returns
    -------
    ndarray of float16
    """
    if not texts:
        return np.empty((0, width or 0), np.float16)
    found = source.encode(texts, advance)
    if width is not None and found.shape[1] != width:
        raise InputError(
            f"the encoder {source.name} now gives vectors of {found.shape[1]:,} dimensions, and "
            f"gave {width:,} before; use the encoder of the fit, or fit again"
        )
    bad = np.flatnonzero(~np.isfinite(found).all(1) | ~found.any(1))
    if len(bad):
        text = texts[bad[0]]
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InputError(
            f"the encoder {source.name} gives no usable vector for {len(bad):,} of {len(texts):,} "
            f"texts (zero or not finite; first: {shown!r}); remove such texts or use another "
            "encoder"
        )
    return scaled(found)


def encode_corpus(
    source: FrozenEncoder, texts: Sequence[str], stages: Stages, cache: Path | None
) -> np.ndarray:
    """Return the scaled vectors [N, width] of a corpus; a repeated text is encoded once.

    Parameters
    ----------
    source : FrozenEncoder
    texts : sequence of str
    stages : Stages
        Shows the progress; its checkpoints keep the parts that are done.
    cache : Path, optional
        Folder that keeps the vectors for later runs, under a hash of encoder and texts.

    Returns
    -------
    ndarray of float16
    """
    distinct = list(dict.fromkeys(texts))
    place = {text: i for i, text in enumerate(distinct)}
    rows = [place[text] for text in texts]
    return encode_distinct(source, distinct, stages, cache)[rows]


def encode_distinct(
    source: FrozenEncoder,
    texts: Sequence[str],
    stages: Stages,
    cache: Path | None,
    *,
    in_memory: bool = True,
) -> np.ndarray:
    """Return the scaled vectors [N, width] of texts, each of which is encoded.

    Parameters
    ----------
    source, texts, stages, cache
        As for `encode_corpus`.
    in_memory : bool
        Whether the vectors are held in memory; otherwise they are memory-mapped.

    Returns
    -------
    ndarray of float16
    """
    make = _empty if in_memory else scratch_array
    with stages.stage("encoding", len(texts)) as advance:
        if cache is None or source.width is None:
            return _encode_parts(source, texts, stages, advance, make)
        shape = (len(texts), source.width)
        path = cache / f"{_key(source, texts)}.features"
        found = read_array(path, shape, in_memory=in_memory, note=stages.note)
        if found is None:
            with new_array(path, shape, in_memory=in_memory) as found:
                values = found
                _encode_parts(source, texts, stages, advance, lambda _: values)
    return found


def _empty(shape: tuple[int, int]) -> np.ndarray:
    """Return an array to fill."""
    return np.empty(shape, np.float16)


def _encode_parts(
    source: FrozenEncoder,
    texts: Sequence[str],
    stages: Stages,
    advance: Advance,
    make: Callable[[tuple[int, int]], np.ndarray],
) -> np.ndarray:
    """Return the scaled vectors of texts, encoded in parts that checkpoints keep.

    The array comes from `make` with its shape, which the first part tells.
    """
    values: np.ndarray | None = None
    for start in range(0, len(texts), PART):
        part = list(texts[start : start + PART])
        width = None if values is None else values.shape[1]

        def encode(part: list[str] = part, width: int | None = width) -> torch.Tensor:
            return torch.from_numpy(encode_scaled(source, part, width, advance))

        found = stages.checkpoints.compute_tensor("encoding", encode).numpy()
        if values is None:
            values = make((len(texts), found.shape[1]))
        values[start : start + PART] = found
    assert values is not None
    return values


def _key(source: FrozenEncoder, texts: Sequence[str]) -> str:
    """Return a hash of the encoder and the texts."""
    digest = hashlib.sha256(source.fingerprint.encode())
    for text in texts:
        content = text.encode("utf-8", "replace")
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:32]
