"""Checks of vectors that users bring; messages name the rows."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from newfound.errors import InputError
from newfound.wording import plural

SHOWN = 5  # rows that a message names
BLOCK = 8192  # rows that are looked at together
MOST_TEXTS = 20_000  # that are compared by their words
PAIRS = 1000  # texts whose nearest text by words is compared with its nearest by vector
LEAST_PAIRS = 30  # for a verdict
SHARED_WORDS = 0.4  # share of their words that two texts have in common, to be compared


def check_vectors(
    vectors: Any, count: int, what: str = "embeddings", rows: Sequence[int] | None = None
) -> np.ndarray:
    """Return vectors as an array of floating-point numbers, one row per text.

    Parameters
    ----------
    vectors : array-like of shape (N, d)
    count : int
        Number of texts.
    what : str
        Where the vectors come from, for messages.
    rows : sequence of int, optional
        Row number of each vector in messages; by default they are counted from 0, as Python does.

    Returns
    -------
    ndarray of shape (N, d), float16, float32 or float64
        As given where it is of floating point; float32 for whole numbers.

    Raises
    ------
    InputError
        If the shape or the type is wrong, or a vector is not finite or zero.
    """
    found = _as_array(vectors, what)
    if found.ndim != 2:
        dimensions = plural(found.ndim, "dimension")
        raise InputError(f"{what} has {dimensions}: give an array with one row per text")
    if len(found) != count:
        raise InputError(
            f"{plural(count, 'text')} but {plural(len(found), 'vector')} in {what}: give one "
            "vector per text, in the order of the texts"
        )
    if found.shape[1] == 0:
        raise InputError(f"the vectors in {what} have no dimension: give at least one number each")
    if found.dtype.kind not in "fi" or found.dtype.itemsize > 8:
        raise InputError(
            f"{what} holds values of type {found.dtype}: give floating-point numbers"
            + ("; packed bits have to be unpacked first" if found.dtype == np.uint8 else "")
        )
    if found.dtype.kind == "i":
        found = found.astype(np.float32)
    invalid, zero = _bad_rows(found)
    if len(invalid):
        hint = ", perhaps because of an overflow of float16" if found.dtype == np.float16 else ""
        raise InputError(
            f"{what}: {plural(len(invalid), 'vector has', 'vectors have')} missing, NaN or "
            f"infinite values{hint} ({_named(invalid, rows)}); compute them again or remove these "
            "texts"
        )
    if len(zero):
        raise InputError(
            f"{what}: {plural(len(zero), 'vector is', 'vectors are')} zero ({_named(zero, rows)}), "
            "and a zero vector has no direction; compute them again or remove these texts"
        )
    return found


def vectors_of(vectors: Any, real: np.ndarray, width: int, first_row: int = 0) -> np.ndarray:
    """Return the checked vectors of the texts that are not empty.

    Parameters
    ----------
    vectors : array-like of shape (N, d)
        The vector of an empty text may be anything.
    real : ndarray of shape (N,), bool
        Which texts are not empty.
    width : int
        Dimensions that a vector must have.
    first_row : int, default 0
        Number of the first row in messages.

    Returns
    -------
    ndarray of shape (R, d)
    """
    found = _as_array(vectors, "embeddings")
    if found.ndim == 2 and len(found) == len(real):
        rows = np.flatnonzero(real)
        found = check_vectors(found[rows], len(rows), rows=(first_row + rows).tolist())
    else:
        found = check_vectors(found, len(real))  # raises an error
    if found.shape[1] != width:
        raise InputError(
            f"the vectors have {plural(found.shape[1], 'dimension')}, and the model was fitted on "
            f"vectors of {width:,}: compute them with the same embedding model"
        )
    return found


def _as_array(vectors: Any, what: str) -> np.ndarray:
    """Return anything like an array as one; rows of different lengths are named."""
    if hasattr(vectors, "detach"):  # a tensor
        vectors = vectors.detach().cpu()
    if str(getattr(vectors, "dtype", "")) == "object" and getattr(vectors, "ndim", 0) == 1:
        vectors = list(vectors)  # a column of lists
    try:
        return np.asarray(vectors)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 1 for row in vectors]
        other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if other is None:
            raise InputError(f"{what} cannot be read as an array of numbers") from None
        raise InputError(
            f"{what}: vector {other} has {plural(lengths[other], 'dimension')}, but vector 0 has "
            f"{lengths[0]:,}: all vectors need the same number"
        ) from None


def _bad_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with values that are not finite, and those of zeros."""
    invalid, zero = [], []
    for start in range(0, len(vectors), BLOCK):
        part = vectors[start : start + BLOCK]
        finite = np.isfinite(part).all(1)
        invalid.append(start + np.flatnonzero(~finite))
        zero.append(start + np.flatnonzero(finite & ~part.any(1)))
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *invalid]), np.concatenate([nothing, *zero])


