"""The vectors of all texts, computed once and memory-mapped."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newfound.data.corpus import Corpus
from newfound.encoding.array_files import release, scratch_array
from newfound.encoding.feature_cache import run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.encoding.vectors.scaling import encode_distinct, scaled
from newfound.large.sharing import Engine, encode_shared
from newfound.progress import Stages

BLOCK = 65_536  # vectors of the user that are scaled at a time


@dataclass(frozen=True, eq=False)
class KeptVectors:
    """One vector per distinct text, and which of them each text has.

    Attributes
    ----------
    values : ndarray of float16, shape (D, w)
        Memory-mapped, so that the file and not the memory holds them.
    place : ndarray of int64, shape (N,)
        Row of `values` of each text, ascending.
    first : ndarray of int64, shape (D,)
        The first text of each row of `values`.
    long : int or None
        Distinct texts that are longer than the encoder reads at once; None if they were not
        counted.
    """

    values: np.ndarray
    place: np.ndarray
    first: np.ndarray
    long: int | None = None

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors [R, w] of texts, in memory."""
        found = np.asarray(self.values[self.place[rows]])
        release(self.values)
        return found


def keep_vectors(
    corpus: Corpus,
    encoder: AnyEncoder,
    stages: Stages,
    cache: Path | None,
    engine: Engine | None = None,
) -> KeptVectors:
    """Encode every distinct text once with the frozen encoder.

    Parameters
    ----------
    corpus : Corpus
        Its texts are sorted, so that equal texts are neighbours.
    encoder : Encoder or VectorEncoder
    stages : Stages
        Shows the progress; its checkpoints keep the texts that are done.
    cache : Path, optional
        Folder that keeps the vectors for later runs; not with an engine.
    engine : callable, optional
        Shares the encoding among workers, if newfound runs the encoder itself.

    Returns
    -------
    KeptVectors
    """
    texts = corpus.texts
    if corpus.vectors is not None:  # equal texts may have different vectors
        rows = np.arange(len(texts))
        return KeptVectors(_scaled(corpus.vectors), rows, rows)
    new = np.fromiter(
        (row == 0 or text != texts[row - 1] for row, text in enumerate(texts)), bool, len(texts)
    )
    first = np.flatnonzero(new)
    distinct = texts if len(first) == len(texts) else [texts[row] for row in first.tolist()]
    long: int | None = None
    if isinstance(encoder, Encoder) and engine is not None:
        values = encode_shared(encoder, distinct, stages, engine)
    elif isinstance(encoder, Encoder):
        values, long = _pooled(encoder, distinct, stages, cache)
    else:
        values = encode_distinct(encoder.source, distinct, stages, cache, in_memory=False)
        for note in encoder.source.notes():
            stages.note(note)
    return KeptVectors(values, np.cumsum(new) - 1, first, long)


def _pooled(
    encoder: Encoder, texts: list[str], stages: Stages, cache: Path | None
) -> tuple[np.ndarray, int]:
    """Return the pooled vectors [N, width] before training, and the number of long texts."""
    model = EncoderFeatures(encoder, frozen_layers=encoder.layers).to(encoder.device)
    with stages.stage("tokenising"):
        tokens = encoder.tokens(texts)
    with stages.stage("encoding", tokens.n_texts) as advance:
        inputs = run_frozen(
            model,
            tokens,
            folder=cache,
            memory_limit=0,
            advance=advance,
            note=stages.note,
            checkpoints=stages.checkpoints,
        )
    assert inputs.mapped is not None
    return inputs.mapped, tokens.long


def _scaled(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of the user, scaled, in a memory-mapped array."""
    values = scratch_array((len(vectors), vectors.shape[1]))
    for start in range(0, len(vectors), BLOCK):
        values[start : start + BLOCK] = scaled(vectors[start : start + BLOCK])
    return values
