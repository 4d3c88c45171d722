"""The fingerprint of a discovery: what changes it, and what does not."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding.loading import Encoder, load_encoder
from newfound.encoding.vectors.frozen_encoder import GivenVectors, VectorEncoder
from newfound.fingerprint import fingerprint

CORPUS = Corpus.from_lists(["a card", "a trip", "a song"], ["bank", None, None])
CPU = torch.device("cpu")


@pytest.fixture
def encoder(tiny_encoder: str) -> Encoder:
    return load_encoder(tiny_encoder)


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def settings(**changes: Any) -> dict[str, Any]:
    return {**asdict(RunConfig()), "settings": {"epochs": 3}, **changes}


def changed(one: dict[str, str], other: dict[str, str]) -> set[str]:
    """Return the names of the parts that differ."""
    return {name for name in one if one[name] != other[name]}


@pytest.mark.parametrize(
    ("texts", "labels", "parts"),
    [
        (["a card", "a trip", "a tune"], ["bank", None, None], {"texts"}),
        (["a card", "a song", "a trip"], ["bank", None, None], {"texts"}),  # another order
        (["a card", "a trip", "a song"], ["bank", "travel", None], {"labels"}),
        (["a card", "a trip", "a song"], [None, "bank", None], {"labels"}),
        (["a card", "a trip"], ["bank", None], {"texts", "labels"}),
    ],
)
def test_texts_labels_and_order_count(
    encoder: Encoder, texts: list[str], labels: list[str | None], parts: set[str]
) -> None:
    one = fingerprint(CORPUS, None, settings(), encoder, CPU)
    other = fingerprint(Corpus.from_lists(texts, labels), None, settings(), encoder, CPU)
    assert changed(one, other) == parts


def test_settings_encoder_validation_and_threads_count(encoder: Encoder) -> None:
    torch.set_num_threads(1)
    one = fingerprint(CORPUS, None, settings(), encoder, CPU)
    for change in ({"seed": 1}, {"effort": "best"}, {"settings": {"epochs": 4}}):
        assert changed(one, fingerprint(CORPUS, None, settings(**change), encoder, CPU)) == {
            "settings"
        }
    for change in ({"fingerprint": "other"}, {"max_tokens": 9}, {"pooling": "mean"}):
        other = fingerprint(CORPUS, None, settings(), replace(encoder, **change), CPU)
        assert changed(one, other) == {"weights of the encoder"}
    assert changed(one, fingerprint(CORPUS, CORPUS, settings(), encoder, CPU)) == {
        "validation texts"
    }
    torch.set_num_threads(2)
    other = fingerprint(CORPUS, None, settings(), encoder, CPU)
    assert changed(one, other) == {"device or number of threads"}


def test_settings_that_change_no_work_do_not_count(encoder: Encoder) -> None:
    one = fingerprint(CORPUS, None, settings(), encoder, CPU)
    other = settings(cache="folder", outside=0.1, device="cpu")
    assert fingerprint(CORPUS, None, other, encoder, CPU) == one


def test_replaced_file_of_word_vectors_counts(encoder: Encoder, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("card 1 2\n")
    chosen = settings(settings={"vectors": str(file)})
    one = fingerprint(CORPUS, None, chosen, encoder, CPU)
    file.write_text("card 1 2\ntrip 3 4\n")
    assert changed(one, fingerprint(CORPUS, None, chosen, encoder, CPU)) == {"word vectors"}


def test_vectors_count_where_there_are_any() -> None:
    vectors = np.arange(1.0, 7.0).reshape(3, 2)
    encoder = VectorEncoder(GivenVectors(2))

    def print_of(values: np.ndarray) -> dict[str, str]:
        corpus = Corpus.from_lists(CORPUS.texts, CORPUS.labels, vectors=values)
        return fingerprint(corpus, None, settings(), encoder, CPU)

    one = print_of(vectors)
    assert changed(one, print_of(vectors.copy())) == set()
    assert changed(one, print_of(vectors + 1)) == {"vectors"}
    assert changed(one, print_of(vectors.astype(np.float32))) == {"vectors"}
    assert changed(one, print_of(vectors[::-1])) == {"vectors"}