def _named(found: np.ndarray, rows: Sequence[int] | None) -> str:
    """Return the first rows for a message: `rows 3, 17 and 5 more`."""
    shown = [str(row if rows is None else rows[row]) for row in found[:SHOWN].tolist()]
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{'row' if len(found) == 1 else 'rows'} {', '.join(shown)}{more}"


def order_notes(texts: Sequence[str], ids: Sequence[str], vectors: np.ndarray) -> list[str]:
    """Return notes if the vectors seem to belong to other texts, as after a change of order.

    Equal texts should have equal vectors. And texts that share most of their words should have
    vectors more similar than those of any two texts.

    Parameters
    ----------
    texts : sequence of str
    ids : sequence of str
        Names of the texts in notes.
    vectors : ndarray of shape (N, d)

    Returns
    -------
    list of str
    """
    notes = []
    first: dict[str, int] = {}
    pairs = [
        (first[text], row) for row, text in enumerate(texts) if first.setdefault(text, row) != row
    ]
    differ = [(a, b) for a, b in pairs if _cosine(vectors, a, b) < 0.99]
    if differ:
        a, b = differ[0]
        notes.append(
            f"{plural(len(differ), 'repeated text has', 'repeated texts have')} another vector "
            f"than at its first occurrence (first: ids {ids[a]} and {ids[b]}); check that the "
            "vectors are in the order of the texts"
        )
    if _unrelated(list(first), np.array(list(first.values())), vectors):
        notes.append(
            "texts that share most of their words have vectors that are no more similar than those "
            "of other texts; check that the vectors are in the order of the texts"
        )
    return notes


def _unrelated(texts: list[str], rows: np.ndarray, vectors: np.ndarray) -> bool:
    """Return whether different texts that share words have vectors like any two texts."""
    from newfound.data.words import words

    rng = np.random.default_rng(0)
    if len(texts) > MOST_TEXTS:
        drawn = rng.permutation(len(texts))[:MOST_TEXTS]
        texts, rows = [texts[i] for i in drawn.tolist()], rows[drawn]
    held: dict[str, list[int]] = {}
    bags = [frozenset(words(text)) - {""} for text in texts]
    for i, bag in enumerate(bags):
        for word in bag:
            held.setdefault(word, []).append(i)
    similar: list[tuple[int, int]] = []
    for i in rng.permutation(len(texts))[: 4 * PAIRS].tolist():
        rare = sorted(bags[i], key=lambda word: (len(held[word]), word))[:3]
        others = {j for word in rare for j in islice(held[word], 50)} - {i}
        shares = [(len(bags[i] & bags[j]) / len(bags[i] | bags[j]), j) for j in others]
        best = max(shares, default=(0.0, -1))
        if best[0] >= SHARED_WORDS:
            similar.append((i, best[1]))
        if len(similar) == PAIRS:
            break
    if len(similar) < LEAST_PAIRS:
        return False
    near = np.array([_cosine(vectors, rows[a], rows[b]) for a, b in similar])
    partners = [similar[place][1] for place in rng.permutation(len(similar)).tolist()]
    firsts = [a for a, _ in similar]
    far = np.array(
        [_cosine(vectors, rows[a], rows[b]) for a, b in zip(firsts, partners, strict=True)]
    )
    gain = near - far
    return bool(gain.mean() < 3 * gain.std() / np.sqrt(len(gain)))


def _cosine(vectors: np.ndarray, a: int, b: int) -> float:
    """Return the cosine of two vectors that are not zero."""
    one, other = (vectors[row] / np.abs(vectors[row]).max() for row in (a, b))
    one, other = one.astype(np.float64), other.astype(np.float64)
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
