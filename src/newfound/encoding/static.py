"""Static vectors in place of an encoder: no layer runs, which is fast on a CPU but less exact.

As in model2vec, the encoder is distilled into one vector per token, and a text is a mean of
vectors. They are then fitted to what the encoder gives for the user's texts:

1. Encode every token of the vocabulary alone: the start vectors E.
2. With X the counts of tokens, and P those of frequent pairs of neighbouring tokens, each per
   token of the text, and Y the encoder's vectors: Y is about b + X E + X E A + X D + P G.
3. Find the map A and the corrections D and G by ridge regression (`fit_corrections`).
4. Store E (1 + A) + D for tokens, and G for pairs.

Head, normalisation and prototypes stay those of the full model. How often both give the same
category is measured on texts that were not fitted.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from newfound.encoding.batching import Ragged
from newfound.encoding.feature_maps import EncoderFeatures, FeatureMap
from newfound.encoding.int8 import (
    AGREEMENT,
    COMPARISON_TEXTS,
    Agreement,
    Categories,
    compare,
    draw,
    original_of,
)
from newfound.encoding.parts import special_tokens
from newfound.encoding.weights import check_finite, check_shape, parse_tensors
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import CheckedFolder, check_fields, read_json, write_folder, write_json
from newfound.files.manifest import sha256_of
from newfound.progress import Advance

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NAME = "static"
FORMAT = 1
ABOUT, FILE = "static.json", "static.safetensors"
FITTED_TEXTS = 6000  # the time of the fit grows with their third power
FITTED_CHARACTERS = 4_000_000  # of all these texts, which the full encoder has to read
MOST_TOKENS_ALONE = 50_000  # tokens of the vocabulary that are encoded; the others are zero
LEAST_TEXTS = 2  # that a pair must be in
# Prior variances of A, D and G, relative to the noise; each as a share of the mean diagonal of its
# kernel. They lie beyond a grid tried on BANKING, and were not measured.
MAP, TOKENS, PAIRS = 100.0, 10.0, 10.0
BLOCK = 8192  # texts at a time


@dataclass(frozen=True)
class StaticVectors:
    """Vectors of tokens and of pairs of neighbouring tokens.

    Attributes
    ----------
    tokens : Tensor of shape [V, w]
    pairs : Tensor of shape [P, w]
    codes : Tensor of shape [P], int64, increasing
        Of each pair: V times the first token plus the second.
    bias : Tensor of shape [w]
    """

    tokens: Tensor
    pairs: Tensor
    codes: Tensor
    bias: Tensor

    def __call__(self, texts: Ragged) -> Tensor:
        """Return the vectors [N, w] of tokenised texts."""
        ids, owner = texts.values, torch.from_numpy(np.repeat(texts.texts, texts.lengths))
        lengths = torch.bincount(owner, minlength=texts.n_texts)
        place, found = find_pairs(ids, owner, self.codes, len(self.tokens))
        total = _sums(self.tokens, ids, lengths)
        if len(place):
            total += _sums(self.pairs, place, torch.bincount(found, minlength=texts.n_texts))
        return total / lengths[:, None] + self.bias


def _sums(vectors: Tensor, ids: Tensor, counts: Tensor) -> Tensor:
    """Return the sums [N, w] of the vectors of consecutive ids, `counts` [N] of them per text."""
    return F.embedding_bag(ids, vectors, counts.cumsum(0) - counts, mode="sum")


def find_pairs(ids: Tensor, owner: Tensor, codes: Tensor, base: int) -> tuple[Tensor, Tensor]:
    """Return the pairs of neighbouring tokens that are among `codes`.

    Parameters
    ----------
    ids : Tensor of shape [T]
    owner : Tensor of shape [T]
        Text of each token.
    codes : Tensor of shape [P], increasing
    base : int
        Number of tokens in the vocabulary.

    Returns
    -------
    place : Tensor
        Index into `codes` of each pair that was found.
    text : Tensor
        Its text.
    """
    within = owner[:-1] == owner[1:]
    found, text = (ids[:-1] * base + ids[1:])[within], owner[:-1][within]
    if not len(codes):
        return found[:0], text[:0]
    place = torch.searchsorted(codes, found).clamp(max=len(codes) - 1)
    there = codes[place] == found
    return place[there], text[there]


class StaticFeatures:
    """A feature map of an encoder whose static vectors stand for its backbone.

    Parameters
    ----------
    original : EncoderFeatures
        The full feature map.
    vectors : StaticVectors
    """

    kind = EncoderFeatures.kind
    precision = NAME
    noise = EncoderFeatures.noise

    def __init__(self, original: EncoderFeatures, vectors: StaticVectors) -> None:
        self.original, self.vectors = original.eval(), vectors

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features of texts, float32 [N, outputs]."""
        return self.with_frozen(texts, advance)[0]

    @torch.inference_mode()
    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the static vectors [N, width]; None if some layers learnt."""
        original, features, pooled = self.original, [], []
        for start in range(0, len(texts), BLOCK):
            some = texts[start : start + BLOCK]
            pooled.append(self.vectors(original.encoder.tokens(some)))
            features.append(original.from_pooled(pooled[-1]))
            if advance:
                advance(len(some))
        if not features:
            features, pooled = [torch.empty(0, original.outputs)], [torch.empty(0, original.width)]
        frozen = torch.cat(pooled).numpy() if original.pooled else None
        return torch.cat(features).numpy(), frozen

    def save(self, folder: Path) -> None:
        """Write the full encoder, from which static vectors can be distilled again."""
        self.original.save(folder)


def static_features(
    features: FeatureMap,
    categories_of: Categories,
    texts: Sequence[str],
    folder: Path | None = None,
) -> tuple[StaticFeatures, Agreement]:
    """Distil the feature map of an encoder into static vectors.

    Parameters
    ----------
    features : FeatureMap
        Feature map of an encoder on a CPU; it is not changed.
    categories_of : callable
        Returns the categories [N] of features [N, d], by which the two maps are compared.
    texts : sequence of str
        Texts to fit the vectors to, similar to those that will be predicted. Some of them are held
        out for the comparison.
    folder : Path, optional
        Folder that caches the vectors.

    Returns
    -------
    features : StaticFeatures
    agreement : Agreement
    """
    original = original_of(features, NAME)
    key = _key(original)
    kept = _read(original, folder, key) if folder is not None else None
    if kept is not None:
        return kept
    chosen = draw(texts, FITTED_TEXTS + COMPARISON_TEXTS, NAME)
    # Of few texts, a fifth is held out.
    held_out = min(COMPARISON_TEXTS, max(1, len(chosen) // 5))
    fitted = _beginning(chosen[held_out:] or chosen)
    converted = StaticFeatures(original, distil(original, fitted))
    agreement = compare(original, converted, categories_of, chosen[:held_out], NAME)
    if folder is not None:
        with suppress(InputError):  # the cache is optional
            _write(folder, key, converted.vectors, agreement)
    return converted, agreement


def _beginning(texts: Sequence[str]) -> Sequence[str]:
    """Return as many of the texts as have FITTED_CHARACTERS, at least one."""
    before = np.cumsum([len(text) for text in texts]) - [len(text) for text in texts]
    return texts[: int((before < FITTED_CHARACTERS).sum())]


@torch.inference_mode()
def distil(original: EncoderFeatures, texts: Sequence[str]) -> StaticVectors:
    """Return static vectors that give about the encoder's vectors of `texts`."""
    tokens = original.encoder.tokens(texts)
    base = original.backbone.shape.vocabulary
    start = token_vectors(original, tokens)
    ids, owner = tokens.values, torch.from_numpy(np.repeat(tokens.texts, tokens.lengths))
    codes = frequent_pairs(ids, owner, base)
    place, text = find_pairs(ids, owner, codes, base)
    lengths = np.bincount(owner.numpy(), minlength=tokens.n_texts)
    counts = _shares(owner, ids, lengths, base)
    pairs = _shares(text, place, lengths, len(codes))
    wanted = original.vectors_of(tokens).numpy().astype(np.float64)
    bias, change, single, double = fit_corrections(counts, pairs, start.numpy(), wanted)
    vectors = start.numpy() + start.numpy() @ change + single
    return StaticVectors(_single(vectors), _single(double), codes, _single(bias))


