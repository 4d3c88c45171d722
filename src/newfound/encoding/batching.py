"""Tokenise texts, and arrange them in batches with little padding.

For encoding, texts are sorted by length and split into batches. On a CPU the texts of a batch lie
one after the other, without padding. Training batches are drawn at random, so their texts differ in
length: these are packed into a grid, several texts per row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.devices import plain
from newfound.encoding.parts import MOST_CHARACTERS, Parts, parts_of

NARROWEST = 48  # cells per row; narrower rows hold too few texts to be filled well
ROUNDING = {"cpu": 1, "cuda": 2}  # of a grid's rows: on a GPU each shape needs its own CUDA graph
OUTSIDE = 2**40  # marks rows that a batch does not have
CHARACTERS_PER_TOKEN = 200  # of a text that are looked at first
TOKENISED = 16_384  # texts per call of the tokenizer


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one tensor: token ids [T] or hidden states [T, width].

    Attributes
    ----------
    values : Tensor of shape [T, ...]
    starts : Tensor of shape [R], int64
        On the device of `values`.
    lengths : ndarray of shape [R], int64
        On the CPU, where batches are planned.
    parts : Parts, optional
        Which rows are parts of the same text; by default each row is a text.
    long : int
        Texts that were split or truncated.
    """

    values: Tensor
    starts: Tensor
    lengths: np.ndarray
    parts: Parts | None = None
    long: int = 0

    @classmethod
    def from_lengths(cls, values: Tensor, lengths: np.ndarray) -> "Ragged":
        """Return rows of the given lengths from concatenated values."""
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        return cls(values, torch.from_numpy(starts).to(values.device), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def texts(self) -> np.ndarray:
        """The text of each row [R]."""
        return np.arange(len(self)) if self.parts is None else self.parts.texts

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self) if self.parts is None else len(self.parts)

    def digested(self) -> list[bytes]:
        """Return all that a hash of the rows has to cover."""
        parts = [] if self.parts is None else [self.parts.counts.tobytes()]
        return [self.lengths.tobytes(), self.values.cpu().numpy().tobytes(), *parts]

    def to(self, device: torch.device) -> "Ragged":
        """Return a copy on the device."""
        return replace(self, values=self.values.to(device), starts=self.starts.to(device))

    def padded(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Return the given rows as (values [B, width, ...], mask [B, width]).

        Padding holds values of neighbouring rows; the mask marks the real values. There is no
        host synchronisation.
        """
        place = torch.arange(width, device=rows.device)
        index = self.starts[rows][:, None] + place
        lengths = self._device_lengths(rows)
        return self.values[index.clamp(max=len(self.values) - 1)], place < lengths[:, None]

    def joined(self, rows: np.ndarray) -> tuple[Tensor, "Runs"]:
        """Return the given rows one after the other: (values [T, ...], where each lies).

        On the CPU.
        """
        lengths = self.lengths[rows]
        runs = Runs.of(lengths)
        begins = self.starts.numpy()[rows] - np.cumsum(lengths) + lengths
        index = np.repeat(begins, lengths) + np.arange(int(lengths.sum()))
        return self.values[torch.from_numpy(index)], runs

    def packed(self, batch: "Batch") -> tuple[Tensor, "Cells"]:
        """Return a batch packed into its grid: (values [rows, width, ...], cells).

        Padding holds values of some text. There is no host synchronisation.
        """
        device = batch.rows.device
        rows, width = batch.grid
        cells = torch.arange(rows * width, device=device)
        order = batch.places.argsort()
        # The last text that begins at or before a cell, and the offset of the cell in it
        slot = order[torch.searchsorted(batch.places[order], cells, right=True) - 1]
        offset = cells - batch.places[slot]
        lengths = self._device_lengths(batch.parts)
        real = offset < lengths[slot]
        index = (self.starts[batch.parts][slot] + offset).clamp(max=len(self.values) - 1)
        return self.values[index].unflatten(0, batch.grid), Cells(
            torch.where(real, slot, -1).view(batch.grid),
            torch.where(real, offset, 0).view(batch.grid),
            batch.places,
            lengths,
        )

    def _device_lengths(self, rows: Tensor) -> Tensor:
        """Return the lengths of rows on the device, as differences of consecutive starts."""
        last = len(self.starts) - 1
        ends = torch.where(rows < last, self.starts[(rows + 1).clamp(max=last)], len(self.values))
        return ends - self.starts[rows]


@dataclass(frozen=True)
class Batch:
    """Texts of one training step, and the cells of their tokens in a grid."""

    rows: Tensor  # [B] row numbers of the texts
    parts: Tensor  # [B] row numbers of their tokens: other ones only where texts have parts
    places: Tensor  # [B] cell of each text's first token, counted row by row
    grid: tuple[int, int]  # rows and width

    @classmethod
    def of(cls, rows: Tensor) -> "Batch":
        """Return a batch without a grid, for inputs that are not tokens."""
        return cls(rows, rows, rows.new_zeros(0), (0, 0))

    def to(self, device: torch.device) -> "Batch":
        """Return a copy on the device."""
        rows, parts, places = (t.to(device) for t in (self.rows, self.parts, self.places))
        return Batch(rows, parts, places, self.grid)

    def clone(self) -> "Batch":
        """Return a copy."""
        return Batch(self.rows.clone(), self.parts.clone(), self.places.clone(), self.grid)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of texts and size of the grid; batches of equal shape share a CUDA graph."""
        return (len(self.rows), *self.grid)


@dataclass(frozen=True)
class Cells:
    """Content of the cells of a batch's grid.

    Attributes
    ----------
    slot : Tensor of shape [rows, width]
        Position of the cell's text in the batch, -1 for padding.
    offset : Tensor of shape [rows, width]
        Position of the cell's token in its text.
    first : Tensor of shape [B]
        Cell of each text's first token.
    lengths : Tensor of shape [B]
        Tokens per text.
    """

    slot: Tensor
    offset: Tensor
    first: Tensor
    lengths: Tensor

    def to(self, device: torch.device) -> "Cells":
        """Return a copy on the device."""
        parts = (self.slot, self.offset, self.first, self.lengths)
        return Cells(*(part.to(device) for part in parts))

    @property
    def sees(self) -> Tensor:
        """Attention mask [rows, width, width]: True for two cells of the same text."""
        return self.slot[:, :, None] == self.slot[:, None, :]

    def within(self, start: int, stop: int) -> Tensor:
        """Return True for the cells [rows, width] of the batch's texts start to stop-1."""
        return (self.slot >= start) & (self.slot < stop)


@dataclass(frozen=True)
class Runs:
    """Texts one after the other in T tokens; neighbours of equal length form a run.

    Attributes
    ----------
    counts : tuple of int
        Texts of each run.
    lengths : tuple of int
        Tokens of each text of a run.
    """

    counts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, lengths: np.ndarray) -> "Runs":
        """Return the runs of texts of these lengths [B]."""
        first = np.flatnonzero(np.diff(lengths, prepend=-1))
        counts = np.diff(first, append=len(lengths))
        return cls(tuple(counts.tolist()), tuple(lengths[first].tolist()))

    def split(self, values: Tensor) -> list[Tensor]:
        """Return values of tokens [T, ...] as one tensor [count, length, ...] per run."""
        parts = values.split([a * b for a, b in zip(self.counts, self.lengths, strict=True)])
        return [part.unflatten(0, (n, -1)) for part, n in zip(parts, self.counts, strict=True)]

    @property
    def offset(self) -> Tensor:
        """Position of each token in its text [T]."""
        pairs = zip(self.counts, self.lengths, strict=True)
        return torch.cat([torch.arange(length).repeat(count) for count, length in pairs])


