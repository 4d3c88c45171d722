"""Tokenise once; lay texts out so that little of what a model computes is padding.

To be encoded, texts are sorted by length and cut into batches. A batch to learn from is drawn at
random, so its texts differ in length; they are packed into a grid, several to a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.devices import plain

NARROWEST = 48  # a row of fewer cells would hold too few texts to be filled well
ROUNDING = {"cpu": 1, "cuda": 2}  # of a grid's rows: on a GPU each shape is recorded once
OUTSIDE = 2**40  # marks rows that a batch does not have


@dataclass(frozen=True)
class Ragged:
    """Rows of different length, laid end to end: token ids [T] or hidden states [T, width]."""

    values: Tensor
    starts: Tensor  # [N] int64, on the device of `values`
    lengths: np.ndarray  # [N] int64, on the host: batches are planned there

    @classmethod
    def from_lengths(cls, values: Tensor, lengths: np.ndarray) -> "Ragged":
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        return cls(values, torch.from_numpy(starts).to(values.device), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> "Ragged":
        return Ragged(self.values.to(device), self.starts.to(device), self.lengths)

    def padded(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """The named rows as (values [B, width, ...], mask [B, width]); no host synchronisation.

        Padding repeats a neighbouring row's values: the mask alone says what is real.
        """
        place = torch.arange(width, device=rows.device)
        index = self.starts[rows][:, None] + place
        lengths = self._device_lengths()[rows]
        return self.values[index.clamp(max=len(self.values) - 1)], place < lengths[:, None]

    def packed(self, batch: "Batch") -> tuple[Tensor, "Cells"]:
        """The batch's texts in its grid: (values [rows, width, ...], what each cell holds).

        No host synchronisation. Padding repeats some text's value.
        """
        device = batch.rows.device
        rows, width = batch.grid
        cells = torch.arange(rows * width, device=device)
        order = batch.places.argsort()
        # The text that begins last before a cell, and how far the cell is from its beginning
        slot = order[torch.searchsorted(batch.places[order], cells, right=True) - 1]
        offset = cells - batch.places[slot]
        lengths = self._device_lengths()[batch.rows]
        real = offset < lengths[slot]
        index = (self.starts[batch.rows][slot] + offset).clamp(max=len(self.values) - 1)
        return self.values[index].unflatten(0, batch.grid), Cells(
            torch.where(real, slot, -1).view(batch.grid),
            torch.where(real, offset, 0).view(batch.grid),
            batch.places,
            lengths,
        )

    def _device_lengths(self) -> Tensor:
        # Derived, not stored: the difference of consecutive starts, the last from the total.
        return torch.diff(self.starts, append=self.starts.new_full((1,), len(self.values)))


@dataclass(frozen=True)
class Batch:
    """Texts that a model reads together, and where their tokens lie in a grid of cells."""

    rows: Tensor  # [B] which texts
    places: Tensor  # [B] the cell of each text's first token, counted row by row
    grid: tuple[int, int]  # rows and width

    @classmethod
    def of(cls, rows: Tensor) -> "Batch":
        """A batch of which no tokens are read."""
        return cls(rows, rows.new_zeros(0), (0, 0))

    def to(self, device: torch.device) -> "Batch":
        return Batch(self.rows.to(device), self.places.to(device), self.grid)

    @property
    def shape(self) -> tuple[int, ...]:
        """What must be equal for two batches to be computed in the same way."""
        return (len(self.rows), *self.grid)


@dataclass(frozen=True)
class Cells:
    """What the cells of a batch's grid hold."""

    slot: Tensor  # [rows, width] the text, as its place in the batch; -1 for padding
    offset: Tensor  # [rows, width] which of the text's tokens
    first: Tensor  # [B] the cell of each text's first token
    lengths: Tensor  # [B] tokens of each text

    def to(self, device: torch.device) -> "Cells":
        parts = (self.slot, self.offset, self.first, self.lengths)
        return Cells(*(part.to(device) for part in parts))

    @property
    def sees(self) -> Tensor:
        """Which cells may look at which [rows, width, width]: those of the same text."""
        return self.slot[:, :, None] == self.slot[:, None, :]

    def within(self, start: int, stop: int) -> Tensor:
        """The cells of the batch's texts from start to stop-1 [rows, width]."""
        return (self.slot >= start) & (self.slot < stop)


