"""Assign all texts by a fitted model, in one pass over the kept vectors."""

from dataclasses import dataclass

import numpy as np
import torch

from newfound.checkpoints import Kept
from newfound.data.corpus import Corpus
from newfound.encoding.array_files import release
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.vectors.features import VectorFeatures
from newfound.large.vectors import KeptVectors
from newfound.model import Model, encode_ties_alone
from newfound.progress import Stages

BLOCK = 32_768  # texts that are assigned together


@dataclass(frozen=True, eq=False)
class Assigned:
    """The answers of a model for N texts; the fields are those of `newfound.result.Result`."""

    predicted: np.ndarray
    probability: np.ndarray
    best_known: np.ndarray
    best_known_probability: np.ndarray
    fit: np.ndarray


def assign_all(model: Model, corpus: Corpus, kept: KeptVectors, stages: Stages) -> Assigned:
    """Assign every text of a corpus.

    A model on the frozen encoder reads the kept vectors, so that no text is encoded again; one
    whose encoder was trained encodes the texts.

    Parameters
    ----------
    model : Model
        With reference texts, by which probabilities and fit scores are computed.
    corpus : Corpus
        Its texts are sorted as in `keep_vectors`.
    kept : KeptVectors
    stages : Stages
        Shows the progress; its checkpoints keep the blocks that are done.

    Returns
    -------
    Assigned
    """
    targets = corpus.targets
    parts = []
    with stages.stage("assigning", len(corpus)) as advance:
        for start in range(0, len(corpus), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(corpus)))

            def work(rows: np.ndarray = rows) -> Kept:
                return _assign(model, corpus, kept, targets, rows)

            parts.append(stages.checkpoints.compute("assigning", work).tensors)
            release(kept.values)
            advance(len(rows))
    joined = {name: torch.cat([part[name] for part in parts]).numpy() for name in parts[0]}
    return Assigned(**joined)


def _assign(
    model: Model, corpus: Corpus, kept: KeptVectors, targets: np.ndarray, rows: np.ndarray
) -> Kept:
    """Return the fields of `Assigned` for some rows; equal texts are answered once."""
    reference = model.fit_reference
    assert reference is not None
    places, own = np.unique(kept.place[rows], return_inverse=True)
    texts = [corpus.texts[row] for row in kept.first[places].tolist()]
    features, frozen = _features(model, texts, np.asarray(kept.values[places[0] : places[-1] + 1]))
    vectors = features if frozen is None or not reference.frozen else frozen
    found = model.answers(features, frozen if reference.frozen else None)
    fit = reference.scores(vectors, found.index)[own]
    given = targets[rows]
    moved = np.flatnonzero((given >= 0) & (given != found.index[own]))
    fit[moved] = reference.scores(vectors[own[moved]], given[moved])
    arrays = {
        "predicted": found.index[own],
        "probability": found.probability[own],
        "best_known": found.best_known[own],
        "best_known_probability": found.best_known_probability[own],
        "fit": fit,
    }
    return Kept(None, {name: torch.from_numpy(array) for name, array in arrays.items()})


def _features(
    model: Model, texts: list[str], vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the features of texts, and the vectors before training if the model has them."""
    feature_map = model.features
    frozen: np.ndarray | None
    again: list[str] | np.ndarray = texts
    if isinstance(feature_map, EncoderFeatures | VectorFeatures) and feature_map.pooled:
        device = feature_map.device
        inputs = Inputs(
            torch.from_numpy(vectors).to(device), np.ones(len(vectors), np.int64), device
        )
        features, frozen = features_of(feature_map, inputs).cpu().numpy(), inputs.pooled_vectors()
        if getattr(feature_map, "takes_vectors", False):
            again = vectors
    else:
        features, frozen = feature_map.with_frozen(texts)
    return encode_ties_alone(feature_map, model.prototypes, again, features), frozen