def tokenize(tokenizer: Any, texts: Sequence[str], max_tokens: int, limit: int = 0) -> Ragged:
    """Tokenise texts.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
    texts : sequence of str
    max_tokens : int
        Most tokens of a row; special tokens count.
    limit : int
        Tokens of a text that are used. A text with more than `max_tokens` is truncated unless the
        limit is higher, and split into parts otherwise. What comes after a million characters is
        not looked at.

    Returns
    -------
    Ragged
        Token ids of each text, or of each part of it.
    """
    # Block by block: the tokenizer's own results take a hundred times the memory of token ids.
    blocks = [
        _tokenize_block(tokenizer, texts[start : start + TOKENISED], max_tokens, limit)
        for start in range(0, len(texts), TOKENISED)
    ]
    if not blocks:
        return Ragged.from_lengths(torch.empty(0, dtype=torch.int64), np.empty(0, np.int64))
    if len(blocks) == 1:
        return blocks[0]
    parts = None
    if any(block.parts is not None for block in blocks):
        counts = [
            np.ones(len(block), np.int64) if block.parts is None else block.parts.counts
            for block in blocks
        ]
        parts = Parts(np.concatenate(counts))
    values = torch.cat([block.values for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    long = sum(block.long for block in blocks)
    return replace(Ragged.from_lengths(values, lengths), parts=parts, long=long)


def _tokenize_block(tokenizer: Any, texts: Sequence[str], max_tokens: int, limit: int) -> Ragged:
    """Tokenise some texts; see `tokenize`."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    # The tokenizer truncates last, and needs a hundred bytes of memory per character of a text.
    most = CHARACTERS_PER_TOKEN * max_tokens
    encoded = tokenizer.encode_batch_fast([text[:most] for text in texts])
    ids, long = [encoding.ids for encoding in encoded], []
    for row, text in enumerate(texts):
        size = most
        # Thousands of spaces give few tokens.
        while size < min(len(text), MOST_CHARACTERS) and len(ids[row]) < max_tokens:
            size *= 8
            encoded[row] = tokenizer.encode(text[:size])
            ids[row] = encoded[row].ids
        if len(ids[row]) == max_tokens and encoded[row].overflowing:
            long.append(row)
    parts = None
    if long and limit > max_tokens:
        tokenizer.no_truncation()
        whole = [[row] for row in ids]
        found = parts_of(tokenizer, [texts[row] for row in long], max_tokens, limit)
        for row, split in zip(long, found, strict=True):
            whole[row] = split
        parts = Parts(np.fromiter(map(len, whole), np.int64, len(whole)))
        ids = [part for text in whole for part in text]
    return replace(_ragged(ids), parts=parts, long=len(long))


def _ragged(ids: list[list[int]]) -> Ragged:
    """Return lists of token ids as one tensor."""
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    flat = np.fromiter((token for row in ids for token in row), np.int64, int(lengths.sum()))
    return Ragged.from_lengths(torch.from_numpy(flat), lengths)


def plan_batches(
    lengths: np.ndarray, budget: int, device: torch.device | None = None
) -> list[np.ndarray]:
    """Return batches of rows of similar length, each of at most `budget` padded tokens.

    On a CPU the rows of a batch have the same length. Without padding, the vector of a text does
    not depend on the other texts, and small batches are not slower than larger padded ones.
    """
    order = np.argsort(-lengths, kind="stable")  # longest first: a lack of memory shows early
    ordered = lengths[order]
    exact = device is not None and device.type == "cpu"
    # Where a row of another length begins, after each row.
    ends = np.searchsorted(-ordered, -ordered, side="right") if exact else None
    batches, start = [], 0
    while start < len(order):
        stop = start + max(1, budget // max(1, int(ordered[start])))
        if ends is not None:
            stop = min(stop, int(ends[start]))
        batches.append(order[start:stop])
        start = stop
    return batches


def plan_runs(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Return batches of rows sorted by length, of about equal size, for `joined`.

    Each has at most `budget` tokens, or one row. Texts of different lengths share the products with
    the weights, so that a few texts are encoded nearly as fast as many.
    """
    order = np.argsort(-lengths, kind="stable")  # longest first: a lack of memory shows early
    ends = np.cumsum(lengths[order])
    batches, start, done = [], 0, 0
    while start < len(order):
        left = int(ends[-1]) - done
        size = -(-left // -(-left // budget))  # the rest in batches of equal size
        stop = max(start + 1, int(np.searchsorted(ends, done + size, side="right")))
        batches.append(order[start:stop])
        start, done = stop, int(ends[stop - 1])
    return batches


def shuffled_batches(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return one epoch of `rows` in random order [batches, size].

    The last batch is filled with the first rows, so that all batches have one shape.
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
    """Return one epoch of `rows` and labelled rows [batches, size + labelled_size].

    Each batch holds `size` rows, then `labelled_size` labelled ones, which are repeated as often as
    necessary.
    """
    main = shuffled_batches(rows, size, rng)
    if not len(labelled):
        return main
    extra = shuffled_batches(labelled, labelled_size, rng)
    while len(extra) < len(main):
        extra = np.concatenate([extra, shuffled_batches(labelled, labelled_size, rng)])
    return np.concatenate([main, extra[: len(main)]], axis=1)


def to_device(
    batches: np.ndarray,
    lengths: np.ndarray | None,
    device: torch.device,
    parts: Parts | None = None,
) -> list[Batch]:
    """Return the batches of an epoch [batches, B] on the device, moved in one copy.

    lengths [R] are the tokens per row; None if the inputs are not tokens. With parts, one part of
    each text is drawn.
    """
    rows = torch.from_numpy(batches).to(device)
    if lengths is None:
        return [Batch.of(part) for part in rows]
    chosen = batches if parts is None else parts.draw(batches)
    drawn = rows if parts is None else torch.from_numpy(chosen).to(device)
    places, grids = pack(lengths[chosen], rounding=ROUNDING[device.type])
    cells = torch.from_numpy(places).to(device)
    return [Batch(*part) for part in zip(rows, drawn, cells, grids, strict=True)]


def pack(lengths: np.ndarray, *, rounding: int = 1) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Pack the texts of batches into grids, with whole texts in rows.

    The longest text goes first, each to the row with the most free cells; a batch whose texts do
    not fit gets more rows. Widths are rounded up to a multiple of 16 and numbers of rows to a
    multiple of `rounding`, so that there are few different shapes.

    Parameters
    ----------
    lengths : ndarray of shape [batches, B]
        Tokens per text.
    rounding : int

    Returns
    -------
    places : ndarray of shape [batches, B]
        Cell of each text's first token.
    grids : list of (int, int)
        Rows and width of each batch's grid.
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
    """Return the numbers rounded up to a multiple."""
    return -(-numbers // multiple) * multiple