def tokenize(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> Ragged:
    """Token ids of every text, cut at max_tokens, special tokens included."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    flat = np.fromiter((token for row in ids for token in row), np.int64, int(lengths.sum()))
    return Ragged.from_lengths(torch.from_numpy(flat), lengths)


def plan_batches(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Rows sorted by length, cut so that rows x longest stays within a budget of tokens."""
    order = np.argsort(-lengths, kind="stable")  # longest first: the peak of memory comes early
    batches, start = [], 0
    while start < len(order):
        rows = max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + rows])
        start += rows
    return batches


def shuffled_batches(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """One epoch over `rows` in random order [batches, size].

    The last batch is filled up from the first rows, so that shapes repeat.
    """
    order = rng.permutation(rows)
    return np.resize(order, (-(-len(order) // size), size))


def paired_batches(
    rows: np.ndarray,
    size: int,
    labelled: np.ndarray,
    labelled_size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """One epoch over `rows`, each batch followed by labelled rows [batches, size + labelled_size].

    Both go through the model together. The labelled rows come round as often as it takes.
    """
    main = shuffled_batches(rows, size, rng)
    if not len(labelled):
        return main
    extra = shuffled_batches(labelled, labelled_size, rng)
    while len(extra) < len(main):
        extra = np.concatenate([extra, shuffled_batches(labelled, labelled_size, rng)])
    return np.concatenate([main, extra[: len(main)]], axis=1)


def to_device(batches: np.ndarray, lengths: np.ndarray | None, device: torch.device) -> list[Batch]:
    """The batches of an epoch [batches, B], moved to the device in one copy.

    lengths [N] are the tokens of each text; None if no tokens are read.
    """
    rows = torch.from_numpy(batches).to(device)
    if lengths is None:
        return [Batch.of(part) for part in rows]
    places, grids = pack(lengths[batches], rounding=ROUNDING[device.type])
    cells = torch.from_numpy(places).to(device)
    return [Batch(*part) for part in zip(rows, cells, grids, strict=True)]


def pack(lengths: np.ndarray, *, rounding: int = 1) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Lay the texts of batches out in grids: (first cells [batches, B], (rows, width) of each).

    lengths [batches, B]. A row holds whole texts. A text goes, longest first, to the row that is
    emptiest; a batch whose texts do not fit gets more rows. The width is rounded up to a multiple
    of 16, the rows to one of `rounding`: few different shapes, at little cost.
    """
    batches, size = lengths.shape
    width = np.maximum(-(-lengths.max(1) // 16) * 16, NARROWEST)
    if plain():
        return np.arange(size) * width[:, None], [(size, wide) for wide in width.tolist()]
    rows = _rounded(-(-lengths.sum(1) // width), rounding)
    order = np.argsort(-lengths, axis=1, kind="stable")
    places = np.empty_like(order)
    waiting = np.arange(batches)
    while len(waiting):
        wide, most, every = width[waiting], rows[waiting], np.arange(len(waiting))
        filled = np.zeros((len(waiting), most.max()), np.int64)
        filled[np.arange(most.max()) >= most[:, None]] = OUTSIDE
        found = np.empty((len(waiting), size), np.int64)
        for turn in range(size):  # one text of every batch at a time
            chosen = order[waiting, turn]
            row = filled.argmin(1)
            found[every, chosen] = row * wide + filled[every, row]
            filled[every, row] += lengths[waiting, chosen]
        fits = np.where(filled < OUTSIDE, filled, 0).max(1) <= wide
        places[waiting[fits]] = found[fits]
        waiting = waiting[~fits]
        rows[waiting] = _rounded(rows[waiting] + 1, rounding)
    return places, list(zip(rows.tolist(), width.tolist(), strict=True))


def _rounded(numbers: np.ndarray, multiple: int) -> np.ndarray:
    return -(-numbers // multiple) * multiple