def _single(values: np.ndarray) -> Tensor:
    """Return an array as a tensor in single precision."""
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))


def fit_corrections(
    counts: "csr_matrix", pairs: "csr_matrix", start: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Fit b, A, D and G of Y = b + X E + X E A + X D + P G by ridge regression.

    With Z = X E and the kernel K = a Z Z' + d X X' + g P P', alpha = (K + 1)^-1 (Y - Z - b), and
    A = a Z' alpha, D = d X' alpha, G = g P' alpha.

    Parameters
    ----------
    counts, pairs : sparse matrices of shape [N, V] and [N, P]
        X and P.
    start : ndarray of shape [V, w]
        E.
    wanted : ndarray of shape [N, w]
        Y.

    Returns
    -------
    bias, change, single, double : ndarrays of shape [w], [w, w], [V, w] and [P, w]
        b, A, D and G.
    """
    from scipy.linalg import solve

    mean = counts @ start.astype(np.float64)
    bias = (wanted - mean).mean(0)
    kernel, weights = np.eye(len(wanted)), []
    for part, variance in ((mean, MAP), (counts, TOKENS), (pairs, PAIRS)):
        own = part @ part.T
        own = own.toarray() if hasattr(own, "toarray") else own
        weights.append(variance / max(np.trace(own) / len(own), 1e-12))
        kernel += weights[-1] * own
    alpha = solve(kernel, wanted - mean - bias, assume_a="pos", overwrite_a=True)
    change, single, double = (
        weight * (part.T @ alpha)
        for weight, part in zip(weights, (mean, counts, pairs), strict=True)
    )
    return bias, change, single, double


def token_vectors(original: EncoderFeatures, texts: Ragged) -> Tensor:
    """Return the encoder's vectors [V, w] of single tokens; zero for those that are left out."""
    before, after = special_tokens(original.encoder.tokenizer)
    count = original.backbone.shape.vocabulary
    first = torch.arange(min(count, MOST_TOKENS_ALONE))
    ids = torch.cat([first, texts.values]).unique()
    rows = [torch.tensor(before).expand(len(ids), -1), ids[:, None]]
    rows.append(torch.tensor(after).expand(len(ids), -1))
    alone = torch.cat([part.to(torch.int64) for part in rows], dim=1)
    lengths = np.full(len(ids), alone.shape[1], np.int64)
    vectors = torch.zeros(count, original.width)
    vectors[ids] = original.vectors_of(Ragged.from_lengths(alone.flatten(), lengths))
    return vectors


def frequent_pairs(ids: Tensor, owner: Tensor, base: int) -> Tensor:
    """Return the codes of pairs of neighbouring tokens in at least LEAST_TEXTS texts, sorted."""
    within = owner[:-1] == owner[1:]
    pairs = torch.stack([(ids[:-1] * base + ids[1:])[within], owner[:-1][within]], 1)
    codes, counts = pairs.unique(dim=0)[:, 0].unique_consecutive(return_counts=True)
    return codes[counts >= LEAST_TEXTS]


def _shares(text: Tensor, column: Tensor, lengths: np.ndarray, width: int) -> "csr_matrix":
    """Return how often each column occurs in each text, per token of the text."""
    from scipy.sparse import csr_matrix

    values = 1.0 / lengths[text.numpy()]
    return csr_matrix((values, (text.numpy(), column.numpy())), shape=(len(lengths), width))


# --- the cached vectors ------------------------------------------------------------------------


def _read(
    original: EncoderFeatures, folder: Path, key: str
) -> tuple[StaticFeatures, Agreement] | None:
    """Return the cached vectors, None if there are none of this encoder."""
    if not (folder / ABOUT).is_file():
        return None
    try:
        about = read_json(folder / ABOUT, dict)
        if about.get("format") != FORMAT or about.get("key") != key:
            return None
        check_fields(about, {"agreement": dict, "sha256": dict}, ABOUT)
        with CheckedFolder(folder, about["sha256"]) as files:
            vectors = _parse(files.read(FILE), original)
        check_fields(about["agreement"], AGREEMENT, f"{ABOUT}, agreement")
    except DamagedFileError as error:
        raise InputError(
            f"the static vectors in {folder} are damaged ({reason(error)}); delete that folder to "
            "distil the encoder again"
        ) from error
    agreement = Agreement(**{name: about["agreement"][name] for name in AGREEMENT}, name=NAME)
    return StaticFeatures(original, vectors), agreement


def _parse(content: bytes, original: EncoderFeatures) -> StaticVectors:
    """Return the vectors in the content of a file, or raise DamagedFileError."""
    found = parse_tensors(content, FILE)
    shape = original.backbone.shape
    if found.keys() != {"tokens", "pairs", "codes", "bias"} or found["codes"].ndim != 1:
        raise DamagedFileError(f"{FILE} does not hold static vectors")
    check_shape(found["tokens"], (shape.vocabulary, shape.width), FILE)
    check_shape(found["pairs"], (len(found["codes"]), shape.width), FILE)
    check_shape(found["bias"], (shape.width,), FILE)
    check_finite({name: found[name] for name in ("tokens", "pairs", "bias")}, FILE)
    codes = found.pop("codes").to(torch.int64)
    return StaticVectors(codes=codes, **{name: value.float() for name, value in found.items()})


def _write(folder: Path, key: str, vectors: StaticVectors, agreement: Agreement) -> None:
    """Write the vectors to the cache."""
    tensors = {
        "tokens": vectors.tokens,
        "pairs": vectors.pairs,
        "codes": vectors.codes,
        "bias": vectors.bias,
    }
    about = {"format": FORMAT, "key": key, "agreement": asdict(agreement)}
    with write_folder(folder, ABOUT) as temporary:
        save_file(tensors, temporary / FILE)
        write_json(temporary / ABOUT, {**about, "sha256": sha256_of(temporary, (FILE,))})


def _key(original: EncoderFeatures) -> str:
    """Return a hash of all that the vectors and the agreement depend on."""
    digest = hashlib.sha256(f"{original.encoder.pooling} {original.encoder.limit}".encode())
    for weight in original.state_dict().values():
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]
