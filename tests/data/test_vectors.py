"""Checks of vectors that users bring."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from newfound.data.corpus import Corpus
from newfound.data.vectors import check_vectors, order_notes, vectors_of
from newfound.errors import InputError

GOOD = np.arange(1, 13, dtype=np.float32).reshape(4, 3)


def changed(row: int, value: float, kind: Any = np.float32) -> np.ndarray:
    vectors = GOOD.astype(kind)
    vectors[row] = value
    return vectors


@pytest.mark.parametrize(
    "given",
    [
        GOOD,
        GOOD.tolist(),
        GOOD.astype(np.float16),
        GOOD.astype(np.float64),
        GOOD.astype(np.int8),
        torch.from_numpy(GOOD).requires_grad_(),
        pd.DataFrame(GOOD),
        pd.Series(list(GOOD)),
        pd.Series(GOOD.tolist()),
    ],
)
def test_anything_like_an_array_is_read(given: Any) -> None:
    found = check_vectors(given, 4)
    assert found.dtype.kind == "f"
    assert np.array_equal(found, GOOD)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (GOOD[:3], "4 texts but 3 vectors in embeddings: give one vector per text"),
        (GOOD[0], "1 dimension: give an array with one row per text"),
        (GOOD[None], "3 dimensions"),
        (np.empty((4, 0)), "no dimension"),
        (GOOD.astype(np.uint8), "packed bits"),
        (GOOD.astype(complex), "complex"),
        (np.array([["a", "b"]] * 4), "give floating-point numbers"),
        ([[1, 2], [3, 4], [5], [6, 7]], "vector 2 has 1 dimension, but vector 0 has 2"),
        (changed(2, np.nan), r"1 vector has missing, NaN or infinite values \(row 2\)"),
        (changed(1, np.inf, np.float16), r"overflow of float16 \(row 1\)"),
        (changed(3, 0), r"1 vector is zero \(row 3\)"),
    ],
)
def test_bad_vectors_are_refused_with_their_rows(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_vectors(given, 4)


def test_message_names_the_first_rows_as_the_table_counts_them() -> None:
    with pytest.raises(InputError, match=r"8 vectors are zero \(rows 11, 12, 13, 14, 15 and 3 mo"):
        check_vectors(np.zeros((8, 2)), 8, rows=range(11, 19))


def test_vector_of_an_empty_text_may_be_anything() -> None:
    real = np.array([True, False, True, True])
    found = vectors_of(changed(1, np.nan), real, 3)
    assert np.array_equal(found, GOOD[real])
    with pytest.raises(InputError, match=r"\(row 7\)"):
        vectors_of(changed(2, np.nan), real, 3, first_row=5)
    with pytest.raises(InputError, match="3 dimensions, and the model was fitted on vectors of 5"):
        vectors_of(GOOD, real, 5)


def test_corpus_keeps_vectors_with_their_texts() -> None:
    corpus = Corpus.from_lists(["d", "c", "b", "a"], vectors=GOOD)
    ordered = corpus.take(corpus.sorted_rows)
    assert ordered.texts == ["a", "b", "c", "d"]
    assert ordered.vectors is not None
    assert np.array_equal(ordered.vectors, GOOD[::-1])


def pile() -> tuple[list[str], np.ndarray]:
    """Texts in which each word has a direction, and vectors that are the means of their words."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    directions = rng.normal(size=(60, 16))
    drawn = [rng.choice(6, 4, replace=False) + 6 * rng.integers(10) for _ in range(200)]
    return [" ".join(words[w] for w in row) for row in drawn], directions[drawn].mean(1)


def test_wrong_order_is_noted() -> None:
    texts, vectors = pile()
    ids = [str(i) for i in range(len(texts))]
    assert order_notes(texts, ids, vectors) == []
    shuffled = vectors[np.random.default_rng(1).permutation(len(texts))]
    assert any("no more similar" in note for note in order_notes(texts, ids, shuffled))
    shifted = np.roll(vectors, 1, axis=0)
    assert any("no more similar" in note for note in order_notes(texts, ids, shifted))


def test_equal_texts_with_different_vectors_are_noted() -> None:
    notes = order_notes(["a", "b", "a", "a"], ["1", "2", "3", "4"], GOOD[[0, 1, 0, 3]] - 4.2)
    assert len(notes) == 1
    assert notes[0].startswith("1 repeated text has another vector than at its first occurrence")
    assert "ids 1 and 4" in notes[0]
