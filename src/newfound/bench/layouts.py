"""How fast training is, by what learns and what is cached; and k-means and encoding beside peers.

Every function returns measures by name. Peers and our own code take turns, so that a busy machine
slows them alike.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.kmeans import kmeans
from newfound.encoding.batching import Batch, shuffled_batches, to_device, tokenize
from newfound.encoding.feature_cache import run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.training.losses.dpn import masked_word_loss
from newfound.training.masking import MaskedWords
from newfound.training.optimiser import Optimiser, Term

Measures = dict[str, dict[str, Any]]
BATCH = 64
SHARE = 0.15  # of words that are masked


def in_turns(work: Mapping[str, Callable[[], Any]], repeats: int) -> Measures:
    """Median seconds of each piece of work; they take turns, so that all see the same machine."""
    runs: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, do in work.items():
            begun = time.perf_counter()
            do()
            runs[name].append(time.perf_counter() - begun)
    return {
        name: {"seconds": statistics.median(found), "runs": [round(s, 4) for s in found]}
        for name, found in runs.items()
    }


def with_rates(measures: Measures, texts: int) -> Measures:
    """Add texts a second."""
    for measure in measures.values():
        measure["texts_per_second"] = round(texts / measure["seconds"], 1)
    return measures


def measure_encoding(
    plain: EncoderFeatures,
    texts: list[str],
    repeats: int,
    peer: Callable[[list[str]], np.ndarray] | None,
    quantised: Callable[[list[str]], np.ndarray] | None,
) -> Measures:
    """Encoding against sentence-transformers, in full precision and in int8."""
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
    found = with_rates(in_turns(work, repeats), len(texts))
    for name, measure in measures.items():
        found[name].update(measure)
    return found


def _cosine(reference: np.ndarray, sample: list[str], other: Callable[[list[str]], Any]) -> float:
    vectors = np.asarray(other(sample))
    return float(((reference * vectors).sum(1) / np.linalg.norm(vectors, axis=1)).mean().round(6))


def measure_kmeans(features: np.ndarray, k: int, repeats: int, starts: int = 10) -> Measures:
    """k-means against scikit-learn's on the same features with as many starts."""
    from sklearn.cluster import KMeans

    points, inertia = torch.from_numpy(features), {}

    def ours() -> None:
        inertia["ours"] = kmeans(points, k, starts=starts, seed=0).inertia

    def theirs() -> None:
        found = KMeans(k, n_init=starts, random_state=0).fit(features)
        inertia["scikit-learn"] = float(found.inertia_)

    measures = in_turns({"ours": ours, "scikit-learn": theirs}, repeats)
    for name, value in inertia.items():
        measures[name]["inertia"] = round(float(value), 3)
    return measures


def measure_training(encoder: Encoder, texts: list[str], repeats: int) -> Measures:
    """Texts a second of a pass over `texts`, by what learns and what is read from the cache."""
    start = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    depth = encoder.backbone.shape.layers
    third = max(1, depth // 2)
    work: dict[str, Callable[[], Any]] = {}
    model = EncoderFeatures(encoder, head="none", frozen_layers=depth)
    tokens = tokenize(encoder.tokenizer, texts, encoder.max_tokens)
    work["forward"] = lambda: model.encode_tokens(tokens)
    plans = {
        "all layers": (-1, "none", "cached"),
        f"last {third} layers, not cached": (depth - third, "none", "plain"),
        f"last {third} layers, cached": (depth - third, "none", "cached"),
        "last layer, cached": (depth - 1, "none", "cached"),
        "head on pooled vectors": (depth, "residual", "cached"),
        f"masked words, last {third} layers": (depth - third, "none", "masked"),
        f"masked words, last {third} layers, all places": (depth - third, "none", "everywhere"),
    }
    if encoder.mask_id is None:
        plans = {name: plan for name, plan in plans.items() if not name.startswith("masked")}
    measures = in_turns(work, repeats)
    for name, (frozen, head, kind) in plans.items():
        encoder.backbone.load_state_dict(start)
        epoch = _epoch(encoder, texts, frozen, head, kind)
        measures |= in_turns({name: epoch}, repeats)
    encoder.backbone.load_state_dict(start)
    encoder.backbone.requires_grad_(True)
    return with_rates(measures, len(texts))


def _epoch(
    encoder: Encoder, texts: list[str], frozen: int, head: str, kind: str
) -> Callable[[], None]:
    """A pass over the texts with one layout; what is cached is made before."""
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
