"""The speed of parts of a run: training, and encoding and k-means compared with other packages.

Every function returns measurements by name. Other packages and our own code take turns, so that
other load on the machine affects both.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.bench.speed.timing import Measures, time_in_turns, with_rates
from newfound.clustering.kmeans import kmeans
from newfound.encoding.batching import Batch, shuffled_batches, to_device, tokenize
from newfound.encoding.feature_cache import run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.training.losses.dpn import masked_word_loss
from newfound.training.masking import MaskedWords
from newfound.training.optimiser import Optimiser, Term

BATCH = 64
SHARE = 0.15  # of masked words


def measure_encoding(
    plain: EncoderFeatures,
    texts: list[str],
    repeats: int,
    peer: Callable[[list[str]], np.ndarray] | None,
    quantised: Callable[[list[str]], np.ndarray] | None,
) -> Measures:
    """Measure encoding in full precision, in int8 and with sentence-transformers.

    Parameters
    ----------
    plain : EncoderFeatures
        The encoder in full precision, all layers frozen.
    texts : list of str
        The texts to encode.
    repeats : int
        Number of runs whose median is reported.
    peer, quantised : callable or None
        The same encoder in sentence-transformers and in int8; None skips it.

    Returns
    -------
    dict
        One measurement per way of encoding, with its mean cosine to full precision.
    """
    work: dict[str, Callable[[], Any]] = {"fp32": lambda: plain(texts)}
    if quantised is not None:
        work["int8"] = lambda: quantised(texts)
    if peer is not None:
        work["sentence-transformers"] = lambda: peer(texts)
    sample = texts[:256]
    reference = plain(sample)  # also warms up
    measures = {
        name: {"cosine": _cosine(reference, sample, other)}
        for name, other in (("int8", quantised), ("sentence-transformers", peer))
        if other is not None
    }
    found = with_rates(time_in_turns(work, repeats), len(texts))
    for name, measure in measures.items():
        found[name].update(measure)
    return found


def _cosine(reference: np.ndarray, sample: list[str], other: Callable[[list[str]], Any]) -> float:
    """Return the mean cosine of another encoder's vectors to those of the reference."""
    vectors = np.asarray(other(sample))
    return float(((reference * vectors).sum(1) / np.linalg.norm(vectors, axis=1)).mean().round(6))


def measure_kmeans(features: np.ndarray, k: int, repeats: int, starts: int = 10) -> Measures:
    """Measure our k-means and that of scikit-learn on the same features and number of starts."""
    from sklearn.cluster import KMeans

    points, inertia = torch.from_numpy(features), {}

    def ours() -> None:
        inertia["ours"] = kmeans(points, k, starts=starts, seed=0).inertia

    def theirs() -> None:
        found = KMeans(k, n_init=starts, random_state=0).fit(features)
        inertia["scikit-learn"] = float(found.inertia_)

    measures = time_in_turns({"ours": ours, "scikit-learn": theirs}, repeats)
    for name, value in inertia.items():
        measures[name]["inertia"] = round(float(value), 3)
    return measures


def measure_training(encoder: Encoder, texts: list[str], repeats: int) -> Measures:
    """Measure training epochs in texts per second, by trained layers and cached layers."""
    start = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    depth = encoder.backbone.shape.layers
    upper = max(1, depth // 2)
    work: dict[str, Callable[[], Any]] = {}
    model = EncoderFeatures(encoder, head="none", frozen_layers=depth)
    tokens = tokenize(encoder.tokenizer, texts, encoder.max_tokens)
    work["forward"] = lambda: model.encode_tokens(tokens)
    plans = {
        "all layers": (-1, "none", "cached"),
        f"last {upper} layers, not cached": (depth - upper, "none", "plain"),
        f"last {upper} layers, cached": (depth - upper, "none", "cached"),
        "last layer, cached": (depth - 1, "none", "cached"),
        "head on pooled vectors": (depth, "residual", "cached"),
        f"masked words, last {upper} layers": (depth - upper, "none", "masked"),
        f"masked words, last {upper} layers, all places": (depth - upper, "none", "everywhere"),
    }
    if encoder.mask_id is None:
        plans = {name: plan for name, plan in plans.items() if not name.startswith("masked")}
    measures = time_in_turns(work, repeats)
    for name, (frozen, head, kind) in plans.items():
        encoder.backbone.load_state_dict(start)
        epoch = _epoch(encoder, texts, frozen, head, kind)
        measures |= time_in_turns({name: epoch}, repeats)
    encoder.backbone.load_state_dict(start)
    encoder.backbone.requires_grad_(True)
    return with_rates(measures, len(texts))


def _epoch(
    encoder: Encoder, texts: list[str], frozen: int, head: str, kind: str
) -> Callable[[], None]:
    """Return a function that trains for one epoch; the feature cache is filled before."""
    model = EncoderFeatures(encoder, head=head, frozen_layers=frozen)
    tokens = tokenize(encoder.tokenizer, texts, encoder.max_tokens)
    inputs = run_frozen(model, tokens)
    classifier = nn.Linear(model.width, 77)
    targets = torch.arange(len(texts)) % 77
    modules: list[nn.Module] = [model, classifier]
    words = MaskedWords(model, SHARE) if kind in ("masked", "everywhere") else None
    if words is not None:
        modules.append(words.head)

    def labels(raw: Tensor, rows: Tensor) -> dict[str, Tensor]:
        return {"cross_entropy": F.cross_entropy(classifier(raw), targets[rows])}

    def cached(batch: Batch) -> dict[str, Tensor]:
        return labels(model.from_states(*inputs.batch(batch)), batch.rows)

    def plain(batch: Batch) -> dict[str, Tensor]:
        ids, cells = tokens.packed(batch)
        return labels(model.from_states(model.lower(ids, cells), cells), batch.rows)

    def masked(batch: Batch) -> dict[str, Tensor]:
        assert words is not None
        ids, cells = tokens.packed(batch)
        changed, places, wanted = words.mask(ids, cells.slot >= 0)
        hidden = model.upper(model.lower(changed, cells), cells)
        if kind == "masked":
            return {"masked_words": words.loss(hidden, places, wanted)}
        everywhere = torch.full((ids.numel(),), -100).scatter(0, places, wanted)
        scores = words.head(hidden.flatten(0, 1), words.words)
        return {"masked_words": masked_word_loss(scores, everywhere)}

    term: Term = {"cached": cached, "plain": plain}.get(kind, masked)
    optimiser = Optimiser(modules, 1e-5)
    rng = np.random.default_rng(0)

    def epoch() -> None:
        model.train()
        drawn = shuffled_batches(np.arange(len(texts)), min(BATCH, len(texts)), rng)
        for batch in to_device(drawn, tokens.lengths, model.device):
            optimiser.accumulate(term, batch)
            optimiser.step()

    return epoch
