"""LSA features against an exact decomposition, and how the labels choose their weight."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.encoding.batching import Ragged
from newfound.methods.newfound import lsa_features as module
from newfound.methods.newfound.lsa_features import (
    DEFAULT_WEIGHT,
    choose_weight,
    join_features,
    lsa_features,
    weighted_lsa_features,
    weighted_words,
)

FEW = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8), min_size=1, max_size=20)


def as_tokens(texts: list[list[int]]) -> Ragged:
    values = torch.tensor([word for text in texts for word in text], dtype=torch.int64)
    return Ragged.from_lengths(values, np.array([len(text) for text in texts], np.int64))


def slow_table(texts: list[list[int]]) -> np.ndarray:
    """The tf-idf table by its definition, one column for each word that compares something."""
    holding = {word: sum(word in text for text in texts) for text in texts for word in text}
    columns = [word for word in sorted(holding) if 2 <= holding[word] < len(texts)]
    table = np.zeros((len(texts), len(columns)))
    for i, text in enumerate(texts):
        for j, word in enumerate(columns):
            if word in text:
                tf = 1 + math.log(text.count(word))
                table[i, j] = tf * math.log(len(texts) / holding[word])
        length = np.linalg.norm(table[i])
        table[i] /= length or 1
    return table


@given(FEW)
def test_the_table_is_tf_idf(texts: list[list[int]]) -> None:
    rows, words, values = weighted_words(as_tokens(texts))
    expected = slow_table(texts)
    found = np.zeros_like(expected)
    found[rows, words] = values
    np.testing.assert_allclose(found, expected, atol=1e-6)


@given(FEW, st.integers(1, 6))
@settings(deadline=None)
def test_vectors_are_those_of_the_exact_decomposition(texts: list[list[int]], width: int) -> None:
    table = slow_table(texts)
    found = lsa_features(as_tokens(texts), width).numpy()
    left, lengths, _ = np.linalg.svd(table, full_matrices=False)
    width = min(width, *table.shape)
    assert found.shape == (len(texts), width)
    exact = left[:, :width] * lengths[:width]
    # The longest axes are the same up to their sign, where lengths are equal up to a turn
    np.testing.assert_allclose((found**2).sum(), (exact**2).sum(), atol=1e-4)
    if width == min(table.shape):
        np.testing.assert_allclose(found @ found.T, table @ table.T, atol=1e-4)


def test_many_texts_are_reduced_to_their_longest_axes() -> None:
    rng = np.random.default_rng(0)
    topics = [rng.dirichlet(np.full(60, 0.1)) for _ in range(4)]
    texts = [rng.choice(60, size=9, p=topics[i % 4]).tolist() for i in range(300)]
    table = slow_table(texts)
    left, lengths, _ = np.linalg.svd(table, full_matrices=False)
    exact = left[:, :4] * lengths[:4]
    found = lsa_features(as_tokens(texts), 4).numpy()
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=1e-2)


def test_the_order_of_texts_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, 9, size=4).tolist() for _ in range(30)]
    order = rng.permutation(30)
    found = lsa_features(as_tokens(texts), 3)
    moved = lsa_features(as_tokens([texts[i] for i in order]), 3)
    assert torch.allclose((found @ found.T)[order][:, order], moved @ moved.T, atol=1e-2)


@pytest.mark.parametrize("texts", [[[1]], [[1], [2], [3]], [[1, 2], [1, 2]]])
def test_texts_that_share_no_word_or_all_have_no_vectors(texts: list[list[int]]) -> None:
    assert lsa_features(as_tokens(texts)).shape == (len(texts), 0)


def drawn(words_tell: bool, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, words and labels of 200 texts; one of the two separates the four categories."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), 50)
    told = np.eye(4)[labels] + 0.3 * rng.normal(size=(200, 4))
    noise = rng.normal(size=(200, 4))
    features, words = (noise, told) if words_tell else (told, noise)
    return (
        torch.from_numpy(features).float(),
        torch.from_numpy(0.5 * words).float(),
        torch.from_numpy(labels),
    )


def test_labels_choose_the_weight() -> None:
    assert choose_weight(*drawn(True), 0.4) == max(module.OTHER_WEIGHTS)
    assert choose_weight(*drawn(False), 0.4) == 0


def test_too_few_labels_leave_the_default_weight() -> None:
    features, words, labels = drawn(True)
    assert choose_weight(features, words, torch.full_like(labels, -1), 0.4) == DEFAULT_WEIGHT
    labels[2:] = -1
    assert choose_weight(features, words, labels, 0.4) == DEFAULT_WEIGHT


def test_uninformative_labels_leave_the_default_weight() -> None:
    features, words, labels = drawn(True)
    same = torch.zeros_like(labels)  # every neighbourhood is pure
    assert choose_weight(features, words, same, 0.4) == DEFAULT_WEIGHT


def test_many_labelled_texts_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = module.nearest_neighbours

    def watched(features: torch.Tensor, count: int) -> torch.Tensor:
        asked.append(len(features))
        return real(features, count)

    monkeypatch.setattr(module, "nearest_neighbours", watched)
    monkeypatch.setattr(module, "MAX_LABELLED", 60)
    assert choose_weight(*drawn(True), 0.4) == max(module.OTHER_WEIGHTS)
    assert set(asked) == {50}


def test_weighted_lsa_features_join_unit_features() -> None:
    features, _, labels = drawn(False)
    tokens = as_tokens([[int(label), 7, i % 5] for i, label in enumerate(labels)])
    words = weighted_lsa_features(tokens, features, labels, 0.4)
    both = join_features(features, words)
    assert both.shape == (200, features.shape[1] + words.shape[1])
    assert torch.allclose(both[:, :4].norm(dim=1), torch.ones(200))
    assert torch.equal(both[:, 4:], words)
    ratio = words.norm() / lsa_features(tokens).norm()
    assert float(ratio) == pytest.approx(
        choose_weight(features, lsa_features(tokens), labels, 0.4), rel=1e-4
    )
